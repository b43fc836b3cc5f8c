"""A thread that works on all queued jobs as one batch.

While it is busy with one batch, the next queues up. So many transactions share a commit, and under load the cost of
switching to another thread is shared too.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from frontdesk.errors import StoreUnavailableError
from frontdesk.stores.sql.outcomes import resolve

J = TypeVar("J")

_MIN_BATCH = 8
"""The size from which a batch waits for more: so many jobs come at once only under load."""


class BatchThread(Generic[J]):
    """Runs jobs in batches on a thread of its own; an outcome that is an exception is raised where it is awaited."""

    def __init__(
        self,
        name: str,
        work: Callable[[Sequence[J]], Sequence[Any]],
        *,
        most: int = 256,
        linger: float = 0.0,
        answer: type[asyncio.Future[Any]] = asyncio.Future,
    ) -> None:
        """Start the thread; a batch of some size waits `linger` seconds for more jobs.

        `answer` is the kind of future that carries the outcome of a job.
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
        """Queue a job; return a future of its outcome."""
        answer = self._answer(loop=self._loop)
        if self._stopping.is_set():
            answer.set_exception(StoreUnavailableError())
        else:
            self._queue.put((job, answer))
        return answer

    async def stop(self) -> None:
        """Refuse new jobs, and wait until the queued ones are done."""
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
            except BaseException as error:  # Every waiter must get an outcome, and the thread must go on.
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
        """Add an entry and all that are queued behind it to a batch; tell whether there will be more."""
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
        resolve(answer, outcome)
