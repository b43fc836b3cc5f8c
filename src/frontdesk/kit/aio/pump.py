"""The way from the stream of a run to a wire: one loop for every protocol."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from frontdesk.data.result import HostedRunResult, HostedStreamResult
from frontdesk.kit.aio.tasks import present_task

M = TypeVar("M")


async def pump(
    stream: HostedStreamResult[Any],
    render: Callable[[Any], Iterable[M]],
    send: Callable[[M], Awaitable[None]],
    opening: Iterable[Callable[[], Awaitable[None]]] = (),
) -> HostedRunResult[Any]:
    """Take the steps of the opening, send the messages of every update, and return how the run has ended.

    A run works in the task that reads its stream, so that cancelling it while `send` waits for a slow client interrupts
    `send`. The message is sent again then: servers wait before they write, and have not written it.
    """
    for step in opening:
        try:
            await step()
        except asyncio.CancelledError:
            # There are no updates after that: the stream is closed.
            await _end_cancelled(stream)
            await step()
    async for update in stream:
        for message in render(update):
            try:
                await send(message)
            except asyncio.CancelledError:
                # The iteration ends with this update: its stream is closed.
                await _end_cancelled(stream)
                await send(message)
    return stream.final()


async def _end_cancelled(stream: HostedStreamResult[Any]) -> None:
    """End a run that was cancelled, which takes its cancellation back from this task; any other is raised again."""
    await stream.aclose()
    if present_task().cancelling():
        raise asyncio.CancelledError
