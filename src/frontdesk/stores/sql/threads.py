"""A thread that takes whatever has queued up, all at once, and answers all at once.

While it is busy with one batch, the next gathers. That is what lets many transactions share a commit, and what keeps
the price of going to another thread small when there is much to do.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from frontdesk.errors import StoreUnavailableError
from frontdesk.stores.sql.outcomes import settle

J = TypeVar("J")

_MIN_BATCH = 8
"""From how many on a batch is worth waiting for more: that many come at once only when there is much to do."""


class BatchThread(Generic[J]):
    """Does jobs in batches, on a thread of its own; an outcome that is an exception is raised where it is awaited."""

    def __init__(
        self,
        name: str,
        work: Callable[[Sequence[J]], Sequence[Any]],
        *,
        most: int = 256,
        linger: float = 0.0,
        answer: type[asyncio.Future[Any]] = asyncio.Future,
    ) -> None:
        """A batch of some size waits `linger` seconds for more, where a batch costs much and one more in it little.

        `answer` is the kind of future that a job's outcome comes with.
        """
        self._work = work
        self._answer = answer
        self._most = most
        self._linger = linger
        self._stopping = threading.Event()
        self._queue: SimpleQueue[tuple[J, asyncio.Future[Any]] | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def do(self, job: J) -> "asyncio.Future[Any]":
        """Queues a job; its outcome comes with the future."""
        answer = self._answer(loop=self._loop)
        if self._stopping.is_set():
            answer.set_exception(StoreUnavailableError())
        else:
            self._queue.put((job, answer))
        return answer

    async def stop(self) -> None:
        """Ends after what is queued has been done; what comes later is refused."""
        self._stopping.set()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        going = True
        while going:
            batch, going = self._batch()
            if not batch:
                continue
            try:
                outcomes = self._work([job for job, _ in batch])
            except BaseException as error:  # Whoever waits must be told, and the thread must go on.
                outcomes = [error] * len(batch)
            self._loop.call_soon_threadsafe(_answer, batch, outcomes)

    def _batch(self) -> tuple[list[tuple[J, "asyncio.Future[Any]"]], bool]:
        batch: list[tuple[J, asyncio.Future[Any]]] = []
        going = self._gather(batch, self._queue.get())
        if going and self._linger and _MIN_BATCH <= len(batch) < self._most:
            self._stopping.wait(self._linger)
            with suppress(Empty):
                going = self._gather(batch, self._queue.get_nowait())
        return batch, going

    def _gather(
        self, batch: "list[tuple[J, asyncio.Future[Any]]]", entry: "tuple[J, asyncio.Future[Any]] | None"
    ) -> bool:
        """Adds an entry and all that have queued up behind it; whether there will be more."""
        try:
            while entry is not None:
                batch.append(entry)
                if len(batch) >= self._most:
                    return True
                entry = self._queue.get_nowait()
        except Empty:
            return True
        return False


def _answer(batch: Sequence[tuple[Any, "asyncio.Future[Any]"]], outcomes: Sequence[Any]) -> None:
    for (_, answer), outcome in zip(batch, outcomes, strict=True):
        settle(answer, outcome)
