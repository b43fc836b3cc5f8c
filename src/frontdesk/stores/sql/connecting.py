"""How a Postgres database is connected to, and brought up to date."""

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
_ANSWERS = 60.0
_LIMITS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")


class HungError(psycopg.OperationalError):
    """The server has not answered for so long that it never will."""


class Line(AsyncConnection[Any]):
    """A connection on which nobody waits for ever: a network that swallows everything counts as one that is cut."""

    patience = _ANSWERS

    async def wait(self, gen: Any, *settings: Any, **more: Any) -> Any:
        hung = False

        def hang_up() -> None:
            nonlocal hung
            hung = True
            with suppress(OSError), socket.socket(fileno=os.dup(self.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)

        timer = call_later_clean(self.patience, hang_up)
        try:
            return await super().wait(gen, *settings, **more)
        except psycopg.OperationalError as error:
            if hung:
                raise HungError(f"there was no answer in {self.patience:g} s") from error
            raise
        finally:
            timer.cancel()


class Address:
    """Where a database is, and what its connections are set to."""

    def __init__(self, conninfo: str, *, statement_timeout: float, connect_timeout: float) -> None:
        try:
            options = conninfo_to_dict(conninfo).get("options") or ""
        except psycopg.ProgrammingError:
            # What it says may quote a part of the password.
            raise ChannelConfigurationError("conninfo: this is not an address that libpq understands") from None
        milliseconds = round(statement_timeout * 1000)
        self.conninfo = conninfo
        # The server itself gives up after the first of the two.
        self._patience = statement_timeout + connect_timeout
        self.patient: dict[str, Any] = {
            "autocommit": True,
            "connect_timeout": max(1, round(connect_timeout)),
            "keepalives_idle": 10,
            "tcp_user_timeout": milliseconds,
            "application_name": application_name(VERSION),
        }
        self.settings: dict[str, Any] = {
            **self.patient,
            "prepare_threshold": 2,
            "options": " ".join([str(options), *(f"-c {limit}={milliseconds}" for limit in _LIMITS)]),
        }

    async def configure(self, line: Line) -> None:
        """Sets what only our side of a new connection knows."""
        line.patience = self._patience

    async def prepare(self) -> None:
        """Brings the schema up to date; what keeps it from that is a `StoreError`."""
        try:
            # By itself, because a step may take its time, and because a pool does not say why it can't connect.
            async with await AsyncConnection.connect(self.conninfo, **self.patient) as connection:
                await _migrate(connection)
        except psycopg.Error as error:
            raise StoreError(f"the database can't be opened: {told(error)}") from error


async def _migrate(connection: "AsyncConnection[Any]") -> None:
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATIONS,))
        await connection.execute(SCHEMA_TABLE)
        found = await _number(connection, FOUND) or 0
        if found > VERSION:
            check_floor(await _number(connection, FLOOR))
        steps = steps_from(found, **POSTGRES)
        if found and steps:
            await _warn_of_others(connection, found)
        for version, statements in steps:
            for backfill in needed_by(version):
                await _fill(connection, backfill)
            for one in (*statements, *notes_of(version)):
                await connection.execute(statement(one))


async def _warn_of_others(connection: "AsyncConnection[Any]", found: int) -> None:
    """Say which hosts work on a store whose schema is about to change; they see it for themselves a little later."""
    rows = await (await connection.execute(f"{HOSTS} AND pid <> pg_backend_pid()".encode())).fetchall()
    others = describe([name for (name,) in rows], floor_after(found))
    if others:
        log.warning(
            "the schema of the state store goes from version %d to %d while other hosts use it: %s",
            found,
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
    """A statement in psycopg's words."""
    return cast(LiteralString, text.replace("?", "%s"))


def told(error: BaseException) -> str:
    """What happened, in one line."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
