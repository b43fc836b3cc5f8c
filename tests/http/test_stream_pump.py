"""The loop between a stream and a wire, whose wait for a client is cancelled."""

import asyncio
import weakref
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from frontdesk.http.sse import pump
from frontdesk.models.result import HostedRunResult, HostedStreamResult
from frontdesk.models.run import RunRecord

RUN = RunRecord(run_id="run_1", owner="me", channel="door", status="running", created_at=0.0)
ENDED = HostedRunResult(result=None, run=RUN.replace(status="cancelled", finished_at=1.0))


class SlowWire:
    """A run of three updates, and a client that takes some of what is sent."""

    def __init__(self, takes: int) -> None:
        self._takes = takes
        self.sent: list[str] = []
        self.waits = asyncio.Event()
        self.reads = asyncio.Event()
        self.run_cancelled = self.closed = False
        self._outcome: list[HostedRunResult[Any]] = []
        self._updates = self._talk()
        stream = HostedStreamResult(RUN, self._updates, self._outcome, self._close)
        self.task = asyncio.create_task(pump(stream, lambda update: (update, f"{update}!"), self._send))

    async def _talk(self) -> AsyncGenerator[str, None]:
        for update in ("one", "two", "three"):
            yield update
        self._outcome.append(HostedRunResult(result=None, run=RUN.replace(status="completed")))

    async def _close(self) -> None:
        self.closed = True
        await self._updates.aclose()
        if self.run_cancelled:
            self._outcome.append(ENDED)
            self.task.uncancel()

    async def _send(self, message: str) -> None:
        if len(self.sent) == self._takes:
            self.waits.set()
            await self.reads.wait()
        self.sent.append(message)


async def test_all_messages_of_all_updates_are_sent() -> None:
    wire = SlowWire(takes=10)
    assert (await wire.task).run.status == "completed"
    assert wire.sent == ["one", "one!", "two", "two!", "three", "three!"]


@pytest.mark.parametrize("takes", [2, 3])
async def test_a_cancelled_run_sends_the_rest_of_its_last_update(takes: int) -> None:
    wire = SlowWire(takes)
    await wire.waits.wait()
    wire.run_cancelled = True
    wire.task.cancel()
    wire.reads.set()
    assert await wire.task is ENDED
    assert wire.sent == ["one", "one!", "two", "two!"]


@pytest.mark.parametrize("run_cancelled", [False, True])
async def test_a_client_that_leaves_ends_it(run_cancelled: bool) -> None:
    wire = SlowWire(takes=2)
    await wire.waits.wait()
    wire.run_cancelled = run_cancelled
    for _ in range(2 if run_cancelled else 1):
        wire.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await wire.task
    assert wire.closed
    assert wire.sent == ["one", "one!"]


async def test_a_quiet_stream_keeps_nothing_of_what_was_sent() -> None:
    class Sent(str):
        """A message of which a weak reference can be made."""

    class Step:
        async def __call__(self) -> None: ...

    kept: list[weakref.ref[Any]] = []
    quiet, ends = asyncio.Event(), asyncio.Event()

    async def talk() -> AsyncGenerator[str, None]:
        yield "one"
        quiet.set()
        await ends.wait()

    def render(update: str) -> list[Sent]:
        message = Sent(update)
        kept.append(weakref.ref(message))
        return [message]

    async def send(message: Sent) -> None: ...

    step = Step()
    kept.append(weakref.ref(step))
    opening = iter([step])
    del step

    async def close() -> None: ...

    stream = HostedStreamResult(RUN, talk(), [ENDED], close)
    pumping = asyncio.create_task(pump(stream, render, send, opening))
    await quiet.wait()
    assert [reference() for reference in kept] == [None, None]
    ends.set()
    await pumping
