"""Postgres stops, comes back, or can't be reached: callers are told to come again, and nothing is lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from frontdesk.errors import StoreUnavailableError
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing import FakeClock, HostClient, TcpProxy
from frontdesk_testing.store_samples import NOW, OWNER, build_messages, keep_session, run, session
from tests.databases import postgres_server
from tests.faults.traffic import Traffic, ask_both, is_unavailable, serve
from tests.scenarios.desk import until


async def test_postgres_was_stopped_and_started_again_in_mid_traffic() -> None:
    with postgres_server() as server:
        store = PostgresStateStore(server.address, clock=FakeClock(NOW), connect_timeout=1)
        async with serve(store) as client:
            async with Traffic(client.http).run_calls() as traffic:
                await traffic.goes_well()
                for _ in range(2):
                    await asyncio.to_thread(server.stop)
                    await traffic.is_refused()
                    await asyncio.to_thread(server.start)
                    await traffic.goes_well()
            await traffic.check(store)


async def test_both_doors_say_that_it_is_away_and_stream_it_too() -> None:
    with postgres_server() as server:
        store = PostgresStateStore(server.address, clock=FakeClock(NOW), connect_timeout=1)
        async with serve(store) as client:
            assert [one.status_code for one in await ask_both(client, "before")] == [200, 200]
            await asyncio.to_thread(server.stop)
            for stream in (False, True):
                for response in await ask_both(client, "during", stream=stream):
                    assert is_unavailable(response) or "confirmed is lost" in response.text.split("\n\n")[-2]
            await asyncio.to_thread(server.start)
            # After failed writes, turns are refused until a probe is committed.
            await until(lambda: _is_ready(client))
            assert [one.status_code for one in await ask_both(client, "after")] == [200, 200]


async def _is_ready(client: HostClient) -> bool:
    return (await client.http.get("/readyz")).status_code == 200


@asynccontextmanager
async def through_a_proxy(conninfo: str) -> AsyncIterator[tuple[TcpProxy, str]]:
    """A way to a database that can be disturbed."""
    directory = str(conninfo_to_dict(conninfo)["host"])
    async with TcpProxy(str(Path(directory) / ".s.PGSQL.5432")) as proxy:
        yield proxy, make_conninfo(conninfo, host="127.0.0.1", port=proxy.port)


async def test_connections_that_are_cut_again_and_again(postgres: str) -> None:
    async with through_a_proxy(postgres) as (proxy, conninfo):
        store = PostgresStateStore(conninfo, clock=FakeClock(NOW), connect_timeout=2)
        async with serve(store) as client:
            async with Traffic(client.http).run_calls() as traffic:
                for _ in range(15):
                    await traffic.goes_well(1)
                    proxy.cut()
                await traffic.goes_well()
            await traffic.check(store)


async def test_a_network_that_lets_nobody_in_for_a_while(postgres: str) -> None:
    async with through_a_proxy(postgres) as (proxy, conninfo):
        store = PostgresStateStore(conninfo, clock=FakeClock(NOW), connect_timeout=1)
        async with serve(store) as client:
            async with Traffic(client.http).run_calls() as traffic:
                await traffic.goes_well()
                proxy.refuse()
                proxy.cut()
                await traffic.is_refused()
                await proxy.accept()
                await traffic.goes_well()
            await traffic.check(store)


async def test_a_server_that_hangs_up_on_one_side(postgres: str) -> None:
    async with through_a_proxy(postgres) as (proxy, conninfo):
        store = PostgresStateStore(conninfo, clock=FakeClock(NOW), connect_timeout=2)
        async with serve(store) as client:
            async with Traffic(client.http).run_calls() as traffic:
                for _ in range(3):
                    await traffic.goes_well()
                    proxy.half_close()
                await traffic.goes_well()
            await traffic.check(store)


async def test_a_network_that_swallows_everything_held_up_every_caller_for_ever(postgres: str) -> None:
    async with through_a_proxy(postgres) as (proxy, conninfo):
        store = PostgresStateStore(conninfo, clock=FakeClock(NOW), connect_timeout=1, statement_timeout=1)
        async with serve(store) as client:
            async with Traffic(client.http).run_calls() as traffic:
                await traffic.goes_well()
                proxy.hold()
                await traffic.is_refused()
                proxy.flow()
                await traffic.goes_well()
            await traffic.check(store)


async def test_connections_that_an_operator_ends_are_made_anew(postgres: str) -> None:
    store = PostgresStateStore(postgres, clock=FakeClock(NOW))
    await store.open()
    with psycopg.connect(postgres, autocommit=True) as operator:
        for number in range(5):
            operator.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            # Nobody is told anything: what was not sent yet is simply sent again.
            await keep_session(store, session(turns=number), build_messages(str(number)))
            assert await store.sessions.get(OWNER, "ses_1") == session(turns=number)
    await store.close()


async def test_a_lock_that_is_not_given_free_is_waited_for_only_so_long(postgres: str) -> None:
    store = PostgresStateStore(postgres, clock=FakeClock(NOW), statement_timeout=0.3)
    await store.open()
    with psycopg.connect(postgres) as other:
        other.execute("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreUnavailableError):
            async with store.transaction() as transaction:
                transaction.save_run(run())
        with pytest.raises(StoreUnavailableError):
            await store.runs.get(OWNER, "run_1")
        other.rollback()
    async with store.transaction() as transaction:
        transaction.save_run(run())
    assert await store.runs.get(OWNER, "run_1") == run()
    await store.close()


async def test_what_was_released_while_it_closed_stayed_taken(postgres: str) -> None:
    first, second = (
        PostgresStateStore(postgres, clock=FakeClock(NOW)),
        PostgresStateStore(postgres, clock=FakeClock(NOW)),
    )
    await first.open()
    await second.open()
    lease = await first.sessions.claim("ses_1")
    first.sessions.release(lease)
    await first.close()
    assert (await second.sessions.claim("ses_1")).fence > lease.fence
    await second.close()


async def test_a_pool_that_gave_up_begins_anew_when_it_is_asked(postgres: str) -> None:
    async with through_a_proxy(postgres) as (proxy, conninfo):
        store = PostgresStateStore(conninfo, clock=FakeClock(NOW), connect_timeout=0.1)
        await store.open()
        await keep_session(store, session())
        proxy.refuse()
        proxy.cut()
        for _ in range(3):
            with pytest.raises(StoreUnavailableError):
                await store.sessions.get(OWNER, "ses_1")
        pool: Any = vars(store._engine)["_pool"]
        await until(lambda: pool.get_stats().get("connections_errors", 0) >= 2)
        await proxy.accept()

        async def answers() -> bool:
            try:
                return await store.sessions.get(OWNER, "ses_1") == session()
            except StoreUnavailableError:
                return False

        await until(answers)
        await store.close()
