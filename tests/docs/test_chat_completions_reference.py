"""The page about the Chat Completions API says what its channel says: routes, parameters, fields, errors and limits."""

import re

import msgspec
from starlette.routing import Route

from frontdesk import AgentFrameworkHost, errors
from frontdesk.channels.chat_completions import ChatCompletionsChannel, parse, schema
from frontdesk.channels.chat_completions.config import FORWARDABLE, FORWARDED
from frontdesk.channels.chat_completions.render import error_out, get_status
from frontdesk.models.run import RunRecord
from frontdesk.openai.tools import MAX_TOOLS
from frontdesk_testing import EchoAgent, serving
from tests.docs.pages import ROOT, request_errors, tables
from tests.docs.test_reference import error_types, spans

PAGE = ROOT / "docs/reference/chat-completions.md"
# What is asked of a session or of a stored run, of which there is none.
NEVER = (errors.ConflictError, errors.UnsupportedError)


async def test_every_route_is_documented() -> None:
    documented: dict[str, set[str]] = {}
    for route, _ in tables(PAGE)["Routes"]:
        method, path = spans(route)[0].split()
        documented.setdefault(re.sub(r"\{\w+\}", "{}", path), set()).add(method)
    host = AgentFrameworkHost(EchoAgent(), channels=[ChatCompletionsChannel()])
    served = {re.sub(r"\{\w+(:path)?\}", "{}", route.path) for route in host.app.routes if isinstance(route, Route)}
    paths = {base + path for path in documented for base in ("", "/v1", "/openai/v1")}
    assert served == paths | {
        "/chat/completions/{}",
        "/v1/{}",
        "/openai/v1/{}",
        "/healthz",
        "/readyz",
        "/liveness",
        "/readiness",
    }
    async with serving(host) as client:
        for path, methods in documented.items():
            answer = await client.http.request("TRACE", path.replace("{}", "x"))
            assert set(answer.headers["allow"].split(", ")) == methods, path


def test_every_field_of_a_body_is_documented() -> None:
    rows = tables(PAGE)["What goes in"]
    assert [spans(name)[0] for name, _ in rows] == list(schema.CompletionBody.__struct_fields__)
    assert {role for roles, _ in tables(PAGE)["Messages"] for role in spans(roles)} == set(parse._PARTS)


def test_what_reaches_the_target_is_documented() -> None:
    usual, wanted = tables(PAGE)["What reaches the target"]
    assert set(spans(usual[0])) == FORWARDED
    assert set(spans(wanted[0])) == FORWARDABLE - FORWARDED


def test_every_field_of_a_completion_is_documented() -> None:
    found = re.search(r"^\{\n.*?^\}", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None
    drawn = msgspec.json.decode(found.group())
    assert list(drawn) == list(schema.Completion.__struct_fields__)
    assert list(drawn["usage"]) == list(schema.Usage.__struct_fields__)
    assert list(drawn["choices"][0]) == list(schema.Choice.__struct_fields__)


def test_every_error_is_documented() -> None:
    documented = error_types(PAGE)
    failed = errors.TargetError()
    failed.run = RunRecord(run_id="r", owner="o", channel="c", status="failed", created_at=0.0)
    assert documented.pop(get_status(failed)) == error_out(failed).type
    kinds = [kind for kind in request_errors() if not issubclass(kind, NEVER)]
    assert documented == {kind.status: error_out(kind()).type for kind in kinds}


def test_the_limits_are_those_of_the_code() -> None:
    """`test_reference_tables.py` checks the limits that are parameters."""
    rows = {what: much for what, much, _ in tables(PAGE)["Limits"]}
    assert rows["tools"] == f"{MAX_TOOLS}"
    assert rows["a name of an author"] == f"{parse._MAX_AUTHOR_LENGTH} characters"
    assert rows["the id of a call"] == f"{parse._MAX_CALL_ID_LENGTH} characters"
