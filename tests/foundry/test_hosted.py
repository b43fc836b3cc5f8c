"""A host in Foundry: probes, the port, protocols, ids of the platform's, the headers of answers, traces."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_framework import Agent, Message

from frontdesk import (
    AgentFrameworkHost,
    ChannelConfigurationError,
    FoundryHostedAgentHistoryProvider,
    PlatformAuth,
    SqliteStateStore,
    TrustedEnvironment,
    foundry_response_id,
)
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.foundry.conventions import error_source
from frontdesk.host.config import bind_address
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent, HostClient, RecordingTelemetry, serving
from tests.foundry.fake import FakeStorage, HttpStorage

HOSTED = "FOUNDRY_HOSTING_ENVIRONMENT"
ADA = {"x-agent-user-id": "ada", "x-agent-foundry-call-id": "call-ada"}
BOB = {"x-agent-user-id": "bob", "x-agent-foundry-call-id": "call-bob"}
OLDER = {"x-agent-user-isolation-key": "ada"}


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTED, "yes")
    monkeypatch.setenv("FOUNDRY_AGENT_SESSION_ID", "sandbox-1")


def _join_said(messages: Sequence[Message]) -> str:
    return " | ".join(message.text for message in messages if message.role == "user")


def _host(target: Any = None, auth: Any = None, **options: Any) -> AgentFrameworkHost:
    auth = auth or PlatformAuth(trusted=TrustedEnvironment())
    channels = [ResponsesChannel(auth=auth, response_id_factory=foundry_response_id), InvocationsChannel(auth=auth)]
    target = target or Agent(ScriptedChatClient(_join_said), name="Echo")
    return AgentFrameworkHost(target, channels=channels, allow_in_process_runner=True, **options)


async def _ask(client: HostClient, text: str, headers: Mapping[str, str] = ADA, **body: Any) -> dict[str, Any]:
    answer = await client.http.post("/responses", json={"input": text, **body}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _text(response: dict[str, Any]) -> str:
    return response["output"][0]["content"][0]["text"]


async def test_the_probes_of_the_platform_are_served_everywhere() -> None:
    async with serving(AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel()])) as client:
        for path in ("/readiness", "/liveness"):
            answer = await client.http.get(path)
            assert (answer.status_code, answer.json()["status"]) == (200, "ok")
            # Outside of Foundry nothing is told about the server.
            assert "x-platform-server" not in answer.headers


def test_a_channel_can_not_take_the_path_of_a_probe() -> None:
    with pytest.raises(ChannelConfigurationError, match="the host's own"):
        AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel(path="/readiness")])


@pytest.mark.parametrize(
    ("given", "environment", "bound"),
    [
        ((None, None), {}, ("127.0.0.1", 8000)),
        ((None, None), {"PORT": "9000"}, ("127.0.0.1", 8000)),
        ((None, None), {HOSTED: "1"}, ("0.0.0.0", 8088)),
        ((None, None), {HOSTED: "1", "PORT": "9000"}, ("0.0.0.0", 9000)),
        (("127.0.0.1", 0), {HOSTED: "1", "PORT": "9000"}, ("127.0.0.1", 0)),
        ((None, 7000), {HOSTED: "1", "PORT": "nonsense"}, ("0.0.0.0", 7000)),
    ],
)
def test_where_it_listens(given: tuple[Any, Any], environment: dict[str, str], bound: tuple[str, int]) -> None:
    assert bind_address(given[0], given[1], environment) == bound


@pytest.mark.parametrize("port", ["x", "-1", "70000", "٣", "9" * 5000])
def test_a_port_that_is_none_is_named(port: str) -> None:
    with pytest.raises(ChannelConfigurationError, match="PORT"):
        bind_address(None, None, {HOSTED: "1", "PORT": port})


@pytest.mark.usefixtures("hosted")
async def test_the_older_protocol_is_refused_with_a_hint() -> None:
    async with serving(_host()) as client:
        for headers in (OLDER, {"x-agent-user-id": "ada"}):
            answer = await client.http.post("/responses", json={"input": "hi"}, headers=headers)
            assert answer.status_code == 401
            assert "agent.yaml" in answer.json()["error"]["message"]
        without = {"x-agent-foundry-call-id": "call-1"}
        assert (await client.http.post("/responses", json={"input": "hi"}, headers=without)).status_code == 401


@pytest.mark.usefixtures("hosted")
@pytest.mark.parametrize("options", [{"protocol": "1.0"}, {"user_header": "x-agent-user-isolation-key"}])
async def test_the_older_protocol_is_spoken_where_it_is_named(options: dict[str, Any]) -> None:
    async with serving(_host(auth=PlatformAuth(trusted=TrustedEnvironment(), **options))) as client:
        assert _text(await _ask(client, "hi", OLDER)) == "hi"


async def test_another_platform_may_need_the_newer_protocol_too() -> None:
    auth = PlatformAuth(trusted="anyone_who_can_connect", protocol="2.0")
    async with serving(_host(auth=auth)) as client:
        assert (await client.http.post("/responses", json={"input": "hi"}, headers=OLDER)).status_code == 401
        assert _text(await _ask(client, "hi")) == "hi"


def test_a_protocol_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="protocol"):
        PlatformAuth(trusted=TrustedEnvironment(), protocol="3.0")  # pyright: ignore[reportArgumentType]


# Ids.


@pytest.mark.usefixtures("hosted")
async def test_the_platform_chooses_the_id_of_a_response() -> None:
    async with serving(_host()) as client:
        chosen = foundry_response_id()
        made = await _ask(client, "hi", {**ADA, "x-agent-response-id": chosen})
        assert made["id"] == chosen
        assert (await client.http.get(f"/responses/{chosen}", headers=ADA)).json()["id"] == chosen
        assert (await client.http.get(f"/responses/{chosen}", headers=BOB)).status_code == 404
        bad = await client.http.post(
            "/responses", json={"input": "hi"}, headers={**ADA, "x-agent-response-id": "../../etc"}
        )
        assert bad.status_code == 400


async def test_from_anyone_else_the_header_has_no_effect() -> None:
    channel = ResponsesChannel(response_id_factory=foundry_response_id)
    async with serving(AgentFrameworkHost(EchoAgent(), channels=[channel])) as client:
        chosen = foundry_response_id()
        made = await _ask(client, "hi", {**ADA, "x-agent-response-id": chosen})
        assert made["id"] != chosen
        assert made["id"].startswith("caresp_")


async def test_ids_of_a_chain_stay_in_one_partition_and_items_are_found_by_theirs() -> None:
    channel = ResponsesChannel(response_id_factory=foundry_response_id)
    host = AgentFrameworkHost(Agent(ScriptedChatClient(_join_said), name="Echo"), channels=[channel])
    async with serving(host) as client:
        one = await _ask(client, "one")
        two = await _ask(client, "two", previous_response_id=one["id"])
        assert two["id"][:25] == one["id"][:25]
        item = {"type": "item_reference", "id": one["output"][0]["id"]}
        referring = await client.http.post("/responses", json={"input": [item, {"role": "user", "content": "three"}]})
        assert referring.status_code == 200, referring.text


@pytest.mark.parametrize("factory", [lambda previous: "../x", lambda previous: ""])
async def test_a_factory_that_makes_no_ids_is_refused(factory: Any) -> None:
    host = AgentFrameworkHost(EchoAgent(), channels=[ResponsesChannel(response_id_factory=factory)])
    async with serving(host) as client:
        answer = await client.http.post("/responses", json={"input": "hi"})
        assert answer.status_code == 422


def test_a_factory_that_can_not_be_called_is_found() -> None:
    channel = ResponsesChannel(response_id_factory="caresp")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ChannelConfigurationError, match="response_id_factory"):
        AgentFrameworkHost(EchoAgent(), channels=[channel])


@pytest.fixture
def fake() -> FakeStorage:
    fake = FakeStorage()
    fake.calls |= {"call-ada": "ada", "call-bob": "bob"}
    return fake


def _with_provider(fake: FakeStorage, **options: Any) -> AgentFrameworkHost:
    provider = FoundryHostedAgentHistoryProvider(storage=HttpStorage(fake), timeout_seconds=5)
    return _host(Agent(ScriptedChatClient(_join_said), name="Echo", context_providers=[provider]), **options)


@pytest.mark.usefixtures("hosted")
async def test_a_new_sandbox_continues_what_only_foundry_knows(fake: FakeStorage) -> None:
    async with serving(_with_provider(fake)) as client:
        one = await _ask(client, "one")
    async with serving(_with_provider(fake)) as client:
        two = await _ask(client, "two", previous_response_id=one["id"])
        assert (_text(two), two["previous_response_id"]) == ("one | two", one["id"])
        three = await _ask(client, "three", previous_response_id=two["id"])
        assert _text(three) == "one | two | three"
        branch = await _ask(client, "four", previous_response_id=one["id"])
        assert _text(branch) == "one | four"


@pytest.mark.usefixtures("hosted")
async def test_ids_of_another_person_open_nothing(fake: FakeStorage) -> None:
    async with serving(_with_provider(fake)) as client:
        one = await _ask(client, "one")
        stolen = await _ask(client, "two", BOB, previous_response_id=one["id"])
        assert _text(stolen) == "two"
        await _ask(client, "mine", conversation="conv_1")
        assert _text(await _ask(client, "what?", BOB, conversation="conv_1")) == "what?"


@pytest.mark.usefixtures("hosted")
async def test_a_conversation_of_the_platform_is_a_key_of_that_person() -> None:
    async with serving(_host()) as client:
        first = await _ask(client, "one", conversation="conv_1")
        assert first["conversation"] == {"id": "conv_1"}
        assert _text(await _ask(client, "two", conversation={"id": "conv_1"})) == "one | two"
        assert _text(await _ask(client, "other", BOB, conversation="conv_1")) == "other"
        unknown = await client.http.post("/responses", json={"input": "x", "conversation": "chat_1"}, headers=ADA)
        assert unknown.status_code == 404


@pytest.mark.usefixtures("hosted")
async def test_a_shared_store_knows_what_there_is(tmp_path: Path) -> None:
    class Shared(SqliteStateStore):
        lease_seconds = 30.0

    async with serving(_host(store=Shared(tmp_path / "state.db"))) as client:
        for body in ({"previous_response_id": foundry_response_id()}, {"conversation": "conv_1"}):
            answer = await client.http.post("/responses", json={"input": "hi", **body}, headers=ADA)
            assert answer.status_code in (400, 404)


async def test_outside_of_foundry_unknown_ids_are_refused() -> None:
    async with serving(_host(auth=PlatformAuth(trusted="anyone_who_can_connect"))) as client:
        for body in ({"previous_response_id": foundry_response_id()}, {"conversation": "conv_1"}):
            answer = await client.http.post("/responses", json={"input": "hi", **body}, headers=ADA)
            assert answer.status_code in (400, 404)


# Answers.


@pytest.mark.usefixtures("hosted")
async def test_every_answer_has_the_headers_of_the_platform() -> None:
    async with serving(_host()) as client:
        answer = await client.http.post("/responses", json={"input": "hi"}, headers={**ADA, "x-request-id": "req-1"})
        assert answer.headers["x-agent-session-id"] == "sandbox-1"
        assert answer.headers.get_list("x-request-id") == ["req-1"]
        assert answer.headers["x-platform-server"].startswith("frontdesk/")
        assert "x-platform-error-source" not in answer.headers
        named = await client.http.post("/invocations?agent_session_id=s-2", json={"message": "hi"}, headers=ADA)
        assert named.headers["x-agent-session-id"] == "s-2"
        evil = await client.http.get("/readiness?agent_session_id=a%0d%0ab")
        assert evil.headers["x-agent-session-id"] == "sandbox-1"
        refused = await client.http.post("/responses", json={"input": 1}, headers=ADA)
        assert refused.headers["x-platform-error-source"] == "user"
        async with client.http.stream(
            "POST", "/responses", json={"input": "hi", "stream": True}, headers=ADA
        ) as stream:
            assert stream.headers["x-agent-session-id"] == "sandbox-1"
            assert "response.completed" in (await stream.aread()).decode()


@pytest.mark.parametrize(
    ("status", "source"), [(200, None), (404, b"user"), (429, b"user"), (500, b"upstream"), (503, b"platform")]
)
def test_who_is_to_look_at_an_error(status: int, source: bytes | None) -> None:
    assert error_source(status) == source


@pytest.mark.usefixtures("hosted")
@pytest.mark.parametrize(
    ("given", "parent"),
    [
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", True),
        ("nonsense", False),
        ("00-" + "a" * 2_000, False),
    ],
)
async def test_spans_continue_the_trace_of_the_platform(given: str, parent: bool) -> None:
    telemetry = RecordingTelemetry()
    async with serving(_host(telemetry=telemetry)) as client:
        await _ask(client, "hi", {**ADA, "traceparent": given})
        await _ask(client, "hi")
    first, second = (span for span in telemetry.spans if span.kind == "request")
    assert (first.trace_id == given) is parent
    assert second.trace_id.startswith("trc_")


async def test_a_trace_of_anyone_else_has_no_effect() -> None:
    telemetry = RecordingTelemetry()
    host = AgentFrameworkHost(EchoAgent(), channels=[ResponsesChannel()], telemetry=telemetry)
    async with serving(host) as client:
        await _ask(client, "hi", {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
    assert all(span.trace_id.startswith("trc_") for span in telemetry.spans)


# The process.

_AGENT = """
import asyncio
import sys
from frontdesk import AgentFrameworkHost, PlatformAuth, TrustedEnvironment
from frontdesk.channels.responses import ResponsesChannel


