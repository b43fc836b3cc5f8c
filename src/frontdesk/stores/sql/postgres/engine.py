"""The Postgres engine for many processes. One task writes for all turns of a process, a pool reads."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from frontdesk.errors.base import install_hint

try:
    import psycopg
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool, PoolTimeout
except ImportError as error:
    raise ImportError(f"PostgresStateStore needs psycopg: {install_hint('postgres')}") from error

from frontdesk.clock import Clock, SystemClock
from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.errors import (
    ChannelConfigurationError,
    FrontdeskError,
    StaleTurnError,
    StoreError,
    StoreUnavailableError,
)
from frontdesk.ids import RandomIds
from frontdesk.interfaces.store import OnChange
from frontdesk.loggers import store as log
from frontdesk.models.file import FileLimits
from frontdesk.models.operations import Expiry
from frontdesk.secret import Secret, reveal
from frontdesk.stores.sql.background import build_shared_lease_sql
from frontdesk.stores.sql.postgres.connections import (
    APPLICATION,
    REGISTERED,
    Address,
    HungError,
    Listener,
    TimedConnection,
    columns,
    error_line,
    statement,
)
from frontdesk.stores.sql.shared_leases import CHECK, SharedLeases
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk.stores.sql.tables import arrays_sql, key
from frontdesk.stores.sql.writes import (
    Do,
    Engine,
    Fence,
    Group,
    Op,
    Put,
    Rows,
    Write,
    WriteHealth,
    add_cause,
    group,
    group_writes,
    resolve,
)

_MIN_DELAY_SECONDS = 1.0
# A transaction that waits for its client is "idle in transaction" after a Sync, and "active" before one. A role may
# terminate its own connections, and needs no other permission.
_TERMINATE = f"""
SELECT activity.pid, activity.application_name,
    extract(epoch FROM clock_timestamp() - activity.state_change)::double precision,
    pg_terminate_backend(activity.pid)
FROM pg_locks AS held JOIN pg_stat_activity AS activity ON activity.pid = held.pid
WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 2
AND held.classid = {REGISTERED}::oid
AND held.database = activity.datid AND activity.datname = current_database()
AND activity.usename = current_user AND activity.pid <> pg_backend_pid()
AND starts_with(activity.application_name, '{APPLICATION}/')
AND activity.xact_start IS NOT NULL
AND (starts_with(activity.state, 'idle in transaction')
    OR (activity.state = 'active' AND activity.wait_event_type = 'Client'))
AND activity.state_change < clock_timestamp() - held.objid::bigint * interval '1 millisecond'
"""


class StalledTransactions:
    """Periodically looks for stalled transactions of other hosts, with one query that scales with connections."""

    def __init__(self, engine: Engine, address: Address) -> None:
        self._engine = engine
        self._address = address
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = spawn_clean(self._run())

    async def stop(self) -> None:
        task, self._task = self._task, None
        await cancel_and_wait(task)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(max(_MIN_DELAY_SECONDS, self._address.statement_timeout))
            # The error was logged where it happened, and the next look tries again.
            with suppress(StoreUnavailableError, StoreError):
                await self.end()

    async def end(self) -> int:
        """Terminate the connections whose transactions have idled for too long. Return their number."""
        if self._address.server_ends_transactions:
            return 0
        rows = await self._engine.read(_TERMINATE)
        for pid, name, seconds, _ in rows:
            log.warning(
                "terminated a connection whose host stopped in the middle of a write: host=%s pid=%d idle_seconds=%.1f",
                name,
                pid,
                seconds,
            )
        return len(rows)


_GONE = (psycopg.OperationalError, psycopg.InterfaceError)
_AWAY = (PoolTimeout, HungError)
"""Errors after which a retry would only take longer."""
_WRONG = (psycopg.Error, ValueError)
_CLASHED = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)
_UNWRITABLE = (
    psycopg.errors.ReadOnlySqlTransaction,
    psycopg.errors.DataCorrupted,
    psycopg.errors.IndexCorrupted,
)
"""Errors of a database that takes no writes, which psycopg counts among the errors of a statement."""
_UNWRITABLE_CLASSES = ("08", "25", "53", "57P", "58", "XX")
"""The beginnings of the codes of errors with which no write is possible at the moment, whatever is written."""
_MAX_BATCH_SIZE = 256
_MAX_TRIES = 5


class PostgresStateStore(SqlStateStore):
    """A state store in a Postgres database, for any number of processes."""

    outlasts_timeouts = True
    """Whether a lease must be longer than the timeouts; a test that can't wait for its end may turn it off."""

    def __init__(
        self,
        conninfo: str | Secret,
        *,
        expiry: Expiry | None = None,
        clock: Clock | None = None,
        lease_seconds: float = 30.0,
        pool_size: int = 8,
        statement_timeout: float = 10.0,
        connect_timeout: float = 3.0,
        file_limits: FileLimits | None = None,
    ) -> None:
        """Use the database at `conninfo` in libpq's format: `postgresql://user@host/name`.

        A lease must outlast a statement that hangs, so `lease_seconds` must exceed the sum of the two timeouts.
        """
        if self.outlasts_timeouts and lease_seconds <= statement_timeout + connect_timeout:
            raise ChannelConfigurationError(
                f"lease_seconds: {lease_seconds:g} must be longer than statement_timeout and connect_timeout together "
                f"({statement_timeout + connect_timeout:g}), otherwise one hanging statement loses the session lease"
            )
        engine = PostgresEngine(reveal(conninfo), lease_seconds, pool_size, statement_timeout, connect_timeout)
        clock = clock or SystemClock()
        # Another process may change an identity by linking it; this one sees it within a second.
        super().__init__(
            engine,
            engine.leases,
            expiry=expiry or Expiry(),
            clock=clock,
            lease_sql=build_shared_lease_sql(lease_seconds),
            refuse=engine.refuse,
            identities_fresh_for=1.0,
            file_limits=file_limits,
        )
        self.lease_seconds = lease_seconds
        self.address = engine.address
        self._listener = Listener(engine.address)
        self._stalled = StalledTransactions(engine, engine.address)

    def listen(self, on_change: OnChange) -> None:
        self._listener.subscribers.append(on_change)

    async def open(self) -> None:
        await super().open()
        self._listener.start()
        self._stalled.start()

    async def close(self) -> None:
        await self._stalled.stop()
        await self._listener.stop()
        await super().close()


