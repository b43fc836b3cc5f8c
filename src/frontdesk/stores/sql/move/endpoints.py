"""The source or target database of a move, and the copying between them."""

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from frontdesk.errors import StoreError
from frontdesk.stores.sql.migrations.schema import (
    SCHEMA_TABLE,
    SQLITE,
    VERSION,
    NewerStoreError,
    list_needed_by,
    list_notes,
    steps_from,
)
from frontdesk.stores.sql.migrations.schema import VERSION as KNOWN
from frontdesk.stores.sql.migrations.steps import BATCH_ROWS, Backfill
from frontdesk.stores.sql.writes import Row

LEASES = "leases"
"""The table of leases on sessions. A store at rest has none, so it is not moved."""
_OWN = "frontdesk_schema"
_BACKFILLS = "backfills"


class MoveError(StoreError):
    """The state was not moved. The source and the target are unchanged."""


def require_known(version: int) -> None:
    """Reject a newer schema, because rows of unknown tables would be left behind."""
    if version > KNOWN:
        raise NewerStoreError(version)


class Shape(NamedTuple):
    """The shape of a table, the same in both databases."""

    name: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def serial(self) -> str | None:
        return next((name for name, kind in zip(self.columns, self.kinds, strict=True) if kind == "serial"), None)


def read_shapes(version: int) -> list[Shape]:
    """Return every table of a schema version, determined by building it."""
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


class MoveEndpoint(ABC):
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
        """Disconnect, and roll back uncommitted changes."""

    @abstractmethod
    def hold(self) -> None:
        """Begin the transaction of a source. Raise `MoveError` if a host has it open."""

    @abstractmethod
    def take(self) -> None:
        """Begin the transaction of a target. Raise `MoveError` if a host has it open."""

    @abstractmethod
    def execute(self, sql: str, values: Sequence[Any] = ()) -> Sequence[Row]:
        """Run a statement. `?` is a parameter."""

    @abstractmethod
    def has(self, table: str) -> bool: ...

    @abstractmethod
    def read(self, shape: Shape) -> Iterator[Row]:
        """Yield all rows of a table, with few at a time in memory."""

    @abstractmethod
    def put(self, shape: Shape, rows: Iterable[Row]) -> None:
        """Insert rows as they arrive, keeping their numbers."""

    @abstractmethod
    def commit(self) -> None: ...

    def version(self) -> int | None:
        return self.execute(f"SELECT MAX(version) FROM {_OWN}")[0][0] if self.has(_OWN) else None

    def count(self, table: str) -> int:
        return self.execute(f"SELECT COUNT(*) FROM {table}")[0][0]

    def clear(self, wanted: Iterable[Shape]) -> None:
        """Drop empty tables. Raise `MoveError` if the target has any data."""
        if not self.has(_OWN):
            foreign = [shape.name for shape in wanted if self.has(shape.name)]
            if foreign:
                raise MoveError(
                    f"{self.name} has tables of other programs with the names of ours ({', '.join(foreign)}). "
                    "Use a separate database for Frontdesk"
                )
            return
        version = self.version() or 0
        require_known(version)
        own = read_shapes(version)
        full = [shape.name for shape in own if shape.name not in (LEASES, _BACKFILLS) and self.count(shape.name)]
        if full:
            raise MoveError(f"{self.name} is not empty: it has rows in {', '.join(full)}. Choose another target")
        for name in [*(shape.name for shape in own), _OWN]:
            self.execute(f"DROP TABLE {name}")

    def build(self, after: int, version: int) -> None:
        if after == 0:
            self.execute(SCHEMA_TABLE)
        for number, statements in steps_from(after, **self.words):
            if number <= version:
                for backfill in list_needed_by(number):
                    self._fill(backfill)
                for statement in (*statements, *list_notes(number)):
                    self.execute(statement)
        if after == 0 and self.has(_BACKFILLS):
            # Their progress is moved with the other rows.
            self.execute(f"DELETE FROM {_BACKFILLS}")

    def _fill(self, backfill: Backfill) -> None:
        position = backfill.start
        while rows := self.execute(backfill.select, (position, BATCH_ROWS)):
            for sql, values in backfill.changes(rows):
                self.execute(sql, values)
            position = str(rows[-1][0])


