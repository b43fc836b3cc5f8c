"""The same conversation with every kind of target: each caller has their own, and nobody is told anything twice."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from tests.scenarios.desk import InvocationsHost, open_client
from tests.scenarios.kinds_of_targets.kinds import ASKING, KINDS, InState, Mind

STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
EVERY = pytest.mark.parametrize("kind", KINDS)
ASKED = pytest.mark.parametrize("kind", ASKING)


async def _say(desk: InvocationsHost, words: str, session: str, *, stream: bool) -> dict[str, Any]:
    if stream:
        return (await desk.events(words, session_id=session))[-1].data
    answer = await desk.ask(words, session_id=session)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _yes(run: dict[str, Any]) -> dict[str, Any]:
    (question,) = run["approvals"]
    return {"approval": {"id": question["id"], "approved": True}}


def _conversation(*said: str) -> list[str]:
    """What was said, with the answers between."""
    return [text for words in said for text in (words, f"you said {words}")][:-1]


@EVERY
def test_who_keeps_the_history_is_told(kind: str) -> None:
    made = KINDS[kind].make(Mind())
    host = AgentFrameworkHost(made, channels=[InvocationsChannel()], **KINDS[kind].options())
    assert host.target.history == KINDS[kind].keeper


@EVERY
@STREAMS
async def test_three_callers_at_once_get_each_their_own(kind: str, stream: bool) -> None:
    mind = Mind()
    async with open_client(KINDS[kind].make(mind), **KINDS[kind].options()) as desk:
        for turn in ("one", "two"):
            said = [f"{name} {turn}" for name in ("anna", "ben", "cleo")]
            answers = await asyncio.gather(*(_say(desk, one, one.split()[0], stream=stream) for one in said))
            assert [one["text"] for one in answers] == [f"you said {one}" for one in said]
    for heard in mind.heard:
        assert len({name for name in ("anna", "ben", "cleo") if name in " ".join(heard)}) == 1


@EVERY
@STREAMS
async def test_the_third_turn_hears_exactly_what_was_said(kind: str, stream: bool) -> None:
    mind = Mind()
    async with open_client(KINDS[kind].make(mind), **KINDS[kind].options()) as desk:
        for words in ("one", "two", "three"):
            await _say(desk, words, "s", stream=stream)
    assert mind.heard == [_conversation("one"), _conversation("one", "two"), _conversation("one", "two", "three")]


@EVERY
async def test_a_stream_comes_to_what_a_whole_answer_is(kind: str) -> None:
    async with open_client(KINDS[kind].make(Mind()), **KINDS[kind].options()) as desk:
        whole = await _say(desk, "one", "s", stream=False)
        events = await desk.events("one", session_id="t")
    streamed = events[-1].data
    assert streamed["text"] == whole["text"] == "".join(event.data["text"] for event in events[1:-1])
    assert [streamed[name] for name in ("messages", "outputs", "approvals", "requests")] == [
        whole[name] for name in ("messages", "outputs", "approvals", "requests")
    ]


@EVERY
async def test_a_restart_goes_on_with_all_that_was_said(kind: str, tmp_path: Path) -> None:
    mind = Mind()
    target = KINDS[kind].make(mind)
    for words in ("one", "two", "three"):
        store = SqliteStateStore(tmp_path / "frontdesk.db")
        async with open_client(target, store=store, **KINDS[kind].options()) as desk:
            await _say(desk, words, "s", stream=False)
    assert mind.heard[-1] == _conversation("one", "two", "three")


@ASKED
@STREAMS
async def test_an_approval_runs_once_and_the_next_caller_and_the_next_turn_are_well(kind: str, stream: bool) -> None:
    mind = Mind()
    async with open_client(KINDS[kind].make(mind), **KINDS[kind].options()) as desk:
        await _say(desk, "hello", "anna", stream=stream)
        asked = await _say(desk, "pay 5", "anna", stream=stream)
        assert mind.paid == []
        assert (await _say(desk, "ben here", "ben", stream=stream))["text"] == "you said ben here"
        answers = [await desk.post({**_yes(asked), "stream": stream}) for _ in range(2)]
        assert [one.status_code for one in answers] == [200, 409]
        assert ("it is paid" in answers[0].text, mind.paid) == (True, [5])
        assert (await _say(desk, "cleo here", "cleo", stream=stream))["text"] == "you said cleo here"
        assert (await _say(desk, "and now", "anna", stream=stream))["text"] == "you said and now"
    assert mind.paid == [5]
    said = [text for text in mind.heard[-1] if text != "paid 5"]
    assert said == ["hello", "you said hello", "pay 5", "it is paid", "and now"]


@ASKED
async def test_two_callers_who_are_asked_at_once_answer_each_for_themselves(kind: str) -> None:
    mind = Mind()
    async with open_client(KINDS[kind].make(mind), **KINDS[kind].options()) as desk:
        anna, ben = await asyncio.gather(
            _say(desk, "pay 5", "anna", stream=False), _say(desk, "pay 7", "ben", stream=False)
        )
        assert (await desk.post(_yes(ben))).json()["text"] == "it is paid"
        assert mind.paid == [7]
        assert (await desk.post(_yes(anna))).json()["text"] == "it is paid"
        assert mind.paid == [7, 5]


@ASKED
async def test_an_approval_is_answered_after_a_restart(kind: str, tmp_path: Path) -> None:
    mind = Mind()
    async with open_client(
        KINDS[kind].make(mind), store=SqliteStateStore(tmp_path / "frontdesk.db"), **KINDS[kind].options()
    ) as desk:
        asked = await _say(desk, "pay 5", "anna", stream=False)
    async with open_client(
        KINDS[kind].make(mind), store=SqliteStateStore(tmp_path / "frontdesk.db"), **KINDS[kind].options()
    ) as desk:
        assert (await desk.post(_yes(asked))).json()["text"] == "it is paid"
        assert (await desk.post(_yes(asked))).status_code == 409
        assert (await _say(desk, "and now", "anna", stream=False))["text"] == "you said and now"
    assert mind.paid == [5]


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.keeper in ("provider", "host")])
async def test_what_a_session_holds_does_not_grow_with_what_was_said(kind: str) -> None:
    """The state of an agent that kept what it heard grew with the square of the turns."""
    sizes: list[int] = []
    async with open_client(KINDS[kind].make(Mind()), **KINDS[kind].options()) as desk:
        for turn in range(6):
            await _say(desk, f"turn {turn}", "s", stream=False)
            (session,) = desk.sessions()
            sizes.append(len(str(session.state)))
    assert sizes == [sizes[0]] * 6


async def test_what_an_agent_leaves_in_a_session_that_is_dropped_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_client(InState(Mind())) as desk:
        for words in ("one", "two"):
            await _say(desk, words, "s", stream=False)
    assert [line for line in caplog.messages if 'history="agent"' in line] == [
        "agent duck keeps something in its session, which is dropped after each turn because the host keeps the "
        'history; history="agent" leaves both to the agent'
    ]


async def test_a_session_that_was_doubled_before_is_freed_of_it(tmp_path: Path) -> None:
    mind, store = Mind(), SqliteStateStore(tmp_path / "frontdesk.db")
    async with open_client(InState(mind), history="agent", store=store) as desk:
        await _say(desk, "one", "s", stream=False)
        assert desk.sessions()[0].state
    async with open_client(InState(mind), store=SqliteStateStore(tmp_path / "frontdesk.db")) as desk:
        await _say(desk, "two", "s", stream=False)
        assert not desk.sessions()[0].state
    assert mind.heard[-1] == _conversation("one", "two")
