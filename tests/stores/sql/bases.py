"""A database under a store, with a way to it that does not lead through the store."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any

import psycopg

from frontdesk.models.operations import Expiry
from frontdesk.stores.sql.migrations.schema import POSTGRES, SQLITE, list_notes, steps_from
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import NOW


class Base:
    """A SQLite file or a Postgres database."""

    def __init__(self, kind: str, where: str) -> None:
        self.kind = kind
        self.where = where
        self.words = SQLITE if kind == "sqlite" else POSTGRES

    def store(self, *, expiry: Expiry | None = None, clock: FakeClock | None = None) -> SqlStateStore:
        """A store that is not open yet."""
        make = SqliteStateStore if self.kind == "sqlite" else PostgresStateStore
        return make(self.where, expiry=expiry, clock=clock or FakeClock(NOW))

    @asynccontextmanager
    async def open(self, **settings: Any) -> AsyncIterator[SqlStateStore]:
        """A store for a while."""
        store = self.store(**settings)
        await store.open()
        # A test that sweeps does so itself; the store's own first look would come at any moment.
        await store._sweep.stop()
        try:
            yield store
        finally:
            await store.close()

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Runs one statement."""
        return self.transact([(sql, values)])

    def transact(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """Runs statements in one transaction; the rows of the last one."""
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.where)) as connection, connection:
                rows = [connection.execute(sql, values).fetchall() for sql, values in statements]
            return rows[-1]
        with psycopg.connect(self.where) as connection:
            cursors = [connection.execute(_sql(sql), values) for sql, values in statements]
            return cursors[-1].fetchall() if cursors[-1].description else []

    def build(self, version: int) -> None:
        """What an earlier version of the code has left: the first steps, and their numbers."""
        statements = ["CREATE TABLE frontdesk_schema (version INTEGER NOT NULL)"]
        for number, step in steps_from(0, **self.words):
            if number <= version:
                statements += [*step, *list_notes(number)]
        self.transact([(statement, ()) for statement in statements])

    def version(self) -> int:
        """The version that the database says it has."""
        return self.execute("SELECT MAX(version) FROM frontdesk_schema")[0][0]

    def tables(self) -> dict[str, list[Any]]:
        """Every table with every row."""
        return {name: self.execute(f"SELECT * FROM {name}") for name in self._names()}

    def shape(self) -> list[Any]:
        """What the tables and their indexes are made of."""
        if self.kind == "sqlite":
            return self.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name")
        columns = "SELECT table_name, column_name, data_type, is_nullable, identity_generation"
        return [
            *self.execute(f"{columns} FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"),
            *self.execute("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"),
        ]

    def clear(self) -> None:
        """Drops every table."""
        self.transact([(f"DROP TABLE {name}", ()) for name in self._names()])

    def _names(self) -> list[str]:
        if self.kind == "sqlite":
            sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        else:
            sql = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        return sorted(name for (name,) in self.execute(sql))


def _sql(text: str) -> Any:
    return text.replace("%", "%%").replace("?", "%s") if "?" in text else text
