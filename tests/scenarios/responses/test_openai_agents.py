"""Agents written with `openai-agents` have our host for their model."""

from pathlib import Path
from typing import Any

import pytest
from agents import (
    ModelSettings,
    Runner,
    SQLiteSession,
    function_tool,
)
from pydantic import BaseModel

from tests.scenarios.responses.cast import Till, build_answering, call, parrot
from tests.scenarios.responses.desk import open_client
from tests.scenarios.responses.guests import QUIET, build_looking, build_visiting_agent


class Eyes:
    """A tool that runs on the client's side."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def tool(self) -> Any:
        """The tool."""

        @function_tool
        def look(place: str) -> str:
            """Looks at a place."""
            self.seen.append(place)
            return f"a cat in the {place}"

        return look


async def test_an_agent_gets_its_answer() -> None:
    target = parrot()
    async with open_client(target) as desk:
        result = await Runner.run(build_visiting_agent(desk), "hello", run_config=QUIET)
        assert result.final_output == "you said hello"
        assert target.client.options[-1]["instructions"] == "Be brief."


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_of_the_agents_is_called_and_answered(stream: bool) -> None:
    eyes = Eyes()
    async with open_client(build_looking()) as desk:
        agent = build_visiting_agent(desk, tools=[eyes.tool()])
        if stream:
            running = Runner.run_streamed(agent, "what is there?", run_config=QUIET)
            kinds = [event.type async for event in running.stream_events()]
            assert {"raw_response_event", "run_item_stream_event"} <= set(kinds)
            final = running.final_output
        else:
            final = (await Runner.run(agent, "what is there?", run_config=QUIET)).final_output
        assert (final, eyes.seen) == ("there is a cat in the garden", ["garden"])


@pytest.mark.parametrize("stream", [False, True])
async def test_a_session_of_the_agents_brings_its_own_history(tmp_path: Path, stream: bool) -> None:
    eyes = Eyes()
    target = build_looking()
    session = SQLiteSession("guest", tmp_path / "guest.db")
    async with open_client(target) as desk:
        agent = build_visiting_agent(desk, tools=[eyes.tool()], model_settings=ModelSettings(store=False))
        for turn in range(3):
            if stream:
                running = Runner.run_streamed(agent, f"look {turn}", session=session, run_config=QUIET)
                async for _ in running.stream_events():
                    pass
                final = running.final_output
            else:
                final = (await Runner.run(agent, f"look {turn}", session=session, run_config=QUIET)).final_output
            assert final == "there is a cat in the garden"
        asked = [text for role, text in target.client.said() if role == "user"]
        assert asked == ["look 0", "look 1", "look 2"]
        roles = [role for role, _ in target.client.said()]
        assert roles == [*["user", "assistant", "tool", "assistant"] * 2, "user", "assistant", "tool"]
        assert desk.runs() == []
    session.close()


async def test_a_conversation_by_previous_response_sends_only_what_is_new() -> None:
    eyes = Eyes()
    target = build_looking()
    async with open_client(target) as desk:
        agent = build_visiting_agent(desk, tools=[eyes.tool()])
        first = await Runner.run(agent, "look", auto_previous_response_id=True, run_config=QUIET)
        second = await Runner.run(agent, "look again", previous_response_id=first.last_response_id, run_config=QUIET)
        assert second.final_output == "there is a cat in the garden"
        asked = [text for role, text in target.client.said() if role == "user"]
        assert asked == ["look", "look again"]


async def test_an_agent_can_ask_for_a_structure() -> None:
    class Room(BaseModel):
        number: int

    async with open_client(build_answering(lambda _: ['{"number": 12}'])) as desk:
        result = await Runner.run(build_visiting_agent(desk, output_type=Room), "which room?", run_config=QUIET)
        assert result.final_output == Room(number=12)


async def test_tools_of_the_host_run_beside_those_of_the_agents() -> None:
    till, eyes = Till(), Eyes()
    target = till.agent([call("add", "host", a=1, b=2), call("look", "client", place="roof")], ["3 cats"])
    async with open_client(target) as desk:
        result = await Runner.run(
            build_visiting_agent(desk, tools=[eyes.tool()]),
            "how many?",
            auto_previous_response_id=True,
            run_config=QUIET,
        )
        assert (result.final_output, till.ran, eyes.seen) == ("3 cats", [("add", 1, 2)], ["roof"])
