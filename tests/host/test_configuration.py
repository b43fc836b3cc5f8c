"""What is wrong is found when the host is built, all of it at once, and named."""

import logging
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from agent_framework import (
    Agent,
    Executor,
    HistoryProvider,
    Message,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)

from frontdesk import AgentFrameworkHost, ApiKeyAuth, ChannelConfigurationError
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent
from tests.scenarios.cast import Upper, echo, two_voices, voices
from tests.scenarios.desk import open_client, serve_host
from tests.scenarios.kinds_of_targets.kinds import Mind, WithoutSession

VARIABLES = ("FOUNDRY_HOSTING_ENVIRONMENT", "AZURE_FUNCTIONS_ENVIRONMENT", "AWS_LAMBDA_FUNCTION_NAME")


@pytest.fixture(autouse=True)
def _own_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def _findings(target: Any = echo, channels: Any = None, **options: Any) -> tuple[str, ...]:
    with pytest.raises(ChannelConfigurationError) as caught:
        AgentFrameworkHost(target, channels=[InvocationsChannel()] if channels is None else channels, **options)
    assert all(finding in str(caught.value) for finding in caught.value.findings)
    return caught.value.findings


def test_everything_that_is_wrong_is_told_at_once() -> None:
    channels: Any = [
        InvocationsChannel(name="a", path="/x"),
        InvocationsChannel(name="a", path="/x"),
        InvocationsChannel(name="", path="y/"),
        InvocationsChannel(name="b", path="/healthz", session_mode="sometimes"),  # pyright: ignore[reportArgumentType]
        InvocationsChannel(name="c", path="/c", run_hook=3, tool_calls="maybe", body_timeout=0),  # pyright: ignore[reportArgumentType]
        InvocationsChannel(name="d", path="/d", allowed_origins=["example.com"], max_body_bytes=0, keep_alive=-1),
        InvocationsChannel(name="originating", path="/e"),
        "not a channel",
    ]
    findings = _findings(
        "not a target", channels, cancel_grace_seconds=-1, active_window_seconds=-1, max_background_runs=0
    )
    expected = [
        "cancel_grace_seconds",
        "active_window_seconds",
        "max_background_runs",
        "channels: str is not a Channel",
        "2 channels are called 'a'",
        "2 channels have the path '/x'",
        "name must not be empty",
        "name 'originating' stands for",
        "path 'y/'",
        "path '/healthz' is the host's own",
        "session_mode 'sometimes'",
        "run_hook is not a function",
        "tool_calls must be 'hide' or 'show'",
        "body_timeout must be positive",
        "'example.com'",
        "max_body_bytes must be positive",
        "keep_alive must be positive",
        "target: str is not an agent",
    ]
    for part in expected:
        assert [finding for finding in findings if part in finding], f"nobody told: {part}"
    assert len(findings) == len(expected)


def test_a_host_needs_a_channel() -> None:
    assert _findings(channels=[]) == ("channels: a host needs at least one channel",)


def _no_name() -> Any:
    upper = Upper()
    return WorkflowBuilder(start_executor=upper, output_from=[upper]).build()


async def _no_argument() -> str:
    return ""


async def _two_arguments(text: str, colour: str) -> str:
    return text + colour


def _fails() -> Any:
    raise RuntimeError("no network")


class FileHistory(HistoryProvider):
    """A history of the operator's own."""

    async def get_messages(self, session_id: Any, **_: Any) -> list[Message]:
        return []

    async def save_messages(self, session_id: Any, messages: Any, **_: Any) -> None:
        return


class Talk(Executor):
    """Hears a conversation."""

    @handler
    async def hear(self, said: list[Message], context: WorkflowContext[str, str]) -> None:
        await context.yield_output(said[-1].text)


def _talk() -> Any:
    return WorkflowBuilder(name="talk", start_executor=Talk("talk"), output_from="all").build()


TARGETS: dict[str, tuple[Any, str]] = {
    "nothing": (None, "NoneType"),
    "a class": (Upper, "is a class"),
    "a workflow without a name": (_no_name, "name="),
    "a function without an argument": (_no_argument, "takes no argument"),
    "a function that needs more": (_two_arguments, "colour"),
    "a workflow that all callers share": (voices(), "target=build instead of target=build()"),
    "a workflow as an agent that all callers share": (_talk().as_agent(), "target=lambda: build().as_agent()"),
    "a factory that fails": (_fails, "no network"),
    "a factory of something else": (lambda: 42, "int"),
}


@pytest.mark.parametrize(("target", "part"), TARGETS.values(), ids=TARGETS)
def test_a_target_was(target: Any, part: str) -> None:
    (finding,) = _findings(target)
    assert finding.startswith("target: ")
    assert part in finding


HISTORIES: dict[str, tuple[Any, Any, str]] = {
    "another word": (EchoAgent(), "service", "'service' is not 'host' or 'agent'"),
    "a function's": (echo, "host", "no effect"),
    "a workflow's": (two_voices(), "agent", "no effect"),
    "a workflow as an agent's": (lambda: _talk().as_agent(), "agent", "leave it out"),
    "one that the agent keeps already": (
        Agent(ScriptedChatClient([]), context_providers=[FileHistory("file")]),
        "host",
        "leave one of them out",
    ),
    "left to an agent that knows no session": (WithoutSession(Mind()), "agent", "takes no session"),
}


