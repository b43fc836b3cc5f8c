"""A process that stopped in the middle of a write, and kept others from its sessions for as long as it stood still."""

import asyncio
import os
import signal
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from frontdesk.errors import FrontdeskError, SessionBusyError, StoreUnavailableError
from frontdesk.stores.sql.postgres.connections import Address, TimedConnection
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing.store_samples import OWNER, build_messages, keep_session, session, texts
from tests.databases import BEFORE_TRANSACTION_TIMEOUT, NEWEST, PostgresServer, postgres_server, require_postgres
from tests.forked import ForkedProcess, fork
from tests.scenarios.desk import until

STATEMENT_TIMEOUT = 0.5
NAME = "ses_1"


@pytest.fixture(scope="module", params=[BEFORE_TRANSACTION_TIMEOUT, NEWEST])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    with postgres_server(require_postgres(request.param)) as found:
        yield found


@pytest.fixture
def database(server: PostgresServer) -> Iterator[str]:
    with server.database() as conninfo:
        yield conninfo


def _store(conninfo: str, **settings: Any) -> PostgresStateStore:
    settings = {"statement_timeout": STATEMENT_TIMEOUT, "connect_timeout": 1.0, "lease_seconds": 2.0, **settings}
    return PostgresStateStore(conninfo, **settings)


def stop_in_a_write(conninfo: str) -> None:
    """Save a turn, and stop before its commit is sent, as a machine does that is paused."""
    asyncio.run(_stop_in_a_write(conninfo))


