"""Transaction operations, and the grouping of many transactions into few statements. Pure.

A transaction is a list of operations. Operations that only put whole rows need no result, so the rows of many
transactions are written in one statement per table. All other operations run one by one, in their order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.errors import FrontdeskError, StoreUnavailableError
from frontdesk.ids import RandomIds
from frontdesk.loggers import store as log
from frontdesk.models.session import Lease
from frontdesk.stores.sql.tables import Table

Row = Sequence[Any]


class Put(Struct, frozen=True, gc=False):
    """The upsert of a whole row."""

    table: Table
    row: Row


class Do(Struct, frozen=True, gc=False):
    """A separate statement. `?` is a parameter."""

    sql: str
    values: Row = ()
    refusal: Exception | None = None
    """The error that fails the transaction if the statement changes nothing."""
    answers: bool = False
    """Whether its rows are wanted."""


class Fence(Struct, frozen=True, gc=False):
    """A check that a lease is the latest of its session. The lease is released unless it is kept."""

    lease: Lease
    keep: bool


Op = Put | Do | Fence


class Write:
    __slots__ = ("answers", "ops", "plain")

    def __init__(self, ops: Sequence[Op]) -> None:
        self.ops = ops
        self.plain = Do not in [type(op) for op in ops]
        self.answers: list[Sequence[Row]] = []

    @property
    def fences(self) -> list[Fence]:
        return [op for op in self.ops if type(op) is Fence]


class Group(NamedTuple):
    """Transactions whose rows are merged, one statement per table."""

    writes: list[Write]
    rows: list[tuple[Table, list[Row]]]


def group_writes(writes: Iterable[Write]) -> Iterator[Group | Write]:
    """Yield the same work in fewer statements, in an order with the same result."""
    together: list[Write] = []
    for write in writes:
        if write.plain:
            together.append(write)
            continue
        if together:
            yield group(together)
            together = []
        yield write
    if together:
        yield group(together)


def group(writes: list[Write]) -> Group:
    """Merge the rows of plain transactions. For equal keys the later row wins, or the newer by its time."""
    tables: dict[Table, dict[Any, Row]] = {}
    for write in writes:
        for op in write.ops:
            if type(op) is Put:
                table, row = op.table, op.row
                rows = tables.get(table)
                if rows is None:
                    rows = tables[table] = {}
                place = table.get_key(row) if table.unique else len(rows)
                if not table.newest or place not in rows or table.extract_time(rows[place]) <= table.extract_time(row):
                    rows[place] = row
    return Group(writes, [(table, _in_order(table, rows)) for table, rows in sorted(tables.items())])


def _in_order(table: Table, rows: dict[Any, Row]) -> list[Row]:
    # Processes that lock rows in the same order never deadlock.
    return [rows[place] for place in sorted(rows)] if table.unique else list(rows.values())


E = TypeVar("E", bound=BaseException)


class Outcome(asyncio.Future[Any]):
    """The outcome of a write. Cancelling a waiter takes effect only when the outcome is known.

    The write is done in any case. A waiter that left earlier would release its session while its turn is still being
    written, and the next turn would not see it.
    """

    def cancel(self, msg: Any = None) -> bool:
        """Ignore the cancellation. The task is cancelled when it resumes."""
        return False


def resolve(answer: "asyncio.Future[Any]", outcome: Any) -> None:
    """Pass an outcome to its waiter, if it still waits. An exception is raised there."""
    if answer.done():
        return
    if isinstance(outcome, BaseException):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


def add_cause(error: E, cause: BaseException) -> E:
    """Return an error with its cause, for passing the error as a value."""
    error.__cause__ = cause
    return error


PROBE_INTERVAL_SECONDS = 1.0
"""The seconds between two probes, at least."""
MIN_PROBE_BYTES = 64 * 1024
MAX_PROBE_BYTES = 4 * 1024 * 1024
"""The most that a probe writes. It writes as much as what has failed, or a small probe would find room for itself."""
_STORAGE = "write probe"
# It has expired when it is written: should its removal fail, the sweep removes it.
_PUT = (
    "INSERT INTO channel_values (version, key_id, data, expires_at, channel, storage, name) "
    f"VALUES ('', '', ?, 0, '', '{_STORAGE}', ?) "
    "ON CONFLICT (channel, storage, name) DO UPDATE SET data = excluded.data"
)
_REMOVE = f"DELETE FROM channel_values WHERE channel = '' AND storage = '{_STORAGE}' AND name = ?"


class WriteHealth:
    """Tracks whether a database is writable, as far as is known.

    A failed write makes it unwritable until a probe succeeds. The probe is committed, so that it detects a full disk. A
    damaged file does not recover and is not probed.
    """

    def __init__(self, write: Callable[[Sequence[Op]], Awaitable[Any]]) -> None:
        """Probe by calling `write`."""
        self._write = write
        self._name = RandomIds().new("probe")
        self._fails = self._is_damaged = False
        self._bytes = 0
        self._probed_at = float("-inf")
        self._probing: asyncio.Task[None] | None = None

    def check(self) -> None:
        """Raise `StoreUnavailableError` while writes fail."""
        if self._fails or self._is_damaged:
            raise StoreUnavailableError

    def note_failure(self, ops: Sequence[Op]) -> None:
        """Record that operations failed because the database currently accepts no writes."""
        self._bytes = min(max(self._bytes, _count_bytes(ops)), MAX_PROBE_BYTES)
        if self._fails or self._is_damaged:
            return
        self._fails = True
        log.error("state store not writable, rejecting new turns until a probe succeeds")
        self._probing = spawn_clean(self._probe_until_good())

    def note_damage(self, reason: object) -> None:
        """Record that the database is damaged, until this process ends."""
        if not self._is_damaged:
            self._is_damaged = True
            log.error("state store damaged, rejecting new turns: %s", reason)

    async def stop(self) -> None:
        await cancel_and_wait(self._probing)

    async def _probe_until_good(self) -> None:
        clock = asyncio.get_running_loop().time
        while self._fails:
            await asyncio.sleep(max(0.0, self._probed_at + PROBE_INTERVAL_SECONDS - clock()))
            self._probed_at = clock()
            try:
                await self._write([Do(_PUT, (bytes(max(self._bytes, MIN_PROBE_BYTES)), self._name))])
                await self._write([Do(_REMOVE, (self._name,))])
            except FrontdeskError:
                continue
            self._fails, self._bytes = False, 0
            log.info("state store writable again")


def _count_bytes(ops: Sequence[Op]) -> int:
    size = 0
    for op in ops:
        row = op.row if isinstance(op, Put) else op.values if isinstance(op, Do) else ()
        size += sum(len(value) for value in row if isinstance(value, bytes | str))
    return size


Rows = Sequence[Sequence[Any]]


class Engine(Protocol):
    """A database that runs queries and transactions. Both may raise `StoreUnavailableError`."""

    health: WriteHealth

    async def read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Return the rows of a query. `?` is a parameter."""
        ...

    async def write(self, ops: Sequence[Op]) -> list[Rows]:
        """Commit all operations or none. Return the rows of the statements that request them."""
        ...

    async def open(self) -> None:
        """Connect, and migrate the schema."""
        ...

    async def close(self) -> None:
        """Finish the queued writes, and disconnect."""
        ...
