"""Clients that leave or stop reading: nothing leaks, nothing runs ahead, and the session is free again."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator

import pytest
from agent_framework import tool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware

from tests.scenarios.cast import build_scripted, call
from tests.scenarios.desk import InvocationsHost, open_client, until
from tests.scenarios.test_cancel import MINE, Slow

PIECE = "x" * 10_000


async def _check_left_clean(desk: InvocationsHost, before: int, slow: Slow) -> None:
    """Everything that belonged to the run is over, and its session takes the next turn at once."""
    await until(lambda: not desk.active)
    await until(lambda: len(asyncio.all_tasks()) <= before)
    run = desk.run("mine")
    assert (run.status, run.failure and run.failure.code) == ("cancelled", "cancelled")
    assert (await desk.get("mine")).json()["status"] == "cancelled"
    assert desk.list_texts("s") == ["it"]
    slow.go_on.set()
    assert (await desk.ask("again", session_id="s")).status_code == 200


async def test_a_client_left_in_the_middle_of_a_stream(caplog: pytest.LogCaptureFixture) -> None:
    slow = Slow()
    async with open_client(slow.pieces, session_wait_seconds=0) as desk:
        before = len(asyncio.all_tasks())
        async with desk.open_stream("it", headers=MINE, session_id="s") as (_, events):
            assert [(await anext(events)).name, (await anext(events)).name] == ["started", "update"]
            await slow.began.wait()
        await _check_left_clean(desk, before, slow)
        assert slow.left
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_client_left_before_the_first_update() -> None:
    slow = Slow()
    async with open_client(slow.whole, session_wait_seconds=0) as desk:
        before = len(asyncio.all_tasks())
        async with desk.open_stream("it", headers=MINE, session_id="s") as (_, events):
            assert (await anext(events)).name == "started"
            await slow.began.wait()
        await _check_left_clean(desk, before, slow)


async def test_a_client_left_during_a_long_answer(caplog: pytest.LogCaptureFixture) -> None:
    slow = Slow()
    async with open_client(slow.whole, session_wait_seconds=0) as desk:
        before = len(asyncio.all_tasks())
        asked = asyncio.create_task(desk.ask("it", headers=MINE, session_id="s"))
        await slow.began.wait()
        asked.cancel()
        await _check_left_clean(desk, before + 1, slow)
        assert slow.left == ["CancelledError"]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_client_left_while_an_async_tool_was_at_work() -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    @tool(approval_mode="never_require")
    async def dig() -> str:
        """Digs."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    async with open_client(build_scripted(lambda _: [call("dig")], tools=[dig])) as desk:
        async with desk.open_stream("it", headers=MINE, session_id="s") as (_, events):
            assert (await anext(events)).name == "started"
            await began.wait()
        await stopped.wait()
        await until(lambda: not desk.active)
        assert desk.run("mine").status == "cancelled"


async def test_a_client_left_while_it_waited_for_its_session() -> None:
    slow = Slow()
    async with open_client(slow.whole) as desk:
        first = asyncio.create_task(desk.ask("one", session_id="s"))
        await slow.began.wait()
        second = asyncio.create_task(desk.ask("two", session_id="s"))
        await until(lambda: desk.requests == 2)
        second.cancel()
        await until(lambda: desk.requests == 1)
        third = asyncio.create_task(desk.ask("three", session_id="s"))
        slow.go_on.set()
        assert [(await one).status_code for one in (first, third)] == [200, 200]
        assert desk.list_texts("s")[::2] == ["one", "three"]
        assert len(desk.runs()) == 2


async def test_a_background_run_goes_on_without_its_client() -> None:
    slow = Slow()
    async with open_client(slow.whole) as desk:
        await desk.ask("it", headers=MINE, background=True)
        await desk.client.aclose()
        await slow.began.wait()
        slow.go_on.set()
        await until(lambda: desk.run("mine").status == "completed")


class Firehose:
    """Says as much as anybody will take."""

    def __init__(self) -> None:
        self.made = 0

    async def talk(self, text: str) -> AsyncIterator[str]:
        while True:
            self.made += 1
            yield PIECE

    async def wait_until_still(self) -> int:
        """How much it has made, once it makes no more."""
        seen: list[int] = []

        def still() -> bool:
            seen.append(self.made)
            return len(seen) > 50 and seen[-50] == seen[-1] > 0

        await until(still)
        return self.made


async def _open_slowly(desk: InvocationsHost) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client that asks for a stream and does not read it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", desk.port, limit=1024)
    body = json.dumps({"message": "it", "stream": True, "session_id": "s"}).encode()
    head = "POST /invocations HTTP/1.1\r\nhost: 127.0.0.1\r\nx-agent-invocation-id: mine\r\nconnection: close\r\n"
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    return reader, writer


async def test_a_client_read_slowly_and_the_agent_waited_for_it() -> None:
    hose = Firehose()
    async with open_client(hose.talk) as desk:
        reader, writer = await _open_slowly(desk)
        made = await hose.wait_until_still()
        assert made * len(PIECE) < 64 * 1024 * 1024
        while hose.made == made:
            assert await reader.read(64 * 1024)
        writer.close()
        await until(lambda: not desk.active)
        assert desk.run("mine").status == "cancelled"


async def test_a_run_was_cancelled_while_its_reader_slept(caplog: pytest.LogCaptureFixture) -> None:
    hose = Firehose()
    async with open_client(hose.talk) as desk:
        reader, writer = await _open_slowly(desk)
        await hose.wait_until_still()
        assert (await desk.cancel("mine")).json()["status"] == "cancelled"
        assert not desk.active
        rest = await reader.read()
        assert b"event: cancelled" in rest[-2000:]
        writer.close()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


class Passing(BaseHTTPMiddleware):
    """Middleware of the kind that puts itself between a stream and its reader."""

    async def dispatch(self, request, call_next):
        return await call_next(request)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_left_and_a_middleware_stood_between(stream: bool) -> None:
    slow = Slow()
    async with open_client(slow.pieces, middleware=[Middleware(Passing)], session_wait_seconds=0) as desk:
        asked = asyncio.create_task(desk.ask("it", headers=MINE, session_id="s", stream=stream))
        await slow.began.wait()
        asked.cancel()
        await until(lambda: not desk.active)
        assert desk.run("mine").status == "cancelled"
        slow.go_on.set()
        assert (await desk.ask("again", session_id="s", stream=stream)).status_code == 200