class PostgresEngine:
    def __init__(
        self, conninfo: str, lease_seconds: float, pool_size: int, statement_timeout: float, connect_timeout: float
    ) -> None:
        self.address = Address(conninfo, statement_timeout=statement_timeout, connect_timeout=connect_timeout)
        self._size = pool_size
        self._wait = connect_timeout
        self.leases = SharedLeases(RandomIds().new("host"), lease_seconds, self.write)
        self.health = WriteHealth(self.write)
        self._queue: list[tuple[Write, asyncio.Future[Any]]] = []
        self._wakeup = asyncio.Event()
        self._closing = True
        self._refused = False

    def refuse(self) -> None:
        """Refuse all reads and writes from now on, because the schema has become too new."""
        self._refused = True

    async def open(self) -> None:
        await self.address.prepare()
        self._refused = False
        self.health = WriteHealth(self.write)
        self._pool = AsyncConnectionPool(
            self.address.conninfo,
            min_size=1,
            max_size=self._size,
            open=False,
            timeout=self._wait,
            # The pauses between attempts double. After this the pool gives up, and starts anew at the next request.
            reconnect_timeout=2 * self._wait,
            name=APPLICATION,
            connection_class=TimedConnection,
            configure=self.address.configure,
            kwargs=self.address.settings,
        )
        await self._pool.open()
        self._closing = False
        self._writer = spawn_clean(self._write_batches())

    async def close(self) -> None:
        """Finish the queued writes, and disconnect. Do nothing if it was never opened."""
        if self._closing:
            return
        await self.health.stop()
        await self.leases.wait_for_releases()
        self._closing = True
        self._wakeup.set()
        await self._writer
        await self._pool.close()

    async def read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        if self._refused:
            raise StoreUnavailableError
        try:
            return await self._rows(sql, values)
        except _AWAY as error:
            raise self._unavailable("read", error) from error
        except _GONE:
            # A connection that the server has closed looks alive until it is used: check the others, and try once
            # more.
            await self._pool.check()
        try:
            return await self._rows(sql, values)
        except _GONE as error:
            raise self._unavailable("read", error) from error
        except _WRONG as error:
            raise StoreError("the database refused to answer") from error

    async def _rows(self, sql: str, values: Sequence[Any]) -> Rows:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(statement(sql), values)
            return await cursor.fetchall()

    def _unavailable(self, what: str, error: BaseException) -> StoreUnavailableError:
        log.error("state store cannot be %s: %s", what, error_line(error))
        return add_cause(StoreUnavailableError(), error)

    async def write(self, ops: Sequence[Op]) -> list[Rows]:
        if self._closing or self._refused:
            raise StoreUnavailableError
        ops = list(ops)
        for op in tuple(ops):
            if type(op) is not Fence:
                continue
            if not self.leases.holds(op.lease):
                raise StaleTurnError
            if (row := self.leases.build_missing_row(op)) is not None:
                ops.append(row)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._queue.append((Write(ops), answer))
        self._wakeup.set()
        try:
            return await answer
        except StoreUnavailableError as error:
            if _is_unwritable(error.__cause__):
                self.health.note_failure(ops)
            raise

    async def _write_batches(self) -> None:
        while self._queue or not self._closing:
            if not self._queue:
                self._wakeup.clear()
                await self._wakeup.wait()
                continue
            batch, self._queue = self._queue[:_MAX_BATCH_SIZE], self._queue[_MAX_BATCH_SIZE:]
            writes = [write for write, _ in batch]
            try:
                outcomes = await self._write_all(writes)
            except Exception as error:  # Every waiter must get an outcome, and the task must go on.
                outcomes = [error] * len(writes)
            for (write, answer), outcome in zip(batch, outcomes, strict=True):
                if not isinstance(outcome, BaseException):
                    for fence in write.fences:
                        self.leases.note_saved(fence)
                resolve(answer, outcome)

    async def _write_all(self, writes: Sequence[Write]) -> Sequence[Any]:
        for attempt in range(1, _MAX_TRIES + 1):
            progress = _Progress()
            try:
                return await self._commit(writes, progress)
            except _CLASHED as error:
                # Another process has locked the same rows in another order; one write at a time avoids that.
                if len(writes) > 1:
                    return [(await self._write_all([write]))[0] for write in writes]
                if attempt == _MAX_TRIES:
                    return [self._unavailable("written", error)]
            except _GONE as error:
                if progress.committing or attempt > 1 or isinstance(error, _AWAY):
                    return [self._unavailable("written", error) for _ in writes]
                await self._pool.check()
            except _UNWRITABLE as error:
                return [self._unavailable("written", error) for _ in writes]
            except _WRONG as error:
                if len(writes) == 1:
                    log.error("database rejected a write: %s", error_line(error))
                    return [add_cause(StoreError("the database refused the write"), error)]
                # One write of the batch is refused; alone, only that one fails.
                return [(await self._write_all([write]))[0] for write in writes]
        raise AssertionError("unreachable")

    async def _commit(self, writes: Sequence[Write], progress: "_Progress") -> list[Any]:
        try:
            async with self._pool.connection() as connection:
                outcomes = await self._commit_all(connection, writes, progress)
        except (*_GONE, *_UNWRITABLE):
            raise
        except _WRONG:
            # A statement may fail only because one before it was to be refused.
            outcomes = None
        if outcomes is not None:
            return outcomes
        async with self._pool.connection() as connection:
            return await self._commit_each(connection, writes, progress)

    async def _commit_all(
        self, connection: "AsyncConnection[Any]", writes: Sequence[Write], progress: "_Progress"
    ) -> list[Any] | None:
        """Send all writes as one pipeline. Roll back and return `None` if any must be rejected."""
        sent: list[_Sent] = []
        async with _roll_back_on_error(connection, progress):
            try:
                async with connection.pipeline():
                    await connection.execute("BEGIN")
                    for unit in group_writes(writes):
                        sent += await self._send(connection, unit)
            except BaseException:
                # After an error the server skips the rest, but psycopg takes the skipped statements for prepared.
                await connection.close()
                raise
            if not all(request.good() for request in sent):
                await connection.execute("ROLLBACK")
                return None
            progress.committing = True
            await self._finish(connection)
        for write in writes:
            write.answers.clear()
        for request in sent:
            if isinstance(request.op, Do) and request.op.answers and request.write is not None:
                request.write.answers.append(await request.cursor.fetchall())
        return [write.answers for write in writes]

    async def _send(self, connection: "AsyncConnection[Any]", unit: Group | Write) -> "list[_Sent]":
        writes = unit.writes if isinstance(unit, Group) else [unit]
        sent: list[_Sent] = []
        if fences := [fence for write in writes for fence in write.fences if self.leases.has_row(fence.lease)]:
            cursor = await connection.execute(statement(CHECK), _lease_columns(fences))
            sent.append(_Sent(cursor, None, None, len(fences)))
        if isinstance(unit, Group):
            for table, rows in unit.rows:
                await connection.execute(statement(arrays_sql(table)), columns(table.types, rows))
            return sent
        for op in unit.ops:
            if type(op) is Put:
                await connection.execute(statement(arrays_sql(op.table)), columns(op.table.types, [op.row]))
            elif type(op) is Do:
                sent.append(_Sent(await connection.execute(statement(op.sql), op.values), unit, op, 0))
        return sent

    async def _commit_each(
        self, connection: "AsyncConnection[Any]", writes: Sequence[Write], progress: "_Progress"
    ) -> list[Any]:
        """Run the writes one by one, so that a rejected one fails alone."""
        outcomes: dict[int, Any] = {}
        for write in writes:
            write.answers.clear()
        await connection.execute("BEGIN")
        async with _roll_back_on_error(connection, progress):
            for unit in group_writes(writes):
                for write, outcome in await self._run_unit(connection, unit):
                    outcomes[id(write)] = outcome
            progress.committing = True
            await self._finish(connection)
        return [outcomes[id(write)] for write in writes]

    async def _finish(self, connection: "AsyncConnection[Any]") -> None:
        await connection.execute("COMMIT")

    async def _run_unit(self, connection: "AsyncConnection[Any]", unit: Group | Write) -> Sequence[tuple[Write, Any]]:
        if isinstance(unit, Write):
            return [(unit, await self._run_one(connection, unit))]
        stale = await self._stale_writes(connection, unit.writes)
        good = [write for write in unit.writes if write not in stale]
        for table, rows in (unit if not stale else group(good)).rows:
            await connection.execute(statement(arrays_sql(table)), columns(table.types, rows))
        return [(write, StaleTurnError() if write in stale else write.answers) for write in unit.writes]

    async def _stale_writes(self, connection: "AsyncConnection[Any]", writes: Sequence[Write]) -> Sequence[Write]:
        fences = [fence for write in writes for fence in write.fences if self.leases.has_row(fence.lease)]
        if not fences:
            return ()
        cursor = await connection.execute(statement(CHECK), _lease_columns(fences))
        good = {tuple(row) for row in await cursor.fetchall()}
        gone = [fence for fence in fences if (key(fence.lease.session_id), fence.lease.fence) not in good]
        return [write for write in writes if any(fence in gone for fence in write.fences)]

    async def _run_one(self, connection: "AsyncConnection[Any]", write: Write) -> Any:
        await connection.execute("SAVEPOINT one")
        try:
            if await self._stale_writes(connection, [write]):
                raise StaleTurnError
            for op in write.ops:
                await self._do(connection, write, op)
        except FrontdeskError as refusal:
            await connection.execute("ROLLBACK TO one")
            return refusal
        await connection.execute("RELEASE one")
        return write.answers

    async def _do(self, connection: "AsyncConnection[Any]", write: Write, op: Op) -> None:
        if type(op) is Put:
            await connection.execute(statement(arrays_sql(op.table)), columns(op.table.types, [op.row]))
        elif type(op) is Do:
            cursor = await connection.execute(statement(op.sql), op.values)
            if op.answers:
                write.answers.append(await cursor.fetchall())
            elif op.refusal is not None and cursor.rowcount == 0:
                raise op.refusal


