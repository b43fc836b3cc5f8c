"""The page about the Conversations API says what its channel says: routes, parameters, fields, items and errors."""

import re

import msgspec
from starlette.routing import Route

from frontdesk import AgentFrameworkHost, errors
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.conversations import channel as wire
from frontdesk.channels.conversations.channel import error_out
from frontdesk.host.validation.channels import HOST_PATHS
from frontdesk.openai import items as openai_items
from frontdesk_testing import EchoAgent, serving
from tests.docs.pages import ROOT, request_errors, tables
from tests.docs.test_reference import error_types, signature, spans

PAGE = ROOT / "docs/reference/conversations.md"
# What only a run can be refused for.
OF_RUNS = (errors.UnsupportedError,)


async def test_every_route_is_documented() -> None:
    documented: dict[str, set[str]] = {}
    for route, _ in tables(PAGE)["Routes"]:
        method, path = spans(route)[0].split()
        documented.setdefault(re.sub(r"\{\w+\}", "{}", path), set()).add(method)
    host = AgentFrameworkHost(EchoAgent(), channels=[ConversationsChannel(callers_of="conversations")])
    served = {re.sub(r"\{\w+(:path)?\}", "{}", route.path) for route in host.app.routes if isinstance(route, Route)}
    paths = {base + path for path in documented for base in ("", "/v1", "/openai/v1")}
    assert served == paths | {"/conversations/{}", "/v1/conversations/{}", "/openai/v1/conversations/{}", *HOST_PATHS}
    async with serving(host) as client:
        for path, methods in documented.items():
            for base in ("", "/v1", "/openai/v1"):
                answer = await client.http.request("TRACE", base + path.replace("{}", "x"))
                assert set(answer.headers["allow"].split(", ")) == methods, path


def test_every_field_of_a_body_is_documented() -> None:
    bodies = {"create": wire.CreateBody, "update": wire.UpdateBody, "add": wire.ItemsBody}
    for name, where, done in tables(PAGE)["What goes in"]:
        named = where.split(", ")
        assert done
        assert [body for body in bodies if spans(name)[0] in bodies[body].__struct_fields__] == [
            body for body in bodies if body in named
        ]
    assert {spans(row[0])[0] for row in tables(PAGE)["What goes in"]} == {
        field for body in bodies.values() for field in body.__struct_fields__
    }


def test_every_kind_of_item_is_documented() -> None:
    assert {kind for kinds, _ in tables(PAGE)["Items"] for kind in spans(kinds)} == set(openai_items._READERS)


def test_every_field_of_an_answer_is_documented() -> None:
    found = re.search(r"## What comes out\n+```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    shown_bodies = [list(msgspec.json.decode(line)) for line in found.group(1).splitlines()]
    kinds = (wire.ConversationOut, wire.DeletedOut, wire.PageOut)
    assert shown_bodies == [list(kind.__struct_fields__) for kind in kinds]


def test_every_error_is_documented() -> None:
    kinds = [kind for kind in request_errors() if not issubclass(kind, OF_RUNS)]
    assert error_types(PAGE) == {kind.status: error_out(kind()).type for kind in kinds}


def test_the_limits_are_those_of_the_code() -> None:
    """`test_reference_tables.py` checks the limits that are parameters."""
    rows = {what: much for what, much, _ in tables(PAGE)["Limits"]}
    host = signature(AgentFrameworkHost)
    items = msgspec.json.schema(wire.ItemsBody)["$defs"]["ItemsBody"]["properties"]["items"]
    assert rows["items in a request"] == f"{items['maxItems']}"
    metadata = msgspec.json.schema(wire.Metadata)
    key, value = metadata["propertyNames"]["maxLength"], metadata["additionalProperties"]["maxLength"]
    assert rows["entries of `metadata`"] == f"{metadata['maxProperties']}, of {key} and {value} characters"
    assert rows["waiting for a turn"] == f"{host['session_wait_seconds'].default:.0f} s"
