"""Knows which threads still work for which run.

Cancelling a task returns at once while a synchronous tool goes on in its thread. The event loop's default executor is
the one place that every such thread passes, so a run can be asked there whether its threads have ended.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from frontdesk.kit.aio.current import current_turn

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
        """Tell whether a thread is still at work."""
        return bool(self._futures)

    async def wait(self, grace: float) -> bool:
        """Wait until all threads have ended; return `False` if some have not by then."""
        waiting = [asyncio.wrap_future(future) for future in list(self._futures or ()) if not future.done()]
        if waiting:
            # As a result, because asyncio reports an error that no code retrieves.
            ended = asyncio.gather(*waiting, return_exceptions=True)
            await asyncio.wait([ended], timeout=grace)
        return not self.busy


class TrackingExecutor(ThreadPoolExecutor):
    """A thread pool that notes for which run each of its threads works."""

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        future = super().submit(fn, *args, **kwargs)
        turn = current_turn.get()
        if turn is not None:
            turn.work.add(future)
        return future
