"""A store that can't be opened says which one and why, tells no secrets, and leaves what is there as it is."""

import asyncio
import logging
import os
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from frontdesk.errors import FrontdeskError, StoreError, StoreUnavailableError
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk_testing.store_samples import OWNER, run
from tests.databases import PostgresServer, postgres_server
from tests.faults.ports import free_port
from tests.faults.traffic import serve

ROOT = Path(__file__).parents[2]
SECRET = "hunter2-not-in-any-log"


async def read_refusal(store: SqlStateStore) -> str:
    """What is said when it is opened; closing it afterwards is fine."""
    with pytest.raises(StoreError) as caught:
        await store.open()
    await store.close()
    with pytest.raises(StoreUnavailableError):
        async with store.transaction() as transaction:
            transaction.save_run(run())
    return str(caught.value)


def _text_file(path: Path) -> Path:
    path.write_text("Dear diary, " * 1000)
    return path


def _half_a_database(path: Path) -> Path:
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    return path


def _directory(path: Path) -> Path:
    path.mkdir()
    return path


UNUSABLE = {
    "a text": _text_file,
    "half a database": _half_a_database,
    "a directory": _directory,
    "nowhere": lambda path: path / "missing" / "frontdesk.db",
}


@pytest.mark.parametrize("make", UNUSABLE.values(), ids=UNUSABLE)
async def test_a_file_that_is_no_database(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path / "frontdesk.db")
    before = path.read_bytes() if path.is_file() else None
    said = await read_refusal(SqliteStateStore(path))
    assert str(path) in said
    assert "can't be opened" in said
    assert (path.read_bytes() if path.is_file() else None) == before


async def test_a_host_does_not_start_without_its_store(tmp_path: Path) -> None:
    path = _text_file(tmp_path / "frontdesk.db")
    with pytest.raises(FrontdeskError, match="can't be opened: file is not a database"):
        async with serve(SqliteStateStore(path)):
            pytest.fail("it started")


async def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE sessions (mine TEXT)")
    other.execute("INSERT INTO sessions VALUES ('mine')")
    other.commit()
    other.close()
    before = path.read_bytes()
    assert "tables of another program (sessions) and none of Frontdesk" in await read_refusal(SqliteStateStore(path))
    assert path.read_bytes() == before


READ_ONLY = """
import asyncio, os, sys
from frontdesk import AgentFrameworkHost, FrontdeskError
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import serving
from tests.scenarios.cast import echo

what, path = sys.argv[1:]
# Root may write everywhere.
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


async def main():
    if what == "store":
        await SqliteStateStore(path).open()
    else:
        host = AgentFrameworkHost(echo, channels=[InvocationsChannel()], state_dir=path)
        async with serving(host):
            print("it started")


try:
    asyncio.run(main())
except FrontdeskError as error:
    print(error)
"""


def _as_somebody(what: str, path: Path) -> str:
    """What a host says that runs as a user to whom nothing here belongs."""
    for place in path.parent.parents:
        # What pytest makes is for its own user only.
        if place.stat().st_uid == os.getuid() and not place.stat().st_mode & 0o5:
            place.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, what, str(path)], cwd=ROOT, capture_output=True, text=True, timeout=50
    )
    # The server writes a trace beside it.
    return done.stdout or done.stderr


async def _make(path: Path) -> None:
    store = SqliteStateStore(path)
    await store.open()
    await store.close()


def test_a_file_that_may_only_be_read(tmp_path: Path) -> None:
    asyncio.run(_make(tmp_path / "frontdesk.db"))
    (tmp_path / "frontdesk.db").chmod(0o444)
    tmp_path.chmod(0o755)
    said = _as_somebody("store", tmp_path / "frontdesk.db")
    assert f"{tmp_path / 'frontdesk.db'} can't be opened" in said
    assert "Permission denied" in said


@pytest.mark.parametrize("what", ["store", "state directory"])
def test_a_directory_that_may_only_be_read(what: str, tmp_path: Path) -> None:
    place = tmp_path / "state"
    place.mkdir(mode=0o555)
    path = place / "frontdesk.db" if what == "store" else place
    tmp_path.chmod(0o755)
    said = _as_somebody(what, path)
    assert str(path) in said
    assert "can't be" in said
    assert "Permission denied" in said


def read_all_of(error: BaseException, caplog: pytest.LogCaptureFixture) -> str:
    """All that anybody could read of it."""
    records = [logging.Formatter().format(record) for record in caplog.records]
    return "\n".join([str(error), repr(error), *traceback.format_exception(error), *records])


def _ask_guests_for_a_password(server: PostgresServer) -> None:
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'right'")
        row = connection.execute("SHOW hba_file").fetchone()
        assert row is not None
        Path(row[0]).write_text("local all postgres trust\nlocal all guest scram-sha-256\n")
        connection.execute("SELECT pg_reload_conf()")


async def test_a_wrong_password_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with postgres_server() as server:
        _ask_guests_for_a_password(server)
        store = PostgresStateStore(make_conninfo(server.address, user="guest", password=SECRET))
        with pytest.raises(StoreError, match="password authentication failed") as caught:
            await store.open()
        await store.close()
        assert SECRET not in read_all_of(caught.value, caplog)


@pytest.mark.parametrize("where", ["host=127.0.0.1 port={port}", "host={directory}", "host=nowhere.invalid"])
async def test_a_server_that_is_not_there_is_named_without_its_password(
    where: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    place = where.format(port=free_port(), directory=tmp_path)
    store = PostgresStateStore(f"{place} dbname=desk user=ada password={SECRET}", connect_timeout=2)
    with pytest.raises(StoreError, match="the database can't be opened: ") as caught:
        await store.open()
    await store.close()
    assert SECRET not in read_all_of(caught.value, caplog)
    assert "\n" not in str(caught.value)


async def test_a_database_that_is_not_there(postgres: str) -> None:
    said = await read_refusal(PostgresStateStore(make_conninfo(postgres, dbname="missing")))
    assert 'database "missing" does not exist' in said


async def test_a_role_that_may_not_make_tables(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute("CREATE ROLE reader LOGIN")
    said = await read_refusal(PostgresStateStore(make_conninfo(postgres, user="reader")))
    assert "permission denied" in said


async def test_a_store_that_failed_to_open_can_be_opened_later(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "later" / "frontdesk.db")
    await read_refusal(store)
    (tmp_path / "later").mkdir()
    for _ in range(2):
        await store.open()
        async with store.transaction() as transaction:
            transaction.save_run(run())
        assert await store.runs.get(OWNER, "run_1") == run()
        await store.close()
        await store.close()
