"""The two ends of a move: a database that is copied from, or to."""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from types import TracebackType
from typing import Any, NamedTuple, Self

from frontdesk.errors import StoreError
from frontdesk.stores.sql.migrations import SCHEMA_TABLE, NewerStoreError, needed_by, notes_of, steps_from
from frontdesk.stores.sql.migrations import VERSION as KNOWN
from frontdesk.stores.sql.steps import BATCH, Backfill
from frontdesk.stores.sql.writes import Row

LEASES = "leases"
"""The table of leases on sessions. A store at rest has none, so it is not moved."""
_OWN = "frontdesk_schema"
_BACKFILLS = "backfills"


class MoveError(StoreError):
    """The state was not moved; the source and the target are as they were."""


def need_known(version: int) -> None:
    """Refuse a newer schema: rows of tables that this version does not know would stay behind."""
    if version > KNOWN:
        raise NewerStoreError(version)


class Shape(NamedTuple):
    """The shape of a table, the same in both databases."""

    name: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def serial(self) -> str | None:
        """Return the column that the database numbers by itself."""
        return next((name for name, kind in zip(self.columns, self.kinds, strict=True) if kind == "serial"), None)


def shapes_of(version: int) -> list[Shape]:
    """Return every table of a version of the schema, found by building it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(SCHEMA_TABLE)
        for number, statements in steps_from(0, blob="bytea", serial="serial"):
            if number <= version:
                for statement in statements:
                    connection.execute(statement)
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [_shape(connection, name) for name in names if name != _OWN]


def _shape(connection: sqlite3.Connection, name: str) -> Shape:
    columns = [(column, kind) for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({name})")]
    return Shape(name, tuple(column for column, _ in columns), tuple(kind.lower() for _, kind in columns))


class End(ABC):
    """A database in one transaction that no other process sees."""

    name: str
    """The name of the database in messages, without secrets."""
    words: dict[str, str]

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect; roll back what was not committed."""

    @abstractmethod
    def hold(self) -> None:
        """Begin the transaction of a source; raise `MoveError` if a host has it open."""

    @abstractmethod
    def take(self) -> None:
        """Begin the transaction of a target, in the same way."""

    @abstractmethod
    def execute(self, sql: str, values: Sequence[Any] = ()) -> Sequence[Row]:
        """Run a statement; `?` stands for a parameter."""

    @abstractmethod
    def has(self, table: str) -> bool:
        """Tell whether there is such a table."""

    @abstractmethod
    def read(self, shape: Shape) -> Iterator[Row]:
        """Yield all rows of a table, with a few at a time in memory."""

    @abstractmethod
    def put(self, shape: Shape, rows: Iterable[Row]) -> None:
        """Insert rows as they come, with the numbers that they have."""

    @abstractmethod
    def commit(self) -> None:
        """Commit the transaction."""

    def version(self) -> int | None:
        """Return the version of the schema; `None` if there is none."""
        return self.execute(f"SELECT MAX(version) FROM {_OWN}")[0][0] if self.has(_OWN) else None

    def count(self, table: str) -> int:
        """Return how many rows a table has."""
        return self.execute(f"SELECT COUNT(*) FROM {table}")[0][0]

    def clear(self, wanted: Iterable[Shape]) -> None:
        """Drop empty tables; raise `MoveError` if the target holds anything."""
        if not self.has(_OWN):
            foreign = [shape.name for shape in wanted if self.has(shape.name)]
            if foreign:
                raise MoveError(
                    f"{self.name} has tables of other programs by our names ({', '.join(foreign)}); "
                    "give Frontdesk a database of its own"
                )
            return
        version = self.version() or 0
        need_known(version)
        own = shapes_of(version)
        full = [shape.name for shape in own if shape.name not in (LEASES, _BACKFILLS) and self.count(shape.name)]
        if full:
            raise MoveError(f"{self.name} is not empty: there is something in {', '.join(full)}; choose another target")
        for name in [*(shape.name for shape in own), _OWN]:
            self.execute(f"DROP TABLE {name}")

    def build(self, after: int, version: int) -> None:
        """Migrate the schema from one version to a later one."""
        if after == 0:
            self.execute(SCHEMA_TABLE)
        for number, statements in steps_from(after, **self.words):
            if number <= version:
                for backfill in needed_by(number):
                    self._fill(backfill)
                for statement in (*statements, *notes_of(number)):
                    self.execute(statement)
        if after == 0 and self.has(_BACKFILLS):
            # Their progress is moved with the other rows.
            self.execute(f"DELETE FROM {_BACKFILLS}")

    def _fill(self, backfill: Backfill) -> None:
        """Complete a backfill before the step that needs it."""
        position = backfill.start
        while rows := self.execute(backfill.select, (position, BATCH)):
            for sql, values in backfill.changes(rows):
                self.execute(sql, values)
            position = str(rows[-1][0])
