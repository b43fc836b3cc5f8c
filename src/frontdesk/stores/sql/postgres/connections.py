"""Connections to a Postgres database, their timeouts, and notifications."""

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from struct import Struct, error
from typing import Any, LiteralString, cast

import psycopg
from psycopg import AsyncConnection
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format

from frontdesk.concurrency.tasks import call_later_clean, cancel_and_wait, spawn_clean
from frontdesk.errors import ChannelConfigurationError, StoreError
from frontdesk.ids import RandomIds
from frontdesk.interfaces.store import ChangeKind, OnChange
from frontdesk.loggers import store as log
from frontdesk.stores.sql.background import CHANNEL
from frontdesk.stores.sql.migrations.schema import (
    FOUND,
    MIN_READER,
    POSTGRES,
    SCHEMA_TABLE,
    VERSION,
    check_foreign_tables,
    check_min_reader,
    list_needed_by,
    list_notes,
    min_reader_after,
    steps_from,
)
from frontdesk.stores.sql.migrations.steps import BATCH_ROWS, Backfill

APPLICATION = "frontdesk"
"""The prefix of the application name of a host; up to schema version 10 it is the whole name."""
HOSTS = (
    "SELECT application_name FROM pg_stat_activity WHERE datname = current_database() "
    f"AND (application_name = '{APPLICATION}' OR starts_with(application_name, '{APPLICATION}/'))"
)


def application_name(version: int) -> str:
    return f"{APPLICATION}/{version}/{RandomIds().new('host')}"


def describe(names: Iterable[str], min_reader: int) -> str:
    """Describe the hosts behind connection names, and whether they can continue. Return "" if there are none.

    `floor` is the lowest schema that a host must know from now on.
    """
    unnamed, hosts = 0, set[str]()
    for name in names:
        if name == APPLICATION:
            unnamed += 1
        else:
            hosts.add(name)
    versions = Counter(_parse_version(name) for name in hosts)
    parts = [
        f"{count} of schema version {version} ({_fate(version, min_reader)})" for version, count in versions.items()
    ]
    if unnamed:
        parts.append(f"{unnamed} connections of hosts older than schema version 11 ({_fate(10, min_reader)})")
    return ", ".join(sorted(parts))


def _parse_version(name: str) -> int:
    number = name.split("/")[1]
    return int(number) if number.isdigit() else 0


def _fate(version: int, min_reader: int) -> str:
    return "they go on" if version >= min_reader else "they will refuse to work on"


MIGRATIONS = 0x66726F6E74
"""The number of the lock under which a schema is changed: one process at a time."""
_ANSWER_TIMEOUT_SECONDS = 60.0
_LIMITS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
_TRANSACTION_TIMEOUT_SINCE = 17_00_00
_MAX_INTEGER = 2**31 - 1
REGISTERED = "hashtext('frontdesk ' || to_regclass('frontdesk_schema')::oid::text)"
"""The first number of the advisory lock of each connection to a store; the second is a limit in milliseconds."""
_REGISTER = f"SELECT pg_try_advisory_lock_shared({REGISTERED}, ?::int)"


class HungError(psycopg.OperationalError):
    """The server has not responded within the timeout."""


class TimedConnection(AsyncConnection[Any]):
    """A connection that is shut down if a response takes too long, as when the network drops all packets."""

    answer_timeout = _ANSWER_TIMEOUT_SECONDS

    async def wait(self, gen: Any, *settings: Any, **more: Any) -> Any:
        hung = False

        def hang_up() -> None:
            nonlocal hung
            hung = True
            with suppress(OSError), socket.socket(fileno=os.dup(self.fileno())) as copy:
                copy.shutdown(socket.SHUT_RDWR)

        timer = call_later_clean(self.answer_timeout, hang_up)
        try:
            return await super().wait(gen, *settings, **more)
        except psycopg.OperationalError as error:
            if hung:
                raise HungError(f"no response within {self.answer_timeout:g} s") from error
            raise
        finally:
            timer.cancel()


