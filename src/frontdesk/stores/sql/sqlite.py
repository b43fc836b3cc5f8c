"""SQLite: one file, one process. A thread writes, two read."""

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from frontdesk.clock import Clock, SystemClock
from frontdesk.data.expiry import Expiry
from frontdesk.data.file import FileLimits
from frontdesk.errors import FrontdeskError, StaleTurnError, StoreError, StoreUnavailableError
from frontdesk.loggers import store as log
from frontdesk.stores.sql.engine import Rows
from frontdesk.stores.sql.local_leases import LocalLeases
from frontdesk.stores.sql.migrations import (
    FLOOR,
    FOUND,
    SCHEMA_TABLE,
    SQLITE,
    VERSION,
    check_floor,
    needed_by,
    notes_of,
    steps_from,
)
from frontdesk.stores.sql.outcomes import Outcome, caused
from frontdesk.stores.sql.steps import BATCH, Backfill
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk.stores.sql.tables import values_sql
from frontdesk.stores.sql.threads import BatchThread
from frontdesk.stores.sql.writes import Do, Fence, Group, Op, Put, Write, grouped

_MOST_ROWS = 128
"""The number of rows in one statement; SQLite takes 32,766 parameters."""
_READERS = 2
_LINGER = 0.0005
"""The time to wait for more writes, a third of a commit: under load it gains more than it delays."""
_WRONG = (sqlite3.Error, OverflowError, ValueError)
"""Errors of a statement that is refused, because of its values too."""


class SqliteStateStore(SqlStateStore):
    """Everything in one file, for one process at a time."""

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
    """Reads and writes on threads of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.leases = LocalLeases(lambda: self.write([]))
        self._turn = 0
        self._writer: BatchThread[Sequence[Op] | None] | None = None
        self._readers: list[Reader] = []
        self._connection: Any = None

    async def open(self) -> None:
        """Open the file, created if need be, and migrate its schema."""
        self._writer = BatchThread("frontdesk-store", self._write_batch, linger=_LINGER, answer=Outcome)
        try:
            await self._writer.do(None)
        except BaseException:
            await self.close()
            raise
        self._readers = [Reader(self._path, f"frontdesk-read-{number}") for number in range(_READERS)]

    async def close(self) -> None:
        """Finish the queued writes, and close the file; do nothing if it is not open."""
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
        self._turn = (self._turn + 1) % _READERS
        return await self._readers[self._turn].read(sql, values)

    async def write(self, ops: Sequence[Op]) -> list[Rows]:
        for op in ops:
            if type(op) is Fence and not self.leases.holds(op.lease):
                raise StaleTurnError
        if self._writer is None:
            raise StoreUnavailableError
        return await self._writer.do(ops)

    def _write_batch(self, batch: Sequence[Sequence[Op] | None]) -> Sequence[Any]:
        if batch[0] is None:
            self._connection = self._connect()
            return [None]
        writes = [Write(ops or ()) for ops in batch]
        try:
            return self._commit(writes)
        except sqlite3.OperationalError as error:
            log.error("the state store can't be written: %s", error)
            # An error for each, because each gets the id of its own run.
            return [caused(StoreUnavailableError(), error) for _ in writes]
        except _WRONG:
            # One write of the batch is refused; alone, only that one fails.
            return [self._commit_alone(write) for write in writes]

    def _commit_alone(self, write: Write) -> Any:
        try:
            return self._commit([write])[0]
        except sqlite3.OperationalError as error:
            log.error("the state store can't be written: %s", error)
            return caused(StoreUnavailableError(), error)
        except _WRONG as error:
            log.error("the database refused a write: %s", error)
            return caused(StoreError("the database refused the write"), error)

    def _commit(self, writes: Sequence[Write]) -> list[Any]:
        run = self._connection.execute
        outcomes: list[Any] = []
        run("BEGIN IMMEDIATE")
        try:
            for unit in grouped(writes):
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
            for start in range(0, len(rows), _MOST_ROWS):
                batch = rows[start : start + _MOST_ROWS]
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
            connection = _connected(self._path)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error
        try:
            _migrate(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.Error):
                raise self._unusable(error) from error
            raise
        return connection

    def _unusable(self, error: OSError | sqlite3.Error) -> StoreError:
        reason = error.strerror if isinstance(error, OSError) else error
        return StoreError(f"the database {self._path} can't be opened: {reason}")


class Reader:
    """A connection that only reads, on a thread of its own."""

    def __init__(self, path: Path, name: str) -> None:
        self._connection = _connected(path)
        self._connection.execute("PRAGMA query_only = ON")
        self._thread = BatchThread[tuple[str, Sequence[Any]]](name, self._answer)

    async def read(self, sql: str, values: Sequence[Any]) -> Rows:
        """Return the rows of a query."""
        return await self._thread.do((sql, values))

    async def close(self) -> None:
        """Finish the queued reads, and disconnect."""
        await self._thread.stop()
        self._connection.close()

    def _answer(self, batch: Sequence[tuple[str, Sequence[Any]]]) -> Sequence[Any]:
        return [self._rows(sql, values) for sql, values in batch]

    def _rows(self, sql: str, values: Sequence[Any]) -> Any:
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            log.error("the state store can't be read: %s", error)
            return caused(StoreUnavailableError(), error)
        except _WRONG as error:
            return caused(StoreError("the database refused to answer"), error)


def _migrate(connection: sqlite3.Connection) -> None:
    # All steps in one transaction: if one fails, the file is unchanged.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(SCHEMA_TABLE)
    current = connection.execute(FOUND).fetchone()[0] or 0
    if current > VERSION:
        check_floor(connection.execute(FLOOR).fetchone()[0])
    for version, statements in steps_from(current, **SQLITE):
        for backfill in needed_by(version):
            _fill(connection, backfill)
        for statement in (*statements, *notes_of(version)):
            connection.execute(statement)
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    # The first read opens the write-ahead log, and so shows other processes that the file is in use.
    connection.execute("SELECT version FROM frontdesk_schema").fetchall()


def _fill(connection: sqlite3.Connection, backfill: Backfill) -> None:
    """Complete a backfill in the transaction of the step that needs it."""
    position = backfill.start
    while rows := connection.execute(backfill.select, (position, BATCH)).fetchall():
        for sql, values in backfill.changes(rows):
            connection.execute(sql, values)
        position = str(rows[-1][0])


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=1024, timeout=5.0)
