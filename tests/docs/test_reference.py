"""The reference says what the code says: every parameter, field, status and limit, in both directions."""

import inspect
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

import frontdesk_testing as testing
from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.invocations.openapi import document
from frontdesk.channels.invocations.schema import InvocationBody, InvocationOut, Options
from frontdesk.host.validation.configuration import DesignNames
from frontdesk.models.run import RunStatus
from tests.docs.pages import ROOT, prose_of, request_errors, tables

HOST = ROOT / "docs/reference/host.md"
INVOCATIONS = ROOT / "docs/reference/invocations.md"
DEPENDENCIES = ROOT / "docs/internals/dependencies.md"


def spans(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def error_types(page: Path) -> dict[int, str]:
    """Return the type of each status, as a page lists them."""
    rows = tables(page)["Errors"]
    return {int(status): spans(kind)[0] for listed, kind in rows for status in listed.split(", ")}


def signature(documented: type) -> Mapping[str, inspect.Parameter]:
    found = inspect.signature(documented).parameters
    return {name: one for name, one in found.items() if one.kind is not one.VAR_KEYWORD}


def test_the_names_of_the_design_are_documented() -> None:
    page = HOST.read_text("utf-8")
    assert [name for name in DesignNames.__annotations__ if f"`{name}=" not in page] == []


def test_everything_that_a_host_offers_is_documented() -> None:
    async def echo(text: str) -> str:
        return text

    host = AgentFrameworkHost(target=echo, channels=[InvocationsChannel()])
    offered = {name for name in [*dir(type(host)), *vars(host)] if not name.startswith("_")}
    assert {spans(name)[0] for name, _ in tables(HOST)["What it offers"]} == offered


def test_every_field_of_a_body_is_documented() -> None:
    rows = tables(INVOCATIONS)["What goes in"]
    assert [spans(name)[0] for name, _, _ in rows] == list(InvocationBody.__struct_fields__)
    options = next(meaning for name, _, meaning in rows if name == "`options`")
    assert spans(options) == list(Options.__struct_fields__)


def test_every_field_of_an_answer_is_documented() -> None:
    shown = re.search(r"^\{\n.*?^\}", INVOCATIONS.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert set(msgspec.json.decode(shown.group())) == set(InvocationOut.__struct_fields__)
    status = next(meaning for name, meaning in tables(INVOCATIONS)["What comes out"] if name == "`status`")
    assert set(spans(status)) == set(get_args(RunStatus))


def test_every_route_is_documented() -> None:
    async def echo(text: str) -> str:
        return text

    host = AgentFrameworkHost(target=echo, channels=[InvocationsChannel()])
    served = {
        f"{method.upper()} {path.replace('invocation_id', 'id')}"
        for path, methods in document("/invocations", host.target, {})["paths"].items()
        for method in methods
    }
    documented = {spans(route)[0] for route, _ in tables(INVOCATIONS)["Routes"]}
    assert documented == served | {"GET /invocations/docs/openapi.json"}


def test_every_error_is_documented() -> None:
    kinds = request_errors()
    documented: dict[int, set[str]] = {
        int(status): set(spans(codes)) for status, codes in tables(INVOCATIONS)["Errors"]
    }
    assert set(documented) == {one.status for one in kinds}
    # The bare "conflict" is never sent: whatever conflicts has a code of its own.
    assert all(one.code in documented[one.status] for one in kinds if one.code != "conflict")
    source = "".join(path.read_text("utf-8") for path in (ROOT / "src/frontdesk").rglob("*.py"))
    for code in set().union(*documented.values()) - {one.code for one in kinds}:
        assert f'code="{code}"' in source


def test_the_limits_are_those_of_the_code() -> None:
    rows = {what: (much, spans(where)) for what, much, where in tables(INVOCATIONS)["Limits"]}
    body = msgspec.json.schema(InvocationBody)["$defs"]
    fields: dict[str, Any] = body["InvocationBody"]["properties"]
    assert rows["parts of a message"][0] == str(_limit(fields["message"], "maxItems"))
    assert rows["entries of `metadata`"][0] == str(_limit(fields["metadata"], "maxProperties"))
    assert rows["entries of `responses`"][0] == str(fields["responses"]["maxProperties"])
    assert rows["entries of `stop`"][0] == str(_limit(body["Options"]["properties"]["stop"], "maxItems"))
    reason = body["ApprovalAnswer"]["properties"]["reason"]
    assert rows["`reason` of an approval"][0] == f"{_limit(reason, 'maxLength')} characters"
    assert rows["the body"][0] == f"{_default(InvocationsChannel, 'max_body_bytes') // 2**20} MiB"
    assert rows["the time for the body"][0] == f"{_default(InvocationsChannel, 'body_timeout'):.0f} s"
    assert rows["waiting for a session"][0] == f"{_default(AgentFrameworkHost, 'session_wait_seconds'):.0f} s"
    runs = [_default(AgentFrameworkHost, f"max_background_runs{rest}") for rest in ("", "_per_caller")]
    assert rows["background runs"][0] == f"{runs[0]}, and {runs[1]} for one caller"


def _limit(schema: dict[str, Any], name: str) -> int:
    return next(one[name] for one in schema["anyOf"] if name in one)


def _default(documented: type, name: str) -> Any:
    return inspect.signature(documented).parameters[name].default


def test_everything_of_the_testing_kit_is_documented() -> None:
    rows = tables(ROOT / "docs/write-your-own/test-your-channel.md")["A host"]
    assert sorted(spans(name)[0] for name, _ in rows) == sorted(testing.__all__)


def test_every_dependency_has_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = {
        "At run time": project["dependencies"],
        "Extras": [one for extra in project["optional-dependencies"].values() for one in extra],
        "To build": (ROOT / "requirements/run.in").read_text("utf-8").splitlines(),
        "To work on it": (ROOT / "requirements/dev.in").read_text("utf-8").splitlines(),
        "To ask models": (ROOT / "requirements/providers.in").read_text("utf-8").splitlines(),
        "For twins": (ROOT / "requirements/twins.in").read_text("utf-8").splitlines(),
    }
    for title, lines in groups.items():
        wanted = {found.group() for line in lines if (found := re.match(r"[a-zA-Z][\w-]*", line))}
        rows = tables(DEPENDENCIES)[title]
        assert {spans(name)[0] for name, _ in rows} == wanted, title
        assert all(reason for _, reason in rows)


def test_every_term_is_explained_once() -> None:
    glossary = prose_of(ROOT / "docs/reference/glossary.md")
    terms = re.findall(r"^\*\*([^*]+)\*\*", glossary, re.MULTILINE)
    assert len(terms) == len(set(terms))
    assert terms == sorted(terms, key=str.lower)
    wanted = {"channel", "request", "identity", "caller", "session", "target", "run", "result", "delivery", "link"}
    wanted |= {"approval", "approver", "question", "event", "update", "live message"}
    assert wanted | {"isolation key", "owner", "hook", "gate", "lease", "expiry", "sweep"} <= set(terms)
    assert len(glossary.split()) <= 1000
