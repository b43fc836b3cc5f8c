"""Tracks the threads that work for a run.

Cancelling a task returns at once, although a synchronous tool goes on in its thread. All such threads use the default
executor of the event loop, so this executor can report if the threads of a run have ended.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from frontdesk.concurrency.current import current_turn

P = ParamSpec("P")
R = TypeVar("R")


class ThreadWork:
    """The threads of one run."""

    __slots__ = ("_futures",)

    def __init__(self) -> None:
        self._futures: set[Future[Any]] | None = None

    def add(self, future: Future[Any]) -> None:
        if self._futures is None:
            self._futures = set()
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)

    @property
    def busy(self) -> bool:
        """Return True if a thread is still running."""
        return bool(self._futures)

    async def wait(self, grace: float) -> bool:
        """Wait until all threads have ended. Return False if some are still running after `grace`."""
        waiting = [asyncio.wrap_future(future) for future in list(self._futures or ()) if not future.done()]
        if waiting:
            # As a result, because asyncio reports an error that no code retrieves.
            ended = asyncio.gather(*waiting, return_exceptions=True)
            await asyncio.wait([ended], timeout=grace)
        return not self.busy


class TrackingExecutor(ThreadPoolExecutor):
    """A thread pool that records the run for which each of its threads works."""

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        future = super().submit(fn, *args, **kwargs)
        turn = current_turn.get()
        if turn is not None:
            turn.work.add(future)
        return future
