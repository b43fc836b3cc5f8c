"""Connections to a Postgres database, and the migration of its schema."""

import os
import socket
from contextlib import suppress
from functools import lru_cache
from typing import Any, LiteralString, cast

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict

from frontdesk.errors import ChannelConfigurationError, StoreError
from frontdesk.kit.aio.tasks import call_later_clean
from frontdesk.loggers import store as log
from frontdesk.stores.sql.migrations import (
    FLOOR,
    FOUND,
    POSTGRES,
    SCHEMA_TABLE,
    VERSION,
    check_floor,
    floor_after,
    needed_by,
    notes_of,
    steps_from,
)
from frontdesk.stores.sql.neighbours import HOSTS, application_name, describe
from frontdesk.stores.sql.steps import BATCH, Backfill

MIGRATIONS = 0x66726F6E74
"""The number of the lock under which a schema is changed: one process at a time."""
_ANSWER_TIMEOUT = 60.0
_LIMITS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
_TRANSACTION_TIMEOUT_SINCE = 17_00_00


class HungError(psycopg.OperationalError):
    """The server has not answered within the timeout."""


class TimedConnection(AsyncConnection[Any]):
    """A connection that is shut down when an answer takes too long, as when the network drops all packets."""

    answer_timeout = _ANSWER_TIMEOUT

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
                raise HungError(f"there was no answer in {self.answer_timeout:g} s") from error
            raise
        finally:
            timer.cancel()


class Address:
    """The address of a database, and the settings of its connections."""

    def __init__(self, conninfo: str, *, statement_timeout: float, connect_timeout: float) -> None:
        try:
            options = conninfo_to_dict(conninfo).get("options") or ""
        except psycopg.ProgrammingError:
            # The error may quote a part of the password.
            raise ChannelConfigurationError("conninfo: this is not an address that libpq understands") from None
        milliseconds = round(statement_timeout * 1000)
        self._transaction_timeout = 2 * milliseconds
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
        """Set the timeouts of a new connection that are no options of it."""
        connection.answer_timeout = self._answer_timeout
        if connection.info.server_version >= _TRANSACTION_TIMEOUT_SINCE:
            # A process that stops in the middle of a pipeline neither runs a statement nor idles in the server's eyes:
            # without this, it would keep its locks for as long as it stands still.
            await connection.execute(statement(f"SET transaction_timeout = {self._transaction_timeout}"))

    async def prepare(self) -> None:
        """Migrate the schema; raise `StoreError` if that fails."""
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
            check_floor(await _number(connection, FLOOR))
        steps = steps_from(current, **POSTGRES)
        if current and steps:
            await _warn_of_others(connection, current)
        for version, statements in steps:
            for backfill in needed_by(version):
                await _fill(connection, backfill)
            for sql in (*statements, *notes_of(version)):
                await connection.execute(statement(sql))


async def _warn_of_others(connection: "AsyncConnection[Any]", current: int) -> None:
    """Log which other hosts use a store whose schema is about to change; they notice it themselves a little later."""
    rows = await (await connection.execute(f"{HOSTS} AND pid <> pg_backend_pid()".encode())).fetchall()
    others = describe([name for (name,) in rows], floor_after(current))
    if others:
        log.warning(
            "the schema of the state store goes from version %d to %d while other hosts use it: %s",
            current,
            VERSION,
            others,
        )


async def _number(connection: "AsyncConnection[Any]", question: LiteralString) -> int | None:
    row = await (await connection.execute(question)).fetchone()
    return None if row is None else row[0]


async def _fill(connection: "AsyncConnection[Any]", backfill: Backfill) -> None:
    """Complete a backfill in the transaction of the step that needs it."""
    position = backfill.start
    while rows := await (await connection.execute(statement(backfill.select), (position, BATCH))).fetchall():
        for sql, values in backfill.changes(rows):
            await connection.execute(statement(sql), values)
        position = str(rows[-1][0])


@lru_cache(maxsize=512)
def statement(text: str) -> LiteralString:
    """Return a statement with psycopg's placeholders."""
    return cast(LiteralString, text.replace("?", "%s"))


def error_line(error: BaseException) -> str:
    """Return the type and the first line of an error."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