class Address:
    def __init__(self, conninfo: str, *, statement_timeout: float, connect_timeout: float) -> None:
        try:
            options = conninfo_to_dict(conninfo).get("options") or ""
        except psycopg.ProgrammingError:
            # The error may quote a part of the password.
            raise ChannelConfigurationError("conninfo: not a valid libpq connection string") from None
        milliseconds = round(statement_timeout * 1000)
        self.statement_timeout = statement_timeout
        self._transaction_timeout = min(2 * milliseconds, _MAX_INTEGER)
        self.server_ends_transactions = True
        """Whether the server itself ends a transaction whose process has stopped; known once there is a connection."""
        self.conninfo = conninfo
        # The server itself gives up after the first of the two.
        self._answer_timeout = statement_timeout + connect_timeout
        self.connect_settings: dict[str, Any] = {
            "autocommit": True,
            "connect_timeout": max(1, round(connect_timeout)),
            "keepalives_idle": 10,
            "tcp_user_timeout": milliseconds,
            "application_name": application_name(VERSION),
        }
        self.settings: dict[str, Any] = {
            **self.connect_settings,
            "prepare_threshold": 2,
            "options": " ".join([str(options), *(f"-c {limit}={milliseconds}" for limit in _LIMITS)]),
        }

    async def configure(self, connection: TimedConnection) -> None:
        connection.answer_timeout = self._answer_timeout
        self.server_ends_transactions = connection.info.server_version >= _TRANSACTION_TIMEOUT_SINCE
        # A process that stops in the middle of a pipeline neither runs a statement nor idles in the server's eyes:
        # without either of these, it would keep its locks for as long as it stands still.
        if self.server_ends_transactions:
            await connection.execute(statement(f"SET transaction_timeout = {self._transaction_timeout}"))
        else:
            await self._register(connection)

    async def _register(self, connection: TimedConnection) -> None:
        """Register the connection, so that other hosts can terminate it if it stalls in a transaction."""
        try:
            await connection.execute(statement(_REGISTER), (self._transaction_timeout,))
        except psycopg.Error as error:
            if connection.closed:
                raise
            # It works as well without; only a stop in the middle of a write would last longer for others.
            log.warning("failed to register the connection for other hosts: %s", error_line(error))

    async def prepare(self) -> None:
        """Migrate the schema. Raise `StoreError` on failure."""
        try:
            # Outside the pool, because a step may take long, and a pool does not say why it can't connect.
            async with await AsyncConnection.connect(self.conninfo, **self.connect_settings) as connection:
                await _migrate(connection)
        except psycopg.Error as error:
            raise StoreError(f"the database can't be opened: {error_line(error)}") from error


async def _migrate(connection: "AsyncConnection[Any]") -> None:
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATIONS,))
        await connection.execute(SCHEMA_TABLE)
        current = await _number(connection, FOUND) or 0
        if current > VERSION:
            check_min_reader(await _number(connection, MIN_READER))
        if not current:
            tables = await connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
            check_foreign_tables([name for (name,) in await tables.fetchall()])
        steps = steps_from(current, **POSTGRES)
        if current and steps:
            await _warn_of_others(connection, current)
        for version, statements in steps:
            for backfill in list_needed_by(version):
                await _fill(connection, backfill)
            for sql in (*statements, *list_notes(version)):
                await connection.execute(statement(sql))


async def _warn_of_others(connection: "AsyncConnection[Any]", current: int) -> None:
    """Log the other hosts of a store whose schema is about to change. They detect it themselves later."""
    rows = await (await connection.execute(f"{HOSTS} AND pid <> pg_backend_pid()".encode())).fetchall()
    others = describe([name for (name,) in rows], min_reader_after(current))
    if others:
        log.warning(
            "migrating the schema while other hosts are connected: from=%d to=%d: %s",
            current,
            VERSION,
            others,
        )


async def _number(connection: "AsyncConnection[Any]", question: LiteralString) -> int | None:
    row = await (await connection.execute(question)).fetchone()
    return None if row is None else row[0]