def _is_unwritable(error: BaseException | None) -> bool:
    """Return True for an error of the database as a whole, not of the written data."""
    if not isinstance(error, psycopg.Error) or isinstance(error, HungError):
        return False
    # Without a code the connection failed.
    return error.sqlstate is None or error.sqlstate.startswith(_UNWRITABLE_CLASSES)


class _Sent(NamedTuple):
    """A statement whose response decides whether the transaction may commit."""

    cursor: Any
    write: Write | None
    op: Do | None
    fences: int

    def good(self) -> bool:
        if self.op is None:
            return self.cursor.rowcount == self.fences
        return self.op.answers or self.op.refusal is None or self.cursor.rowcount > 0


def _lease_columns(fences: Sequence[Fence]) -> list[Any]:
    rows = [(key(fence.lease.session_id), fence.lease.fence, fence.keep) for fence in fences]
    return columns(("text", "bigint", "boolean"), rows)


@asynccontextmanager
async def _roll_back_on_error(connection: "AsyncConnection[Any]", progress: "_Progress") -> AsyncGenerator[None]:
    """Roll back on an error. After the commit was sent, it is unknown whether a rollback has any effect."""
    try:
        yield
    except BaseException:
        if not connection.closed and not progress.committing:
            await connection.execute("ROLLBACK")
        raise


class _Progress:
    """The progress of a transaction. Once its commit was sent it may be complete, and is not retried."""

    committing = False
