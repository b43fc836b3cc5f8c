"""Agents written with `openai-agents` keep their sessions in our conversations."""

from typing import Any

import pytest
from agents import (
    OpenAIConversationsSession,
    Runner,
    function_tool,
)

from tests.scenarios.conversations.desk import AsyncGuest, list_heard, open_client, texts, user
from tests.scenarios.responses.cast import parrot
from tests.scenarios.responses.guests import QUIET, build_looking, build_visiting_agent


@function_tool
def look(place: str) -> str:
    """Looks at a place."""
    return f"a cat in the {place}"


async def test_a_session_is_a_conversation() -> None:
    target = parrot()
    async with open_client(target) as desk:
        session: Any = OpenAIConversationsSession(openai_client=desk.client())
        for word in ("one", "two"):
            result = await Runner.run(build_visiting_agent(desk), word, session=session, run_config=QUIET)
            assert result.final_output == f"you said {word}"
        assert list_heard(target) == ["one", "you said one", "two"]
        items = await AsyncGuest(desk).items(session.session_id, order="asc")
        assert texts(items) == ["one", "you said one", "two", "you said two"]


async def test_a_session_keeps_the_calls_of_the_clients_functions() -> None:
    async with open_client(build_looking()) as desk:
        session: Any = OpenAIConversationsSession(openai_client=desk.client())
        for _ in range(2):
            result = await Runner.run(
                build_visiting_agent(desk, tools=[look]), "what is there?", session=session, run_config=QUIET
            )
            assert result.final_output == "there is a cat in the garden"
        kinds = [one.get("type") for one in await session.get_items()]
        assert kinds == ["message", "function_call", "function_call_output", "message"] * 2


async def test_a_session_is_read_popped_and_cleared() -> None:
    async with open_client(parrot()) as desk:
        session: Any = OpenAIConversationsSession(openai_client=desk.client())
        await session.add_items([user(f"word {number}") for number in range(45)])
        assert len(await session.get_items()) == 45
        last: Any = await session.get_items(limit=2)
        assert [one["content"][0]["text"] for one in last] == ["word 43", "word 44"]
        popped: Any = await session.pop_item()
        assert popped["content"][0]["text"] == "word 44"
        assert len(await session.get_items()) == 44
        name = session.session_id
        await session.clear_session()
        assert (await desk.http.get(f"/v1/conversations/{name}")).status_code == 404
        assert await session.get_items() == []


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_in_a_conversation_of_the_hosts(stream: bool) -> None:
    target = build_looking()
    async with open_client(target) as desk:
        guest = AsyncGuest(desk)
        made = await guest.do("conversations.create", items=[user("be kind")])
        options: Any = {"conversation_id": made.id, "run_config": QUIET}
        agent = build_visiting_agent(desk, tools=[look])
        if stream:
            run = Runner.run_streamed(agent, "what is there?", **options)
            assert [event async for event in run.stream_events()]
            said = run.final_output
        else:
            said = (await Runner.run(agent, "what is there?", **options)).final_output
        assert said == "there is a cat in the garden"
        kinds = [one.type for one in await guest.items(made.id, order="asc")]
        assert kinds == ["message", "message", "function_call", "function_call_output", "message"]
        assert list_heard(target)[:2] == ["be kind", "what is there?"]
