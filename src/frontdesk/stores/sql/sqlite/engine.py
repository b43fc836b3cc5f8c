"""The SQLite engine for one process with one file. One thread writes, two threads read."""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from frontdesk.clock import Clock, SystemClock
from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.errors import FrontdeskError, StaleTurnError, StoreError, StoreUnavailableError
from frontdesk.loggers import store as log
from frontdesk.models.file import FileLimits
from frontdesk.models.operations import Expiry
from frontdesk.models.session import Lease
from frontdesk.stores.sql.migrations.schema import (
    FOUND,
    MIN_READER,
    SCHEMA_TABLE,
    SQLITE,
    VERSION,
    check_foreign_tables,
    check_min_reader,
    list_needed_by,
    list_notes,
    steps_from,
)
from frontdesk.stores.sql.migrations.steps import BATCH_ROWS, Backfill
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk.stores.sql.tables import values_sql
from frontdesk.stores.sql.writes import (
    Do,
    Fence,
    Group,
    Op,
    Outcome,
    Put,
    Rows,
    Write,
    WriteHealth,
    add_cause,
    group_writes,
    resolve,
)

J = TypeVar("J")

_MIN_BATCH = 8
"""The size from which a batch waits for more: so many jobs come at once only under load."""


class BatchThread(Generic[J]):
    """Runs jobs in batches on its own thread. An exception as outcome is raised in the waiter."""

    def __init__(
        self,
        name: str,
        work: Callable[[Sequence[J]], Sequence[Any]],
        *,
        most: int = 256,
        linger: float = 0.0,
        answer: type[asyncio.Future[Any]] = asyncio.Future,
    ) -> None:
        """Start the thread. A batch of some size waits `linger` seconds for more jobs.

        `answer` is the future class for the outcome of a job.
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
        answer = self._answer(loop=self._loop)
        if self._stopping.is_set():
            answer.set_exception(StoreUnavailableError())
        else:
            self._queue.put((job, answer))
        return answer

    async def stop(self) -> None:
        """Reject new jobs, and wait until the queued ones are done."""
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
        """Add an entry and all queued ones to a batch. Return True if there will be more."""
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


class LocalLeases:
    """The leases of sessions in this process. They end with the process, as its turns do."""

    def __init__(self, flush: Callable[[], Awaitable[Any]]) -> None:
        """Start without leases. `flush` returns when all queued writes are done."""
        self._flush = flush
        self._fences: dict[str, int] = {}
        self._begun: dict[str, str] = {}
        self._count = 0

    def begin(self, owner: str, session_id: str) -> Lease:
        self._begun[session_id] = owner
        return self._next(session_id)

    async def claim(self, session_id: str, *, force: bool = False) -> Lease:
        lease = self._next(session_id)
        if force:
            # Writes of the earlier holder that are queued count, and the new one must see them.
            await self._flush()
        return lease

    def _next(self, session_id: str) -> Lease:
        self._count += 1
        self._fences[session_id] = self._count
        return Lease(session_id=session_id, fence=self._count)

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Lease]:
        return ()

    def release(self, lease: Lease) -> None:
        if self.holds(lease):
            del self._fences[lease.session_id]
            self._begun.pop(lease.session_id, None)

    def find_begun_owner(self, session_id: str) -> str | None:
        return self._begun.get(session_id)

    def list_taken(self) -> Collection[str]:
        return self._fences.keys()

    def holds(self, lease: Lease) -> bool:
        return self._fences.get(lease.session_id) == lease.fence


MAX_CHECKED_AT_START_BYTES = 64 * 1024 * 1024
"""The size up to which a file is checked before the host starts: about a second from a slow disk, 0.1 from memory."""
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name"

DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
UNWRITABLE_CODES = DAMAGE_CODES | {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
}
"""The primary codes of errors with which no write is possible at the moment, whatever is written."""


def get_error_code(error: object) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def build_damaged_error(path: Path, reason: object) -> StoreError:
    """Return the error for a damaged database, with the remedy."""
    return StoreError(
        f"the database {path} is damaged: {reason}. Stop the host, keep a copy of the file and of {path.name}-wal, and "
        f'put a backup in its place; without a backup, run `sqlite3 {path} ".recover" | sqlite3 recovered.db` and use '
        "recovered.db"
    )


def is_small(path: Path) -> bool:
    """Return True if a file is small enough to be checked before the host starts."""
    return path.stat().st_size <= MAX_CHECKED_AT_START_BYTES


def find_damage(connection: sqlite3.Connection) -> str | None:
    """Return the first damage in a database, or `None` if there is none, or the file is not a database.

    Each table is read separately, so that a concurrent check does not hold the write-ahead log all the time.
    """
    try:
        for (table,) in connection.execute(_TABLES).fetchall():
            quoted = str(table).replace("'", "''")
            for (line,) in connection.execute(f"PRAGMA quick_check('{quoted}')"):
                if line != "ok":
                    return " ".join(str(line).split())
    except sqlite3.Error as error:
        if get_error_code(error) == sqlite3.SQLITE_CORRUPT:
            return str(error)
        log.warning("integrity check not completed: %s", error)
    return None


_MAX_ROWS = 128
"""The number of rows in one statement; SQLite takes 32,766 parameters."""
_READER_COUNT = 2
_LINGER_SECONDS = 0.0005
"""The time to wait for more writes, a third of a commit: under load it gains more than it delays."""
_WRONG = (sqlite3.Error, OverflowError, ValueError)
"""Errors of a statement that is refused, because of its values too."""


class SqliteStateStore(SqlStateStore):
    """A state store in one SQLite file, for one process at a time."""

    def __init__(
        self,
        path: str | Path,
        *,
        expiry: Expiry | None = None,
        clock: Clock | None = None,
        file_limits: FileLimits | None = None,
    ) -> None:
        engine = SqliteEngine(Path(path))
        expiry, clock = expiry or Expiry(), clock or SystemClock()
        super().__init__(engine, engine.leases, expiry=expiry, clock=clock, file_limits=file_limits)
        self.path = Path(path).resolve()
        self.directory = self.path.parent


class SqliteEngine:
    """Reads and writes on its own threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.leases = LocalLeases(lambda: self.write([]))
        self.health = WriteHealth(self.write)
        self._checker: Checker | None = None
        self._turn = 0
        self._writer: BatchThread[Sequence[Op] | None] | None = None
        self._readers: list[Reader] = []
        self._connection: Any = None

    async def open(self) -> None:
        self.health = WriteHealth(self.write)
        self._writer = BatchThread("frontdesk-store", self._write_batch, linger=_LINGER_SECONDS, answer=Outcome)
        try:
            await self._writer.do(None)
        except BaseException:
            await self.close()
            raise
        self._readers = [Reader(self._path, f"frontdesk-read-{number}") for number in range(_READER_COUNT)]
        if not is_small(self._path):
            self._checker = Checker(self._path, self.health)

    async def close(self) -> None:
        """Finish the queued writes, and close the file. Do nothing if it is not open."""
        await self.health.stop()
        checker, self._checker = self._checker, None
        if checker is not None:
            await checker.close()
        readers, self._readers = self._readers, []
        writer, self._writer = self._writer, None
        for reader in readers:
            await reader.close()
        if writer is not None:
            await writer.stop()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        if not self._readers:
            raise StoreUnavailableError
        self._turn = (self._turn + 1) % _READER_COUNT
        try:
            return await self._readers[self._turn].read(sql, values)
        except StoreUnavailableError as error:
            if get_error_code(error.__cause__) in DAMAGE_CODES:
                self.health.note_damage(error.__cause__)
            raise

    async def write(self, ops: Sequence[Op]) -> list[Rows]:
        for op in ops:
            if type(op) is Fence and not self.leases.holds(op.lease):
                raise StaleTurnError
        if self._writer is None:
            raise StoreUnavailableError
        try:
            return await self._writer.do(ops)
        except StoreUnavailableError as error:
            code = get_error_code(error.__cause__)
            if code in DAMAGE_CODES:
                self.health.note_damage(error.__cause__)
            elif code in UNWRITABLE_CODES:
                self.health.note_failure(ops)
            raise

    def _write_batch(self, batch: Sequence[Sequence[Op] | None]) -> Sequence[Any]:
        if batch[0] is None:
            self._connection = self._connect()
            return [None]
        writes = [Write(ops or ()) for ops in batch]
        try:
            return self._commit(writes)
        except _WRONG as error:
            if _is_away(error):
                log.error("state store not writable: %s", error)
                # An error for each, because each gets the id of its own run.
                return [add_cause(StoreUnavailableError(), error) for _ in writes]
            # One write of the batch is refused; alone, only that one fails.
            return [self._commit_alone(write) for write in writes]

    def _commit_alone(self, write: Write) -> Any:
        try:
            return self._commit([write])[0]
        except _WRONG as error:
            if _is_away(error):
                log.error("state store not writable: %s", error)
                return add_cause(StoreUnavailableError(), error)
            log.error("database rejected a write: %s", error)
            return add_cause(StoreError("the database refused the write"), error)

    def _commit(self, writes: Sequence[Write]) -> list[Any]:
        run = self._connection.execute
        outcomes: list[Any] = []
        run("BEGIN IMMEDIATE")
        try:
            for unit in group_writes(writes):
                outcomes += self._put_all(unit) if isinstance(unit, Group) else [self._run_one(unit)]
            self._finish()
        except BaseException:
            self._undo()
            raise
        return outcomes

    def _finish(self) -> None:
        self._connection.execute("COMMIT")

    def _undo(self) -> None:
        # On a full disk SQLite rolls back by itself.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _put_all(self, unit: Group) -> list[Any]:
        for table, rows in unit.rows:
            for start in range(0, len(rows), _MAX_ROWS):
                batch = rows[start : start + _MAX_ROWS]
                self._connection.execute(values_sql(table, len(batch)), [value for row in batch for value in row])
        return [write.answers for write in unit.writes]

    def _run_one(self, write: Write) -> Any:
        run = self._connection.execute
        run("SAVEPOINT one")
        for op in write.ops:
            try:
                self._do(write, op)
            except FrontdeskError as refusal:
                run("ROLLBACK TO one")
                run("RELEASE one")
                return refusal
        run("RELEASE one")
        return write.answers

    def _do(self, write: Write, op: Op) -> None:
        if type(op) is Put:
            self._connection.execute(values_sql(op.table, 1), op.row)
        elif type(op) is Do:
            cursor = self._connection.execute(op.sql, op.values)
            if op.answers:
                write.answers.append(cursor.fetchall())
            elif op.refusal is not None and cursor.rowcount == 0:
                raise op.refusal

    def _connect(self) -> sqlite3.Connection:
        try:
            # Created here, so that no other user of the machine can read it.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            connection = _connect(self._path)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error
        try:
            if is_small(self._path) and (reason := find_damage(connection)) is not None:
                raise build_damaged_error(self._path, reason)
            _migrate(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.Error):
                raise self._unusable(error) from error
            raise
        return connection

    def _unusable(self, error: OSError | sqlite3.Error) -> StoreError:
        if get_error_code(error) == sqlite3.SQLITE_CORRUPT:
            return build_damaged_error(self._path, error)
        reason = error.strerror if isinstance(error, OSError) else error
        return StoreError(f"the database {self._path} can't be opened: {reason}")


