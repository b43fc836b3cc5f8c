"""Clients that leave before their stream has opened, where runs go on without them: the session is free again."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontdesk.http.detached_runs import _MAX_UPDATES_AHEAD, DetachedRuns
from frontdesk_testing.internals import active_runs
from tests.scenarios.conversations.desk import open_client
from tests.scenarios.desk import until
from tests.scenarios.responses.desk import ResponsesHost
from tests.scenarios.responses.sockets import dial
from tests.test_pipeline import Probe, caller, in_session, open_context

MANY = 3 * _MAX_UPDATES_AHEAD
"""More than a run may be ahead of its reader."""


class Waits:
    """A target that says much, and a hook and a target that wait until they are let go."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()

    async def hook(self, request: Any, **_: Any) -> Any:
        if request.input == "wait at the door":
            await self._wait()
        return request

    async def talk(self, text: str) -> AsyncIterator[str]:
        if text == "wait in the session":
            await self._wait()
        for _ in range(MANY):
            yield "x"

    async def _wait(self) -> None:
        self.began.set()
        await self.go_on.wait()


async def _check_served(desk: ResponsesHost, conversation: str, runs: int) -> None:
    """All that was asked for has ended well, and so does the next turn of the conversation."""
    await until(lambda: len(desk.runs()) == runs and not desk.active)
    assert {run.status for run in desk.runs()} == {"completed"}
    again = await desk.post({"input": "again", "conversation": conversation})
    assert (again.status_code, again.json().get("status")) == (200, "completed")


async def _conversation(desk: ResponsesHost) -> str:
    return (await desk.http.post("/v1/conversations", json={})).json()["id"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_left_before_its_stream_opened_and_locked_its_session(stream: bool) -> None:
    waits = Waits()
    async with open_client(waits.talk, run_hook=waits.hook, finish_abandoned=True) as desk:
        conversation = await _conversation(desk)
        body = {"input": "wait at the door", "stream": stream, "conversation": conversation}
        asked = asyncio.create_task(desk.post(body))
        await waits.began.wait()
        asked.cancel()
        await until(lambda: not desk.server.server_state.tasks)
        waits.go_on.set()
        await _check_served(desk, conversation, 1)


async def test_a_client_left_while_it_waited_for_its_session_and_locked_it() -> None:
    waits = Waits()
    async with open_client(waits.talk, finish_abandoned=True) as desk:
        conversation = await _conversation(desk)
        body = {"stream": True, "conversation": conversation}
        first = asyncio.create_task(desk.post({"input": "wait in the session", **body}))
        await waits.began.wait()
        second = asyncio.create_task(desk.post({"input": "waits behind it", **body}))
        await until(lambda: len(desk.server.server_state.tasks) == 2)
        second.cancel()
        await until(lambda: len(desk.server.server_state.tasks) == 1)
        waits.go_on.set()
        assert (await first).status_code == 200
        await _check_served(desk, conversation, 2)


@pytest.mark.parametrize("way", ["close", "cut"])
async def test_a_connection_ended_before_its_response_began_and_locked_its_session(way: str) -> None:
    waits = Waits()
    async with open_client(waits.talk, run_hook=waits.hook, finish_abandoned=True) as desk:
        conversation = await _conversation(desk)
        async with dial(desk) as line:
            await line.create("wait at the door", conversation=conversation)
            await waits.began.wait()
            if way == "cut":
                line.wire.transport.abort()
        await until(lambda: not desk.server.server_state.tasks)
        waits.go_on.set()
        await _check_served(desk, conversation, 1)


async def _steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("lasting", [True, False])
@pytest.mark.parametrize("way", ["stream", "run"])
async def test_a_hang_up_at_any_step_of_the_opening_left_the_session_locked(lasting: bool, way: str) -> None:
    """The request is cancelled after each number of steps of the loop, until it is through before that."""
    waits, runs = Waits(), DetachedRuns()

    async def asked(context: Any) -> None:
        work = getattr(context, way)(in_session("s", "hi", stream=way == "stream"), caller())
        if way == "run":
            await (runs.run(work) if lasting else work)
            return
        async with await (runs.stream(work) if lasting else work) as stream:
            async for _ in stream:
                pass

    async def hook(request: Any, **_: Any) -> Any:
        await _steps(3)
        return request

    async with open_context(waits.talk, probe=Probe(run_hook=hook), session_wait_seconds=0) as (context, _):
        for count in itertools.count():
            task = asyncio.create_task(asked(context))
            await _steps(count)
            if task.done():
                await task
                break
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: not runs._tasks and not len(active_runs(context)))
            assert (await context.run(in_session("s"), caller())).run.status == "completed"
        assert count > 3
