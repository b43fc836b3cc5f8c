"""A background run in this process: its progress and its event log."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from types import NoneType
from typing import Any

import msgspec

from frontdesk.concurrency.tasks import spawn_clean
from frontdesk.errors import CodecError, NotStorableError, StoreError, StoreUnavailableError
from frontdesk.framework.types import is_event
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.loggers import runs as log
from frontdesk.models.run import BackgroundRun, RunEvent
from frontdesk.models.session import CheckpointRef
from frontdesk.serialization.codec import encode
from frontdesk.serialization.framework_codec import plain_text

_encoder = msgspec.json.Encoder()
_UNSET = ("merge_mode", "created_at", "finish_reason", "continuation_token", "additional_properties")
_NOTHING = [None] * len(_UNSET)
_TEXTS = frozenset({str, NoneType})
_NAMES = ("role", "author_name", "agent_id", "response_id", "message_id")


def encode_update(update: Any) -> bytes:
    """Return the codec's encoding of an update, computed much faster for a plain text."""
    attributes: dict[str, Any] = update.__dict__
    if type(update).__name__ != "AgentResponseUpdate" or len(update.contents) != 1:
        return encode(update)
    text = plain_text(update.contents[0])
    if text is None or [*map(attributes.get, _UNSET)] != _NOTHING:
        return encode(update)
    names = tuple(map(attributes.get, _NAMES))
    if not _TEXTS.issuperset(map(type, names)):
        return encode(update)
    try:
        return b"%b%b%b" % (_BEGINNING, _encoder.encode(text), _rest(names))
    except UnicodeEncodeError:
        # The codec raises the right error.
        return encode(update)


_BEGINNING = b'{"v":1,"data":{"$":"AgentResponseUpdate","contents":[{"$":"Content","type":"text","text":'


@lru_cache(maxsize=256)
def _rest(names: tuple[str | None, ...]) -> bytes:
    given = {name: value for name, value in zip(_NAMES, names, strict=True) if value is not None}
    return b"}]%b}}" % (b"," + _encoder.encode(given)[1:-1] if given else b"")


GATHER_SECONDS = 0.016
"""The seconds for which updates are gathered; with the commit it must stay below 20 ms."""
MAX_PENDING = 256
MAX_RECENT_UPDATES = 512
"""The number of updates kept in memory for readers that keep up; slower readers read them from the store."""
_POLL_INTERVAL_SECONDS = 0.5
_SHOWN = ("output", "intermediate")

Numbered = tuple[int, Any]


class EventLog:
    """Stores the updates of a stream in batches, and publishes them to readers once they are committed."""

    def __init__(self, store: HostStateStore, job: BackgroundRun, notify: Callable[[], None], last: int = 0) -> None:
        """Call `notify` when readers can see more. `last` is the number of the last stored event."""
        self._store = store
        self._job = job
        self._owner, self._run_id = job.key
        self._notify = notify
        self._last = last
        self.committed = last
        """The number of the last event that was committed."""
        self.recent: deque[Numbered] = deque(maxlen=MAX_RECENT_UPDATES)
        self._pending: list[tuple[RunEvent, Any]] = []
        self._flushing: asyncio.Task[None] | None = None
        self._failure: StoreError | None = None
        self.writing = asyncio.Lock()
        """Held while events are written, so that none is written twice."""

    async def add(self, update: Any) -> None:
        """Add the next update. Wait while too many are not yet stored."""
        if is_event(update) and update.type not in _SHOWN:
            # The status events of a workflow are for its operator.
            return
        if self._failure is not None:
            raise self._failure
        try:
            data = encode_update(update)
        except CodecError as error:
            log.error("update cannot be stored: run_id=%s: %s", self._job.admitted.run_id, error)
            raise NotStorableError from error
        self._last += 1
        self._pending.append((RunEvent(owner=self._owner, run_id=self._run_id, number=self._last, data=data), update))
        if self._flushing is None:
            self._begin_flush()
        while len(self._pending) >= MAX_PENDING and self._flushing is not None and self._failure is None:
            await asyncio.wait([self._flushing])

    async def _flush(self) -> None:
        try:
            await asyncio.sleep(GATHER_SECONDS)
            while self._pending:
                async with self.writing:
                    batch = self._pending[:MAX_PENDING]
                    async with self._store.transaction() as transaction:
                        transaction.add_events([event for event, _ in batch], self._job)
                    self._show(len(batch))
        except StoreUnavailableError:
            # The run goes on, and its events wait for the store to come back.
            await asyncio.sleep(_POLL_INTERVAL_SECONDS)
        except StoreError as error:
            self._failure = error
        finally:
            self._flushing = None
            if self._pending and self._failure is None:
                self._begin_flush()

    def _begin_flush(self) -> None:
        self._flushing = spawn_clean(self._flush())

    def write(self, transaction: StateTransaction) -> int:
        """Add the pending events to a transaction and return their number. Requires `write_events`."""
        transaction.add_events([event for event, _ in self._pending], self._job)
        return len(self._pending)

    def publish(self, count: int) -> None:
        """Publish the first `count` pending events, once their transaction is committed."""
        self._show(count)

    def _show(self, count: int) -> None:
        batch, self._pending = self._pending[:count], self._pending[count:]
        if batch:
            self.recent.extend((event.number, update) for event, update in batch)
            self.committed = batch[-1][0].number
            self._notify()

    def after(self, number: int) -> list[Numbered] | None:
        """Return the committed updates after a number, or `None` if some are no longer in memory."""
        if number >= self.committed:
            return []
        if not self.recent or self.recent[0][0] > number + 1:
            return None
        return [numbered for numbered in self.recent if numbered[0] > number]


class Job:
    """The background run of a turn."""

    def __init__(
        self, store: HostStateStore, run: BackgroundRun, log: EventLog | None = None, earlier: Sequence[Any] = ()
    ) -> None:
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
        """Return True if `begin` must be called before any operation that is not repeatable."""
        return self.run.on_interrupt == "restart" and not self.run.begun

    async def begin(self, also: Callable[[StateTransaction], None] | None = None) -> None:
        """Record that the run begins a non-repeatable operation, with the writes of `also`."""
        if self.guarded:
            await self._save(self.run.replace(begun=True), also)

    async def reached(self, checkpoint: CheckpointRef) -> None:
        """Record a checkpoint, together with all events before it."""
        if self.run.on_interrupt == "resume":
            await self._save(self.run.replace(checkpoint=checkpoint))

    async def _save(self, run: BackgroundRun, also: Callable[[StateTransaction], None] | None = None) -> None:
        async with self.write_events() as write:
            async with self._store.transaction() as transaction:
                count = write(transaction)
                if self.log is not None:
                    run = run.replace(events=self.log.committed + count)
                transaction.save_job(run)
                if also is not None:
                    also(transaction)
            self.run = run

    @asynccontextmanager
    async def write_events(self) -> AsyncGenerator[Callable[[StateTransaction], int]]:
        """Yield a function that adds pending events to a transaction. Publish them if the block succeeds."""
        if self.log is None:
            yield lambda _: 0
            return
        counts: list[int] = []

        def write(transaction: StateTransaction) -> int:
            counts.append(0 if self.log is None else self.log.write(transaction))
            return counts[-1]

        async with self.log.writing:
            yield write
            self.log.publish(counts[-1] if counts else 0)