class Checker:
    """Looks for damage in a file that is too large to be checked before the host starts."""

    def __init__(self, path: Path, health: WriteHealth) -> None:
        self._connection = _connect(path)
        self._connection.execute("PRAGMA query_only = ON")
        self._path, self._health = path, health
        self._thread = BatchThread[None]("frontdesk-check", lambda _: [find_damage(self._connection)])
        self._task = spawn_clean(self._check())

    async def _check(self) -> None:
        reason = await self._thread.do(None)
        if reason is not None:
            self._health.note_damage(build_damaged_error(self._path, reason))

    async def close(self) -> None:
        """End the check, complete or not."""
        self._connection.interrupt()
        await self._thread.stop()
        await cancel_and_wait(self._task)
        self._connection.close()


class Reader:
    def __init__(self, path: Path, name: str) -> None:
        self._connection = _connect(path)
        self._connection.execute("PRAGMA query_only = ON")
        self._thread = BatchThread[tuple[str, Sequence[Any]]](name, self._answer)

    async def read(self, sql: str, values: Sequence[Any]) -> Rows:
        return await self._thread.do((sql, values))

    async def close(self) -> None:
        await self._thread.stop()
        self._connection.close()

    def _answer(self, batch: Sequence[tuple[str, Sequence[Any]]]) -> Sequence[Any]:
        return [self._rows(sql, values) for sql, values in batch]

    def _rows(self, sql: str, values: Sequence[Any]) -> Any:
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            log.error("state store not readable: %s", error)
            return add_cause(StoreUnavailableError(), error)
        except _WRONG as error:
            return add_cause(StoreError("the database refused to answer"), error)


