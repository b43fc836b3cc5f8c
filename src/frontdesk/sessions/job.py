"""A background run that this process works on: its progress, and the log of its events."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from frontdesk.abc.store import HostStateStore, StateTransaction
from frontdesk.data.background import BackgroundRun
from frontdesk.data.run import RunEvent
from frontdesk.data.session import CheckpointRef
from frontdesk.data.text_update import encode_update
from frontdesk.errors import CodecError, NotStorableError, StoreError, StoreUnavailableError
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.kit.framework.types import is_event
from frontdesk.loggers import runs as log

GATHER = 0.016
"""The seconds for which updates are gathered; with the commit it must stay below 20 ms."""
MOST_PENDING = 256
RECENT = 512
"""The number of updates kept in memory for readers that keep up; slower readers read them from the store."""
_PAUSE = 0.5
_SHOWN = ("output", "intermediate")

Numbered = tuple[int, Any]


class EventLog:
    """Stores the updates of a stream in batches, and shows them to readers once they are committed."""

    def __init__(self, store: HostStateStore, job: BackgroundRun, notify: Callable[[], None], last: int = 0) -> None:
        """Call `notify` when readers can see more; `last` is the number of the last event that is stored."""
        self._store = store
        self._job = job
        self._owner, self._run_id = job.key
        self._notify = notify
        self._last = last
        self.committed = last
        """The number of the last event that was committed."""
        self.recent: deque[Numbered] = deque(maxlen=RECENT)
        self._pending: list[tuple[RunEvent, Any]] = []
        self._flushing: asyncio.Task[None] | None = None
        self._failure: StoreError | None = None
        self.writing = asyncio.Lock()
        """Held while events are written, so that none is written twice."""

    async def add(self, update: Any) -> None:
        """Add the next update; wait while too many are not yet stored."""
        if is_event(update) and update.type not in _SHOWN:
            # The status events of a workflow are for its operator.
            return
        if self._failure is not None:
            raise self._failure
        try:
            data = encode_update(update)
        except CodecError as error:
            log.error("an update of run %s can't be stored: %s", self._job.admitted.run_id, error)
            raise NotStorableError from error
        self._last += 1
        self._pending.append((RunEvent(owner=self._owner, run_id=self._run_id, number=self._last, data=data), update))
        if self._flushing is None:
            self._begin_flush()
        while len(self._pending) >= MOST_PENDING and self._flushing is not None and self._failure is None:
            await asyncio.wait([self._flushing])

    async def _flush(self) -> None:
        try:
            await asyncio.sleep(GATHER)
            while self._pending:
                async with self.writing:
                    batch = self._pending[:MOST_PENDING]
                    async with self._store.transaction() as transaction:
                        transaction.add_events([event for event, _ in batch], self._job)
                    self._show(len(batch))
        except StoreUnavailableError:
            # The run goes on, and its events wait for the store to come back.
            await asyncio.sleep(_PAUSE)
        except StoreError as error:
            self._failure = error
        finally:
            self._flushing = None
            if self._pending and self._failure is None:
                self._begin_flush()

    def _begin_flush(self) -> None:
        self._flushing = spawn_clean(self._flush())

    def write(self, transaction: StateTransaction) -> int:
        """Add the pending events to a transaction and return their number; `writing` must be held."""
        transaction.add_events([event for event, _ in self._pending], self._job)
        return len(self._pending)

    def written(self, count: int) -> None:
        """Show the first pending events to readers, once their transaction is committed."""
        self._show(count)

    def _show(self, count: int) -> None:
        batch, self._pending = self._pending[:count], self._pending[count:]
        if batch:
            self.recent.extend((event.number, update) for event, update in batch)
            self.committed = batch[-1][0].number
            self._notify()

    def after(self, number: int) -> list[Numbered] | None:
        """Return the committed updates above a number; `None` if they are not all in memory any more."""
        if number >= self.committed:
            return []
        if not self.recent or self.recent[0][0] > number + 1:
            return None
        return [numbered for numbered in self.recent if numbered[0] > number]


class Job:
    """The background run that a turn works on."""

    def __init__(
        self, store: HostStateStore, run: BackgroundRun, log: EventLog | None = None, earlier: Sequence[Any] = ()
    ) -> None:
        """Take the outputs of a workflow before it was interrupted as `earlier`."""
        self._store = store
        self.run = run
        self.log = log
        self.earlier = earlier
        self.messages: Sequence[Any] | None = None
        """The question of a run that is resumed."""
        self.began_in: str | None = None
        """The session in which the run began before, if it did."""
        self.is_started = False
        """Whether the target may have been asked: it is asked once the start of the run is known to be written."""
        self.unknown_fields: str | None = None
        """Fields that a newer version gave the record of the run."""

    @property
    def guarded(self) -> bool:
        """Tell whether `begin` must be called before anything is done that can't be done twice."""
        return self.run.on_interrupt == "restart" and not self.run.begun

    async def begin(self, also: Callable[[StateTransaction], None] | None = None) -> None:
        """Record that the run is about to do something that can't be done twice, with whatever `also` adds."""
        if self.guarded:
            await self._save(self.run.replace(begun=True), also)

    async def reached(self, checkpoint: CheckpointRef) -> None:
        """Record a checkpoint, together with all events before it."""
        if self.run.on_interrupt == "resume":
            await self._save(self.run.replace(checkpoint=checkpoint))

    async def _save(self, run: BackgroundRun, also: Callable[[StateTransaction], None] | None = None) -> None:
        async with self.writing() as write:
            async with self._store.transaction() as transaction:
                count = write(transaction)
                if self.log is not None:
                    run = run.replace(events=self.log.committed + count)
                transaction.save_job(run)
                if also is not None:
                    also(transaction)
            self.run = run

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[Callable[[StateTransaction], int]]:
        """Yield a function that adds the pending events to a transaction, and show them if the block does not fail."""
        if self.log is None:
            yield lambda _: 0
            return
        counts: list[int] = []

        def write(transaction: StateTransaction) -> int:
            counts.append(0 if self.log is None else self.log.write(transaction))
            return counts[-1]

        async with self.log.writing:
            yield write
            self.log.written(counts[-1] if counts else 0)