async def _fill(connection: "AsyncConnection[Any]", backfill: Backfill) -> None:
    position = backfill.start
    while rows := await (await connection.execute(statement(backfill.select), (position, BATCH_ROWS))).fetchall():
        for sql, values in backfill.changes(rows):
            await connection.execute(statement(sql), values)
        position = str(rows[-1][0])


@lru_cache(maxsize=512)
def statement(text: str) -> LiteralString:
    return cast(LiteralString, text.replace("?", "%s"))


def error_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


_RETRY_INTERVAL_SECONDS = 1.0


class Listener:
    def __init__(self, address: Address) -> None:
        self._address = address
        self._task: asyncio.Task[None] | None = None
        self.subscribers: list[OnChange] = []

    def start(self) -> None:
        self._task = spawn_clean(self._run())

    async def stop(self) -> None:
        task, self._task = self._task, None
        await cancel_and_wait(task)

    async def _run(self) -> None:
        while True:
            try:
                await self._listen()
            except psycopg.Error as error:
                log.warning("failed to receive notifications of other processes, retrying: %s", error_line(error))
            await asyncio.sleep(_RETRY_INTERVAL_SECONDS)

    async def _listen(self) -> None:
        connection: AsyncConnection[Any]
        address = self._address
        async with await AsyncConnection.connect(address.conninfo, **address.connect_settings) as connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            # Notifications may have been missed.
            for kind in ("work", "run", "cancel"):
                self._notify(kind, "")
            async for notice in connection.notifies():
                kind, _, run_id = notice.payload.partition(" ")
                self._notify(kind, run_id)

    def _notify(self, kind: str, run_id: str) -> None:
        for on_change in self.subscribers:
            on_change(cast(ChangeKind, kind), run_id)


_HEAD = Struct("!iiIii")
_LENGTH = Struct("!i").pack
_NULL = _LENGTH(-1)
_BIGINT = Struct("!iq").pack
_SMALLINT = Struct("!ih").pack
_DOUBLE = Struct("!id").pack
_BOOLEAN = Struct("!i?").pack


class _Array:
    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


Writer = Callable[[Any], bytes]


def _bytes(value: bytes) -> bytes:
    return _LENGTH(len(value)) + value


def _text(value: str) -> bytes:
    return _bytes(value.encode())


class _Kind:
    def __init__(self, oid: int, array_oid: int, write: Writer) -> None:
        class Array(_Array):
            """An array of this type. Psycopg chooses the dumper by the class."""

            __slots__ = ()

        class ArrayDumper(Dumper):
            format = Format.BINARY

            def dump(self, obj: _Array) -> bytes:
                return obj.data

        ArrayDumper.oid = array_oid
        psycopg.adapters.register_dumper(Array, ArrayDumper)
        self._oid = oid
        self._array = Array
        self._write = write

    def array(self, values: Sequence[Any]) -> _Array:
        """Return the values, at least one, as a one-dimensional array."""
        write = self._write
        try:
            written = [_NULL if value is None else write(value) for value in values]
        except error as wrong:
            raise psycopg.DataError(f"a value does not fit its column: {wrong}") from wrong
        return self._array(_HEAD.pack(1, 1, self._oid, len(values), 1) + b"".join(written))


_KINDS = {
    "text": _Kind(25, 1009, _text),
    "bytea": _Kind(17, 1001, _bytes),
    "double precision": _Kind(701, 1022, lambda value: _DOUBLE(8, value)),
    "bigint": _Kind(20, 1016, lambda value: _BIGINT(8, value)),
    "smallint": _Kind(21, 1005, lambda value: _SMALLINT(2, value)),
    "boolean": _Kind(16, 1000, lambda value: _BOOLEAN(1, value)),
}


def columns(kinds: Iterable[str], rows: Sequence[Sequence[Any]]) -> list[_Array]:
    """Return rows of the same shape as one array per column. `kinds` are the column types."""
    return [_KINDS[kind].array(column) for kind, column in zip(kinds, zip(*rows, strict=True), strict=True)]
