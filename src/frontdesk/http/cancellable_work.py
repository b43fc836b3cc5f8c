"""Work for a request in a task of its own, for servers whose scopes cancel until a task has ended."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from frontdesk.concurrency.tasks import cancel_and_wait, spawn_within
from frontdesk.errors import InternalError, RequestError
from frontdesk.loggers import http as log

T = TypeVar("T")


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
        task.add_done_callback(self._ended)
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

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Its request may have left. Reading the error here keeps asyncio from logging it.
            task.exception()

    async def stop(self, within: float = 5.0) -> None:
        """Cancel all tasks and wait for their end."""
        await cancel_and_wait(*self._tasks, within=within)
