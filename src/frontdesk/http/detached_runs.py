"""Work of requests in tasks of their own: runs that continue without their caller, and work that is cancelled once."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from frontdesk.concurrency.tasks import cancel_and_wait, spawn_within
from frontdesk.errors import InternalError, RequestError
from frontdesk.http.sse import pump
from frontdesk.loggers import http as log
from frontdesk.models.result import HostedRunResult, HostedStreamResult

T = TypeVar("T")
Ended = Callable[[], None]

_MAX_UPDATES_AHEAD = 64
"""The number of updates that a run may be ahead of its reader."""


class DetachedRuns:
    """Keeps the tasks of runs that may outlive their requests."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, T], ended: Ended | None = None) -> T:
        """Return the result. The work continues if the caller is cancelled. `ended` is called when it ends."""
        return await asyncio.shield(self._start(work, ended))

    def _start(self, work: Coroutine[Any, Any, T], ended: Ended | None) -> "asyncio.Task[T]":
        task = spawn_within(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        if ended is not None:
            task.add_done_callback(lambda _: ended())
        return task

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Callers that still wait get the error too; reading it here keeps asyncio from logging it.
            task.exception()

    async def stream(
        self, opened: Awaitable[HostedStreamResult[Any]], ended: Ended | None = None
    ) -> HostedStreamResult[Any]:
        """Return the stream. Closing it does not stop the run. `ended` is called when the run ends."""
        relay = _Relay()
        self._start(relay.work(opened), ended)
        try:
            first = await asyncio.shield(relay.first)
        except BaseException:
            # The reader has left before there was anything to read: without this the relay would wait for it.
            await relay.leave()
            raise
        return HostedStreamResult(first.run, relay.updates(), relay.outcome, relay.leave)


class _Relay:
    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.first: asyncio.Future[HostedStreamResult[Any]] = loop.create_future()
        self.outcome: list[HostedRunResult[Any]] = []
        self._queue: asyncio.Queue[Any] = asyncio.Queue(_MAX_UPDATES_AHEAD)
        self._left = False
        self._error: BaseException | None = None

    async def work(self, opened: Awaitable[HostedStreamResult[Any]]) -> None:
        try:
            stream = await opened
        except BaseException as error:
            if not self._left:
                self.first.set_exception(error)
            raise
        if not self._left:
            self.first.set_result(stream)
        try:
            async with stream:
                self.outcome.append(await pump(stream, lambda update: [(update,)], self._hand_over))
        except BaseException as error:
            self._error = error
            raise
        finally:
            await self._hand_over(())

    async def _hand_over(self, update: tuple[Any, ...]) -> None:
        if not self._left:
            await self._queue.put(update)

    async def updates(self) -> AsyncGenerator[Any, None]:
        while update := await self._queue.get():
            yield update[0]
        if self._error is not None:
            raise self._error

    async def leave(self) -> None:
        """Drop the pending updates after the reader has left."""
        self._left = True
        while not self._queue.empty():
            self._queue.get_nowait()


class CancellableWork:
    """Keeps the tasks of requests. Each is cancelled once when its client leaves, and can then record what it did.

    A cancel scope of anyio cancels again and again until its task has ended, which would interrupt the recording.
    """

    def __init__(self, *passed: type[Exception]) -> None:
        """`passed` are the errors of a protocol that are raised as they are, besides `RequestError`."""
        self._passed = (RequestError, *passed)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result. Log an unforeseen error and raise an `InternalError` without its text."""
        task = spawn_within(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise
        except self._passed:
            raise
        except Exception as error:
            # The last handler of these requests, as in an endpoint.
            log.error("request failed", exc_info=error)
            raise InternalError from None

    def _finish(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Its request may have left. Reading the error here keeps asyncio from logging it.
            task.exception()

    async def stop(self, within: float = 5.0) -> None:
        """Cancel all tasks and wait for their end."""
        await cancel_and_wait(*self._tasks, within=within)
