"""A SQLite file as the source or the target of a move."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from frontdesk.stores.sql.migrations import SQLITE
from frontdesk.stores.sql.move_endpoints import End, MoveError, Shape
from frontdesk.stores.sql.writes import Row


class SqliteEnd(End):
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
            raise MoveError(f"there is no file {self._path}")
        self._open()
        self.execute("BEGIN EXCLUSIVE")

    def take(self) -> None:
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL, 0o600))
            self._created = True
        except FileExistsError:
            pass
        except OSError as error:
            raise MoveError(f"{self.name} can't be made: {error.strerror}") from error
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
            raise self._failed(error) from error
        self._stack.callback(self._connection.close)
        # A host keeps its connections open, so this mode fails while a host runs.
        self.execute("PRAGMA locking_mode = EXCLUSIVE")

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Sequence[Row]:
        return self._run(sql, values).fetchall()

    def _run(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        try:
            return self._connection.execute(sql, values)
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def _failed(self, error: sqlite3.Error) -> MoveError:
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
            raise self._failed(error) from error

    def commit(self) -> None:
        self.execute("COMMIT")
        self._created = False
