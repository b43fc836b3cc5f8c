"""The page about the Responses API says what its channel says: routes, parameters, fields, items, events and errors."""

import re
from typing import get_args

import msgspec
import pytest
from openai.types.responses import ResponseStreamEvent
from starlette.routing import Route

from frontdesk import AgentFrameworkHost, errors
from frontdesk.channels.responses import ResponsesChannel, schema
from frontdesk.channels.responses.config import FORWARDABLE, FORWARDED
from frontdesk.channels.responses.render import error_out, get_status
from frontdesk.host.validation.channels import HOST_PATHS
from frontdesk.openai import items as openai_items
from frontdesk.outbound import media
from frontdesk.outbound.client import GuardedClient
from frontdesk_testing import EchoAgent, serving
from tests.docs.pages import ROOT, request_errors, tables
from tests.docs.test_reference import error_types, signature, spans

PAGE = ROOT / "docs/reference/responses.md"
ROOM = ROOT / "src/frontdesk/channels/responses"


async def test_every_route_is_documented() -> None:
    documented: dict[str, set[str]] = {}
    for route, _ in tables(PAGE)["Routes"]:
        method, path = spans(route)[0].split()
        documented.setdefault(path, set()).add(method)
    host = AgentFrameworkHost(EchoAgent(), channels=[ResponsesChannel()])
    served = {re.sub(r"\{\w+(:path)?\}", "{}", route.path) for route in host.app.routes if isinstance(route, Route)}
    paths = {base + re.sub(r"\{\w+\}", "{}", path) for path in documented for base in ("", "/v1", "/openai/v1")}
    assert served == paths | {"/v1/{}", "/openai/v1/{}", *HOST_PATHS}
    async with serving(host) as client:
        for path, methods in documented.items():
            for base in ("", "/v1", "/openai/v1"):
                answer = await client.http.request("TRACE", base + re.sub(r"\{\w+\}", "x", path))
                assert set(answer.headers["allow"].split(", ")) == methods, path


def test_every_field_of_a_body_is_documented() -> None:
    rows = tables(PAGE)["What goes in"]
    assert [spans(name)[0] for name, _ in rows] == list(schema.CreateBody.__struct_fields__)
    assert all(done for _, done in rows)


def test_what_reaches_the_target_is_documented() -> None:
    usual, wanted = tables(PAGE)["What reaches the target"]
    assert set(spans(usual[0])) == FORWARDED
    assert set(spans(wanted[0])) == FORWARDABLE - FORWARDED


def test_every_kind_of_item_is_documented() -> None:
    taken = {kind for kinds, _ in tables(PAGE)["Input items"] for kind in spans(kinds.partition(" (")[0])}
    # References and compactions are put in their places before the others are read.
    assert taken == {*openai_items._READERS, "compaction", "item_reference"}
    made = {spans(kind)[0] for kind, _ in tables(PAGE)["What comes out"]}
    kinds = [one for one in vars(schema).values() if isinstance(one, type) and one.__name__.endswith("Item")]
    assert made == {kind.__struct_fields__ and msgspec.structs.fields(kind)[0].default for kind in kinds}


def test_every_field_of_a_response_is_documented() -> None:
    found = re.search(r"^\{\n.*?^\}", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None
    assert list(msgspec.json.decode(found.group())) == list(schema.ResponseOut.__struct_fields__)


def test_every_event_is_documented() -> None:
    documented = [kind for kinds, _ in tables(PAGE)["Streams"] for kind in spans(kinds)]
    source = "".join(path.read_text("utf-8") for path in ROOM.glob("*.py"))
    literal = set(re.findall(r"\"(response(?:\.[a-z_]+)+)\"", source))
    put_together = {f"response.mcp_call.{status}" for status in ("completed", "failed")}
    # Of these two are messages of the client's, and two are no events at all.
    literal -= {"response.create", "response.cancel", "response.compaction", "response.input_tokens"}
    assert set(documented) == literal | put_together | {"response.completed", "response.failed"}
    union = get_args(get_args(ResponseStreamEvent)[0])
    assert set(documented) <= {kind for one in union for kind in get_args(one.model_fields["type"].annotation)}


def test_every_error_is_documented() -> None:
    assert error_types(PAGE) == {kind.status: error_out(kind()).type for kind in request_errors()}


@pytest.mark.parametrize("param", ["previous_run_id", "previous_response_id"])
def test_a_response_that_cannot_be_continued_is_a_bad_request(param: str) -> None:
    error = errors.NotFoundError(param=param)
    assert get_status(error) == 400
    codes = {spans(code)[0] for code, *_ in tables(ROOT / "docs/reference/errors.md")["400 Bad Request"]}
    assert error_out(error).code in codes


def test_the_limits_are_those_of_the_code() -> None:
    """`test_reference_tables.py` checks the limits that are parameters."""
    rows = {what: much for what, much, _ in tables(PAGE)["Limits"]}
    channel, client = signature(ResponsesChannel), signature(GuardedClient)
    assert rows["the body"] == f"{channel['max_body_bytes'].default // 2**20} MiB"
    assert rows["fetching one"] == f"{client['timeout'].default:.0f} s and {client['max_redirects'].default} redirects"
    at_once = [client[f"max_connections{rest}"].default for rest in ("", "_per_caller")]
    assert rows["fetched at once"] == f"{at_once[0]}, and {at_once[1]} for one caller"
    assert rows["URLs in a request"] == f"{media._MAX_URLS}, if they are fetched"
    text, name, call_id = (
        msgspec.json.schema(one)["maxLength"] for one in (schema.Text, schema.ToolName, schema.CallId)
    )
    assert rows["the input as one text, and `instructions`"] == f"{text} characters"
    assert rows["the name of a function"] == f"{name} characters"
    assert rows["a `call_id`"] == f"{call_id} characters"
    metadata = msgspec.json.schema(schema.Metadata)
    key, value = metadata["propertyNames"]["maxLength"], metadata["additionalProperties"]["maxLength"]
    assert rows["entries of `metadata`"] == f"{metadata['maxProperties']}, of {key} and {value} characters"
