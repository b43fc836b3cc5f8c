"""Who names a session continues it, one turn at a time; who names none begins one."""

import asyncio
from typing import Any

import pytest

from frontdesk.channels.invocations import InvocationsChannel
from tests.scenarios.cast import PlainAgent, build_scripted, echo, parrot, spell, two_voices, voices
from tests.scenarios.desk import InvocationsHost, open_client


async def test_a_session_named_in_the_body_goes_on() -> None:
    agent = parrot()
    async with open_client(agent) as desk:
        first = await desk.ask("one", session_id="s")
        assert first.json()["session_id"] == first.headers["x-agent-session-id"] == "s"
        await desk.events("two", session_id="s")
        await desk.ask("three", session_id="s")
        assert [message.text for message in agent.client.seen[-1]][::2] == ["one", "two", "three"]
        assert desk.list_texts("s")[::2] == ["one", "two", "three"]


async def test_a_session_named_in_the_query_goes_on() -> None:
    async with open_client(PlainAgent()) as desk:
        for expected in ("1 messages", "3 messages"):
            response = await desk.client.post("/invocations?agent_session_id=s", json={"message": "hi"})
            assert response.json()["text"] == expected
            assert response.headers["x-agent-session-id"] == "s"
        both = await desk.client.post("/invocations?agent_session_id=s", json={"message": "hi", "session_id": "s"})
        assert both.json()["text"] == "5 messages"


async def test_two_different_names_are_refused() -> None:
    async with open_client(echo) as desk:
        body = {"message": "hi", "session_id": "a"}
        response = await desk.client.post("/invocations?agent_session_id=b", json=body)
        assert response.status_code == 400
        assert response.json()["error"]["param"] == "session_id"
        assert desk.untouched()


async def test_without_a_name_every_request_has_a_fresh_session_that_can_be_continued() -> None:
    async with open_client(PlainAgent()) as desk:
        first, second = [(await desk.ask()).json() for _ in range(2)]
        assert (first["text"], second["text"]) == ("1 messages", "1 messages")
        assert first["session_id"] != second["session_id"]
        third = (await desk.ask(session_id=first["session_id"])).json()
        assert (third["text"], third["session_id"]) == ("3 messages", first["session_id"])


@pytest.mark.parametrize("stream", [False, True])
async def test_a_channel_that_requires_a_session_refuses_a_request_without_one(stream: bool) -> None:
    async with open_client(echo, InvocationsChannel(session_mode="required")) as desk:
        response = await desk.ask(stream=stream)
        assert response.status_code == 409
        assert response.json()["error"]["code"] == "session_required"
        assert desk.untouched()
        assert (await desk.ask(session_id="s")).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_a_channel_without_sessions_keeps_none(stream: bool) -> None:
    agent = PlainAgent()
    async with open_client(agent, InvocationsChannel(session_mode="disabled")) as desk:
        for _ in range(2):
            response = await desk.ask(session_id="s", stream=stream)
            assert response.status_code == 200
            assert "x-agent-session-id" not in response.headers
        assert agent.heard == [["hello"], ["hello"]]
        assert not desk.sessions()
        assert not desk.ledger.kept_messages


def _pairs(texts: list[str]) -> list[tuple[str, str]]:
    return list(zip(texts[::2], texts[1::2], strict=True))


async def _twenty(desk: InvocationsHost, number: int, **body: Any) -> None:
    response = await desk.ask(f"question {number}", stream=number % 2 == 0, **body)
    assert response.status_code == 200
    assert f"question {number}" in response.text


@pytest.mark.parametrize(
    "make", [parrot, PlainAgent, two_voices, lambda: spell], ids=["agent", "plain agent", "workflow", "generator"]
)
async def test_twenty_requests_at_once_are_twenty_whole_turns(make: Any) -> None:
    async with open_client(make()) as desk:
        answers = await asyncio.gather(*(desk.ask(f"q{number}", session_id="s") for number in range(20)))
        assert {answer.status_code for answer in answers} == {200}
        messages = desk.history("s")
        starts = [place for place, message in enumerate(messages) if message.role == "user"]
        assert sorted(messages[place].text for place in starts) == sorted(f"q{number}" for number in range(20))
        turns = [messages[start:end] for start, end in zip(starts, [*starts[1:], len(messages)], strict=True)]
        assert len({tuple(message.role for message in turn) for turn in turns}) == 1
        (record,) = desk.sessions()
        assert (record.turns, record.messages) == (20, len(messages))
        assert not desk.active


async def test_whole_and_streamed_turns_of_one_session_never_interleave() -> None:
    async with open_client(parrot()) as desk:
        await asyncio.gather(*(_twenty(desk, number, session_id="s") for number in range(20)))
        for question, answer in _pairs(desk.list_texts("s")):
            assert answer.replace("  ", " ") == f"you said {question}"


async def test_every_turn_sees_all_the_turns_before_it() -> None:
    agent = PlainAgent()
    async with open_client(agent) as desk:
        await asyncio.gather(*(desk.ask(f"q{number}", session_id="s") for number in range(20)))
        assert [len(heard) for heard in agent.heard] == list(range(1, 41, 2))
        for before, after in zip(agent.heard, agent.heard[1:], strict=False):
            assert after[: len(before)] == before


@pytest.mark.parametrize("make", [two_voices, lambda: voices], ids=["builder", "factory"])
async def test_twenty_sessions_on_one_workflow_share_nothing(make: Any) -> None:
    async with open_client(make()) as desk:
        asked = (desk.ask(f"Q{number}", session_id=f"s{number}") for number in range(20))
        answers = await asyncio.gather(*asked)
        assert [one.json()["outputs"] for one in answers] == [[f"Q{number} 1", f"q{number}"] for number in range(20)]
        assert [desk.list_texts(f"s{number}")[0] for number in range(20)] == [f"Q{number}" for number in range(20)]


async def test_who_waits_too_long_for_a_session_is_told_to_come_back() -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def slow(text: str) -> str:
        began.set()
        await go_on.wait()
        return text

    async with open_client(slow, session_wait_seconds=0.01) as desk:
        first = asyncio.create_task(desk.ask("one", session_id="s"))
        await began.wait()
        second = await desk.ask("two", session_id="s")
        assert (second.status_code, second.json()["error"]["code"]) == (409, "session_busy")
        assert int(second.headers["retry-after"]) >= 1
        go_on.set()
        assert (await first).json()["text"] == "one"
        assert desk.list_texts("s") == ["one", "one"]
        assert len(desk.runs()) == 1


async def test_identical_turns_are_all_kept() -> None:
    async with open_client(build_scripted(lambda _: ["yes"])) as desk:
        for _ in range(4):
            await desk.ask("again", session_id="s")
        assert desk.list_texts("s") == ["again", "yes"] * 4


async def test_stored_messages_say_where_they_came_from() -> None:
    async with open_client(parrot()) as desk:
        await desk.ask("hi", session_id="s")
        question, answer = desk.history("s")
        assert question.message_id
        assert question.additional_properties["hosting"] == {
            "channel": "invocations",
            "identity": {"channel": "invocations", "native_id": "anonymous"},
            "response_target": {"kind": "originating", "names": [], "echo_input": False},
        }
        assert answer.additional_properties["hosting"] == {
            "originating_channel": "invocations",
            "includes_originating": True,
            "intended_targets": [],
            "skipped_targets": [],
        }


async def test_what_the_host_writes_on_messages_does_not_go_out() -> None:
    async with open_client(parrot()) as desk:
        assert "hosting" not in (await desk.ask("hi", session_id="s")).text
        assert "hosting" not in (await desk.ask("hi", session_id="s", stream=True)).text
