"""Workflows that are cancelled or left in the middle, and the runs after them."""

import asyncio
from typing import Any

import pytest
from agent_framework import Executor, Message, WorkflowBuilder, WorkflowContext, handler

from tests.scenarios.desk import open_client, until
from tests.scenarios.test_cancel import MINE


class Waiting(Executor):
    """Says something, and then waits while it is told to."""

    def __init__(self, began: asyncio.Event, go_on: asyncio.Event) -> None:
        super().__init__("waiting")
        self.began = began
        self.go_on = go_on
        self.stopped: list[str] = []

    @handler
    async def wait_after(self, said: list[Message], context: WorkflowContext[str, str]) -> None:
        await self.wait(said[-1].text, context)

    @handler
    async def wait(self, text: str, context: WorkflowContext[str, str]) -> None:
        await context.yield_output("begun")
        self.began.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.stopped.append(text)
            raise
        await context.yield_output(f"done with {text}")


class Place:
    """A workflow as what it is, or as an agent."""

    def __init__(self, kind: str) -> None:
        self.began, self.go_on = asyncio.Event(), asyncio.Event()
        self.target: Any = self.build if kind == "workflow" else lambda: self.build().as_agent()

    def build(self) -> Any:
        waiting = Waiting(self.began, self.go_on)
        return WorkflowBuilder(name="waiting", start_executor=waiting, output_from=[waiting]).build()


@pytest.fixture(params=["workflow", "agent"])
async def place(request: pytest.FixtureRequest) -> Place:
    return Place(request.param)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("how", ["cancelled", "left"])
async def test_a_workflow_was(how: str, stream: bool, place: Place) -> None:
    async with open_client(place.target, session_wait_seconds=0) as desk:
        asked = asyncio.create_task(desk.ask("one", headers=MINE, session_id="s", stream=stream))
        await place.began.wait()
        if how == "cancelled":
            assert (await desk.cancel("mine")).json()["status"] == "cancelled"
            assert "cancelled" in (await asked).text
        else:
            asked.cancel()
            await until(lambda: not desk.active)
        assert desk.run("mine").status == "cancelled"
        assert desk.list_texts("s") == ["one"]
        place.go_on.set()
        for again in (stream, not stream):
            answer = await desk.ask("two", session_id="s", stream=again)
            assert answer.status_code == 200
            assert "done with two" in answer.text
            assert "done with one" not in answer.text
        assert not desk.active


async def test_a_workflow_does_not_keep_others_waiting(place: Place) -> None:
    async with open_client(place.target) as desk:
        first = asyncio.create_task(desk.ask("one"))
        await place.began.wait()
        second = asyncio.create_task(desk.ask("two", stream=True))
        await until(lambda: desk.active == 2)
        second.cancel()
        await until(lambda: desk.active == 1)
        third = asyncio.create_task(desk.ask("three"))
        place.go_on.set()
        assert "done with one" in (await first).text
        assert "done with three" in (await third).text
        assert not desk.active