@pytest.mark.parametrize(("target", "history", "part"), HISTORIES.values(), ids=HISTORIES)
def test_a_history_was(target: Any, history: Any, part: str) -> None:
    (finding,) = _findings(target, history=history)
    assert part in finding
    assert "history" in finding


@pytest.mark.parametrize("variable", VARIABLES)
def test_an_ephemeral_place_is_recognised_and_refused(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "yes")
    (finding,) = _findings()
    assert "ephemeral" in finding
    assert variable in finding


async def test_an_ephemeral_place_is_accepted_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(VARIABLES[0], "yes")
    host = AgentFrameworkHost(echo, channels=[InvocationsChannel()], allow_in_process_runner=True)
    assert host.runtime_mode == "ephemeral"
    with caplog.at_level(logging.INFO, "frontdesk.host"):
        async with serve_host(host):
            pass
    said = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "frontdesk.host"]
    assert ("INFO", f"runtime mode: ephemeral ({VARIABLES[0]} is set)") in said
    assert [text for level, text in said if level == "WARNING" and "allow_in_process_runner" in text]
    assert [text for level, text in said if level == "WARNING" and "the state is in memory" in text]


async def test_an_ephemeral_place_with_a_state_on_disk_loses_none_of_it(tmp_path: Path) -> None:
    settings: Any = {"runtime_mode": "ephemeral", "allow_in_process_runner": True, "state_dir": tmp_path}
    host = AgentFrameworkHost(echo, channels=[InvocationsChannel()], **settings)
    assert not [warning for warning in host.warnings if "in memory" in warning]


async def test_the_log_says_at_the_start_what_is_served(caplog: pytest.LogCaptureFixture) -> None:
    channels = [InvocationsChannel(auth=_keys()), ResponsesChannel(path="/desk")]
    with caplog.at_level(logging.INFO, "frontdesk.host"):
        async with serve_host(AgentFrameworkHost(echo, channels=channels)):
            pass
    said = [record.getMessage() for record in caplog.records if record.name == "frontdesk.host"]
    assert said[1:4] == [
        "target 'echo' (function), state in InMemoryStateStore, runner InProcessTaskRunner",
        "channel 'invocations' (InvocationsChannel) at /invocations",
        "channel 'responses' (ResponsesChannel) at /desk",
    ]


@pytest.mark.parametrize(("chosen", "expected"), [(None, "long_running"), ("long_running", "long_running")])
def test_a_place_of_one_s_own_lives_long(chosen: Any, expected: str) -> None:
    assert AgentFrameworkHost(echo, channels=[InvocationsChannel()], runtime_mode=chosen).runtime_mode == expected


def test_what_was_chosen_counts_more_than_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLES[0], "yes")
    host = AgentFrameworkHost(echo, channels=[InvocationsChannel()], runtime_mode="long_running")
    assert (host.runtime_mode, host.warnings) == ("long_running", [])
    (finding,) = _findings(runtime_mode="ephemeral")
    assert "as configured" in finding


def test_an_unknown_mode_is_named_once() -> None:
    (finding,) = _findings(runtime_mode="sometimes")
    assert "'sometimes'" in finding


PUBLIC = ["0.0.0.0", "::", "192.168.1.5", "example.com", ""]
LOCAL = ["127.0.0.1", "localhost", "::1", "127.8.8.8"]


@pytest.mark.parametrize("address", PUBLIC)
def test_nobody_opens_a_door_to_the_world_by_accident(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn, "run", lambda *_, **__: pytest.fail("it served"))
    host = AgentFrameworkHost(
        echo, channels=[InvocationsChannel(name="a", path="/a"), InvocationsChannel(name="b", path="/b", auth=_keys())]
    )
    with pytest.raises(ChannelConfigurationError) as caught:
        host.serve(address)
    (finding,) = caught.value.findings
    assert "'a'" in finding
    assert "auth=" in finding


def _keys() -> ApiKeyAuth:
    return ApiKeyAuth({"alice": "a-key-that-is-long"})


@pytest.mark.parametrize("address", PUBLIC + LOCAL)
@pytest.mark.parametrize("options", [{"auth": True}, {"allow_anonymous": True}], ids=str)
def test_a_door_with_a_lock_or_a_sign_may_face_the_world(address: str, options: dict[str, bool]) -> None:
    channel = InvocationsChannel(auth=_keys() if options.get("auth") else None)
    host = AgentFrameworkHost(echo, channels=[channel], allow_anonymous=options.get("allow_anonymous", False))
    host.check_bind(address)


@pytest.mark.parametrize("address", LOCAL)
def test_at_home_no_lock_is_needed(address: str) -> None:
    AgentFrameworkHost(echo, channels=[InvocationsChannel()]).check_bind(address)


async def test_strangers_are_let_in_where_the_sign_says_so_but_name_no_sessions() -> None:
    stranger = {"host": "frontdesk.example"}
    async with open_client(echo, allow_anonymous=True) as desk:
        first = await desk.ask("hi", headers=stranger)
        assert first.status_code == 200
        named = await desk.ask("hi", session_id="s", headers=stranger)
        assert (named.status_code, named.json()["error"]["param"]) == (404, "session_id")
        assert len(desk.runs()) == 1
        # The one that the host has named is theirs to go on with.
        again = await desk.ask("hi", session_id=first.json()["session_id"], headers=stranger)
        assert again.status_code == 200