def _is_away(error: Exception) -> bool:
    """Return True for an error of the database as a whole, not of the written data."""
    return isinstance(error, sqlite3.OperationalError) or get_error_code(error) in DAMAGE_CODES


def _migrate(connection: sqlite3.Connection) -> None:
    # All steps in one transaction: if one fails, the file is unchanged.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(SCHEMA_TABLE)
    current = connection.execute(FOUND).fetchone()[0] or 0
    if current > VERSION:
        check_min_reader(connection.execute(MIN_READER).fetchone()[0])
    if not current:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        check_foreign_tables([name for (name,) in tables])
    for version, statements in steps_from(current, **SQLITE):
        for backfill in list_needed_by(version):
            _fill(connection, backfill)
        for statement in (*statements, *list_notes(version)):
            connection.execute(statement)
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    # The first read opens the write-ahead log, and so shows other processes that the file is in use.
    connection.execute("SELECT version FROM frontdesk_schema").fetchall()


def _fill(connection: sqlite3.Connection, backfill: Backfill) -> None:
    position = backfill.start
    while rows := connection.execute(backfill.select, (position, BATCH_ROWS)).fetchall():
        for sql, values in backfill.changes(rows):
            connection.execute(sql, values)
        position = str(rows[-1][0])


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=1024, timeout=5.0)