async def slow(text: str) -> str:
    print("began", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    return text


auth = PlatformAuth(trusted=TrustedEnvironment())
host = AgentFrameworkHost(slow, channels=[ResponsesChannel(auth=auth)], allow_in_process_runner=True)
"""


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    while line := await stream.readline():
        yield line.decode()


async def test_sigterm_lets_a_turn_end(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(_AGENT)
    with_port = {**os.environ, HOSTED: "1", "PORT": "0"}
    process = await asyncio.create_subprocess_exec(
        *(Path(sys.executable).with_name("frontdesk"), "serve", "agent.py:host"),
        cwd=tmp_path,
        env=with_port,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        async with asyncio.timeout(60):
            lines = _lines(process.stdout)
            first = await anext(lines)
            port = first.rstrip().rpartition(":")[2]
            while "Ctrl-C" not in await anext(lines):
                pass
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as http:
                asked = asyncio.ensure_future(http.post("/responses", json={"input": "hi"}, headers=ADA))
                while "began" not in await anext(lines):
                    pass
                process.send_signal(signal.SIGTERM)
                process.stdin.write(b"go on\n")
                answer = await asked
            assert _text(answer.json()) == "hi"
            assert await process.wait() in (0, -signal.SIGTERM)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


# What clients and services name.


@pytest.mark.usefixtures("hosted")
@pytest.mark.parametrize("named", ["nonsense", "resp_1", "caresp_short", f"resp_{'a' * 50}", f"caresp_{'-' * 50}"])
async def test_a_malformed_previous_response_id_began_a_new_session(named: str) -> None:
    async with serving(_host()) as client:
        asked = {"input": "hi", "previous_response_id": named}
        answer = await client.http.post("/responses", json=asked, headers=ADA)
        assert answer.status_code == 400, answer.text
        error = answer.json()["error"]
        assert (error["code"], error["param"]) == ("invalid_parameters", "previous_response_id")
        assert error["type"] == "invalid_request_error"


@pytest.mark.usefixtures("hosted")
async def test_an_own_id_in_another_form_is_not_malformed() -> None:
    auth = PlatformAuth(trusted=TrustedEnvironment())
    agent = Agent(ScriptedChatClient(_join_said), name="Echo")
    host = AgentFrameworkHost(agent, channels=[ResponsesChannel(auth=auth)], allow_in_process_runner=True)
    async with serving(host) as client:
        one = await _ask(client, "one")
        assert one["id"].startswith("resp_")
        assert _text(await _ask(client, "two", previous_response_id=one["id"])) == "one | two"