_ROWS_PER_REPORT = 10_000
"""The number of rows of a table that are moved between two reports."""

OnProgress = Callable[[str, int, int], None]
"""A function of the name of a table, how many of its rows are moved, and how many it has."""


def move(source: MoveEndpoint, target: MoveEndpoint, on_progress: OnProgress) -> int:
    """Copy all tables. Return the number of rows."""
    with source, target:
        source.hold()
        version = source.version()
        if version is None:
            raise MoveError(f"{source.name} contains no Frontdesk state")
        require_known(version)
        target.take()
        target.clear(read_shapes(VERSION))
        # An older store is copied as it is, and migrated on the target.
        target.build(0, version)
        moved = sum(_copy(source, target, shape, on_progress) for shape in read_shapes(version) if shape.name != LEASES)
        target.build(version, VERSION)
        target.commit()
        return moved


def _copy(source: MoveEndpoint, target: MoveEndpoint, shape: Shape, on_progress: OnProgress) -> int:
    total = source.count(shape.name)
    target.put(shape, _count(source.read(shape), lambda moved: on_progress(shape.name, moved, total)))
    arrived = target.count(shape.name)
    if arrived != total:
        raise MoveError(f"{shape.name} has {total} rows, but {arrived} were copied. The copy was rolled back")
    on_progress(shape.name, total, total)
    return total


def _count(rows: Iterable[Row], on_progress: Callable[[int], None]) -> Iterator[Row]:
    for number, row in enumerate(rows):
        if number and number % _ROWS_PER_REPORT == 0:
            on_progress(number)
        yield row


class SqliteEnd(MoveEndpoint):
    """A file that no other process has open."""

    words = SQLITE

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path
        self._created = False
        self._stack = ExitStack()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        if self._created:
            self._path.unlink()

    def hold(self) -> None:
        if not self._path.is_file():
            raise MoveError(f"file {self._path} not found")
        self._open()
        self.execute("BEGIN EXCLUSIVE")

    def take(self) -> None:
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL, 0o600))
            self._created = True
        except FileExistsError:
            pass
        except OSError as error:
            raise MoveError(f"cannot create {self.name}: {error.strerror}") from error
        self._open()
        # New pages need no space in a rollback journal; a write-ahead log would need twice the disk.
        self.execute("PRAGMA journal_mode = DELETE")
        self.execute("PRAGMA synchronous = FULL")
        self.execute("BEGIN EXCLUSIVE")

    def _open(self) -> None:
        address = f"{self._path.resolve().as_uri()}?mode=rw"
        try:
            self._connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=1.0)
        except sqlite3.Error as error:
            raise self._build_error(error) from error
        self._stack.callback(self._connection.close)
        # A host keeps its connections open, so this mode fails while a host runs.
        self.execute("PRAGMA locking_mode = EXCLUSIVE")

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Sequence[Row]:
        return self._run(sql, values).fetchall()

    def _run(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        try:
            return self._connection.execute(sql, values)
        except sqlite3.Error as error:
            raise self._build_error(error) from error

    def _build_error(self, error: sqlite3.Error) -> MoveError:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            return MoveError(f"{self.name} is in use; stop the host that uses it")
        return MoveError(f"{self.name}: {error}")

    def has(self, table: str) -> bool:
        return bool(self.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)))

    def read(self, shape: Shape) -> Iterator[Row]:
        return self._run(f"SELECT {', '.join(shape.columns)} FROM {shape.name}")

    def put(self, shape: Shape, rows: Iterable[Row]) -> None:
        marks = ", ".join("?" for _ in shape.columns)
        sql = f"INSERT INTO {shape.name} ({', '.join(shape.columns)}) VALUES ({marks})"
        try:
            self._connection.executemany(sql, rows)
        except sqlite3.Error as error:
            raise self._build_error(error) from error

    def commit(self) -> None:
        self.execute("COMMIT")
        self._created = False