async def _stop_in_a_write(conninfo: str) -> None:
    store = _store(conninfo)
    await store.open()
    engine: Any = store._engine
    finish = engine._finish

    async def stop_and_finish(connection: Any) -> None:
        engine._finish = finish
        print("stopping", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
        await finish(connection)

    lease = await store.sessions.claim(NAME)
    await store._sweep.stop()
    await store._upkeep.stop()
    engine._finish = stop_and_finish
    try:
        async with store.transaction() as transaction:
            transaction.save_session(session(NAME), lease)
            transaction.append_history(NAME, build_messages("of the stopped one"))
        print("saved", flush=True)
    except FrontdeskError as error:
        print(type(error).__name__, flush=True)
    await store.close()


async def _line(process: ForkedProcess) -> str:
    return (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()


def _ends_them(server: PostgresServer) -> bool:
    with psycopg.connect(server.address) as connection:
        return connection.info.server_version >= 17_00_00


async def test_a_host_that_stopped_in_a_write_kept_others_from_its_session(
    server: PostgresServer, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = _store(database)
    await store.open()
    process = await fork(f"{__name__}:stop_in_a_write", database)
    try:
        assert await _line(process) == "stopping"

        async def taken_over() -> bool:
            try:
                await keep_session(store, session(NAME), build_messages("of the other one"))
            except (SessionBusyError, StoreUnavailableError):
                return False
            return True

        await until(taken_over)
        process.send_signal(signal.SIGCONT)
        assert await _line(process) in ("StaleTurnError", "StoreUnavailableError")
        assert await process.wait() == 0
    finally:
        process.kill()
    assert texts(await store.sessions.history(OWNER, NAME)) == ["of the other one"]
    logged = "terminated a connection whose host stopped in the middle of a write" in caplog.text
    assert logged is not _ends_them(server)
    await store.close()


async def _stall(
    conninfo: str, *, sync: bool, register: bool = True, name: str = "", limit: float = STATEMENT_TIMEOUT
) -> Any:
    """Open a connection as hosts do, and leave it in a pipeline before or after its Sync."""
    address = Address(conninfo, statement_timeout=limit, connect_timeout=1.0)
    settings = {**address.settings, **({"application_name": name} if name else {})}
    connection = await TimedConnection.connect(address.conninfo, **settings)
    if register:
        await address.configure(connection)
    connection.pgconn.enter_pipeline_mode()
    for sql in (b"BEGIN", b"SELECT pg_advisory_xact_lock_shared(7)"):
        connection.pgconn.send_query_params(sql, None)
    if sync:
        connection.pgconn.pipeline_sync()
    # This message is what disarms the limit for idle transactions.
    connection.pgconn.send_flush_request()
    assert connection.pgconn.flush() == 0
    return connection


@pytest.mark.parametrize("sync", [False, True], ids=["before the sync", "after the sync"])
async def test_a_process_that_stood_still_in_a_pipeline_kept_its_locks(database: str, sync: bool) -> None:
    store = _store(database)
    await store.open()
    stalled = await _stall(database, sync=sync)
    other = await AsyncConnection.connect(database, autocommit=True)
    async with other:
        await other.execute("SELECT pg_advisory_lock(7)")
    stalled.pgconn.finish()
    await store.close()


async def _pids(other: AsyncConnection[Any]) -> set[int]:
    rows = await other.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
    return {pid for (pid,) in await rows.fetchall()}


async def test_only_stalled_transactions_of_hosts_of_the_same_store_are_ended(
    old_postgres_of_this_process: PostgresServer,
) -> None:
    with old_postgres_of_this_process.database() as conninfo:
        # Every role is one of the whole server.
        with psycopg.connect(conninfo, autocommit=True) as admin:
            admin.execute("CREATE SCHEMA other")
            admin.execute("CREATE ROLE frontdesk_host LOGIN")
            admin.execute("GRANT ALL ON SCHEMA public, other TO frontdesk_host")
        try:
            await _only_stalled_transactions(make_conninfo(conninfo, user="frontdesk_host"))
        finally:
            with psycopg.connect(conninfo, autocommit=True) as admin:
                admin.execute("DROP OWNED BY frontdesk_host")
                admin.execute("DROP ROLE frontdesk_host")


async def _only_stalled_transactions(conninfo: str) -> None:
    """Use a role without any right but that to its own tables."""
    elsewhere = make_conninfo(conninfo, options="-c search_path=other")
    store, beside = _store(conninfo), _store(elsewhere)
    # The look that the test asks for is the only one.
    store._stalled.start = lambda: None  # type: ignore[method-assign]
    beside._stalled.start = lambda: None  # type: ignore[method-assign]
    await store.open()
    await beside.open()
    spared = [
        await _stall(elsewhere, sync=True),
        await _stall(conninfo, sync=True, register=False),
        await _stall(conninfo, sync=True, name="reports"),
        # The limit is that of the host whose connection it is.
        await _stall(conninfo, sync=True, limit=3600),
    ]
    ended = [await _stall(conninfo, sync=sync) for sync in (False, True)]
    idle = await TimedConnection.connect(conninfo, **store.address.settings)
    await store.address.configure(idle)
    async with await AsyncConnection.connect(conninfo, autocommit=True) as other:

        async def ends_all() -> bool:
            await store._stalled.end()
            return not {one.pgconn.backend_pid for one in ended} & await _pids(other)

        await until(ends_all)
        assert await _pids(other) > {one.pgconn.backend_pid for one in (*spared, idle)}

        async def ends_its_own() -> bool:
            await beside._stalled.end()
            return spared[0].pgconn.backend_pid not in await _pids(other)

        await until(ends_its_own)
        assert await _pids(other) > {one.pgconn.backend_pid for one in (*spared[1:], idle)}
    for one in (*spared, *ended, idle):
        one.pgconn.finish()
    await store.close()
    await beside.close()


async def test_a_connection_that_could_not_be_registered_is_used(
    old_postgres_of_this_process: PostgresServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("frontdesk.stores.sql.postgres.connections._REGISTER", "SELECT ?::int / 0")
    with old_postgres_of_this_process.database() as conninfo:
        store = _store(conninfo)
        await store.open()
        await keep_session(store, session(NAME), build_messages("before"))
        assert texts(await store.sessions.history(OWNER, NAME)) == ["before"]
        await store.close()
    assert "failed to register the connection for other hosts: DivisionByZero" in caplog.text
