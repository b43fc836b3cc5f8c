"""An agent that brings a history provider of its own: chains, branches, what is stored and what is not."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentExecutor,
    FileHistoryProvider,
    HistoryProvider,
    InMemoryHistoryProvider,
    Message,
    WorkflowBuilder,
)

from frontdesk import ChannelRequest, ResponseTarget
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from tests.scenarios.cast import ScriptedClient
from tests.scenarios.desk import InvocationsHost, open_client

pytestmark = pytest.mark.filterwarnings("ignore:.*FileHistoryProvider is experimental")


def _recites(messages: list[Message]) -> list[str]:
    """Say all that was said before and now."""
    return [" / ".join(one.text for one in messages if one.role == "user")]


def _agent(*providers: Any) -> Agent:
    return Agent(ScriptedClient(_recites), name="Reciter", context_providers=list(providers))


class Forgetful(HistoryProvider):
    """Keeps messages by the session, but not by which id."""

    def __init__(self) -> None:
        super().__init__("forgetful")
        self.kept: dict[str | None, list[Message]] = {}

    async def get_messages(self, session_id: str | None, **_: Any) -> list[Message]:
        return [Message(one.role, [one.text]) for one in self.kept.get(session_id, [])]

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], **_: Any) -> None:
        self.kept.setdefault(session_id, []).extend(messages)


class InSession(InMemoryHistoryProvider):
    """Keeps messages in the state of the session."""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return tmp_path / "history"


def _read_kept(files: Path) -> dict[str, list[dict[str, Any]]]:
    found = sorted(files.glob("*.jsonl")) if files.exists() else []
    return {one.name: [json.loads(line) for line in one.read_text("utf-8").splitlines()] for one in found}


async def _say(desk: InvocationsHost, text: str, after: Any = None, status: int = 200, **body: Any) -> dict[str, Any]:
    previous = {} if after is None else {"previous_response_id": after["id"]}
    answer = await desk.client.post("/responses", json={"input": text, **previous, **body})
    assert answer.status_code == status, answer.text
    return answer.json()


def _text(response: dict[str, Any]) -> str:
    return response["output"][0]["content"][0]["text"]


def _open(agent: Any) -> Any:
    return open_client(agent, channels=[ResponsesChannel()])


@pytest.mark.parametrize("kind", ["file", "session"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_branch_started_empty(files: Path, kind: str, stream: bool) -> None:
    provider = FileHistoryProvider(files) if kind == "file" else InSession()
    async with _open(_agent(provider)) as desk:
        first = await _say(desk, "one")
        second = await _say(desk, "two", first)
        assert _text(await _say(desk, "three", second)) == "one / two / three"
        # The session has gone on, so that both of these are branches.
        branch = await _say(desk, "four", first)
        assert _text(branch) == "one / four"
        deeper = await _say(desk, "five", second)
        assert _text(deeper) == "one / two / five"
        # And a branch goes on like any other session, and has branches of its own.
        assert _text(await _say(desk, "six", branch)) == "one / four / six"
        if stream:
            answer = await desk.client.post(
                "/responses", json={"input": "seven", "previous_response_id": branch["id"], "stream": True}
            )
            assert "one / four / seven" in answer.text
        else:
            assert _text(await _say(desk, "seven", branch)) == "one / four / seven"


async def test_a_branch_that_is_not_stored_hears_what_was_said_and_leaves_nothing(files: Path) -> None:
    async with _open(_agent(FileHistoryProvider(files))) as desk:
        first = await _say(desk, "one")
        await _say(desk, "two", first)
        before = _read_kept(files)
        assert _text(await _say(desk, "three", first, store=False)) == "one / three"
        assert _read_kept(files) == before


async def test_a_branch_of_which_the_provider_tells_nothing_started_empty() -> None:
    provider = Forgetful()
    async with _open(_agent(provider)) as desk:
        first = await _say(desk, "one")
        assert _text(await _say(desk, "two", first)) == "one / two"
        sessions = set(provider.kept)
        refused = await _say(desk, "three", first, status=400)
        assert refused["error"]["code"] == "branch_not_possible"
        assert refused["error"]["param"] == "previous_response_id"
        assert set(provider.kept) == sessions


async def test_a_turn_that_failed_is_no_part_of_a_branch(files: Path) -> None:
    def script(messages: list[Message]) -> list[str]:
        if messages[-1].text == "fail":
            raise RuntimeError("no")
        return _recites(messages)

    agent = Agent(ScriptedClient(script), name="Reciter", context_providers=[FileHistoryProvider(files)])
    async with _open(agent) as desk:
        first = await _say(desk, "one")
        await desk.client.post("/responses", json={"input": "fail", "previous_response_id": first["id"]})
        second = await _say(desk, "two", first)
        assert _text(second) == "one / two"
        assert _text(await _say(desk, "three", second)) == "one / two / three"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("after", [False, True])
async def test_what_was_not_to_be_stored_left_a_file(files: Path, stream: bool, after: bool) -> None:
    async with _open(_agent(FileHistoryProvider(files))) as desk:
        first = await _say(desk, "one") if after else None
        before = _read_kept(files)
        body = {"input": "two", "store": False, "stream": stream}
        if first is not None:
            body["previous_response_id"] = first["id"]
        answer = await desk.client.post("/responses", json=body)
        assert ("one / two" if after else '"two"') in answer.text
        assert _read_kept(files) == before


async def test_a_channel_without_sessions_left_a_file_for_each_request(files: Path) -> None:
    agent = _agent(FileHistoryProvider(files))
    async with open_client(agent, InvocationsChannel(session_mode="disabled")) as desk:
        assert (await desk.ask("one")).json()["text"] == "one"
    assert _read_kept(files) == {}


@pytest.mark.parametrize("stream", [False, True])
async def test_answers_did_not_say_where_they_were_meant_to_go(files: Path, stream: bool) -> None:
    async with open_client(_agent(FileHistoryProvider(files)), InvocationsChannel()) as desk:
        answer = await desk.ask("one", stream=stream, session_id="s")
        assert answer.status_code == 200
        assert "hosting" not in answer.text
        assert not any("hosting" in one.additional_properties for run in desk.runs() for one in run.result.messages)
    ((question, told),) = _read_kept(files).values()
    assert question["additional_properties"]["hosting"]["channel"] == "invocations"
    assert told["role"] == "assistant"
    assert told["additional_properties"]["hosting"] == {
        "originating_channel": "invocations",
        "includes_originating": True,
        "intended_targets": [],
        "skipped_targets": [],
    }


async def test_an_answer_that_goes_nowhere_says_so_to_the_provider(files: Path) -> None:
    def later(request: ChannelRequest, **_: Any) -> ChannelRequest:
        return request.replace(response_target=ResponseTarget.none)

    async with open_client(_agent(FileHistoryProvider(files)), InvocationsChannel(run_hook=later)) as desk:
        queued = await desk.ask("one", session_id="s")
        assert queued.status_code == 202
        await desk.wait_for_end(queued.json()["id"])
    ((_, told),) = _read_kept(files).values()
    assert told["additional_properties"]["hosting"]["includes_originating"] is False


async def test_the_operators_agent_keeps_the_providers_that_it_was_given(files: Path) -> None:
    provider = FileHistoryProvider(files)
    agent = _agent(provider)
    async with _open(agent) as desk:
        await _say(desk, "one")
    assert agent.context_providers == [provider]


async def test_a_workflow_as_an_agent_keeps_to_the_same(files: Path) -> None:
    provider = FileHistoryProvider(files)

    def build() -> Any:
        inner = Agent(ScriptedClient(_recites), name="Reciter")
        workflow = WorkflowBuilder(name="reciting", start_executor=AgentExecutor(inner, id="reciter")).build()
        return workflow.as_agent(context_providers=[provider])

    async with _open(build) as desk:
        first = await _say(desk, "one")
        assert _text(await _say(desk, "two", first)) == "one / two"
        assert _text(await _say(desk, "three", first)) == "one / three"
        before = _read_kept(files)
        assert _text(await _say(desk, "four", first, store=False)) == "one / four"
    assert _read_kept(files) == before
    answers = [one for kept in before.values() for one in kept if one["role"] == "assistant"]
    assert all("originating_channel" in one["additional_properties"]["hosting"] for one in answers)
    assert len(answers) == 4
