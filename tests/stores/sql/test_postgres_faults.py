"""What went wrong when an error, a lost answer or a stall met a transaction of Postgres."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from frontdesk.errors import ChannelConfigurationError, LostRunError, StoreError, StoreUnavailableError
from frontdesk.models.run import BackgroundRun, RunEvent
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk.stores.sql.writes import Do
from frontdesk_testing.store_samples import OWNER, event, job, run


@pytest.fixture
async def store(postgres: str) -> AsyncIterator[PostgresStateStore]:
    store = PostgresStateStore(postgres, pool_size=1)
    await store.open()
    # It would take part in what the tests do to transactions.
    await store._sweep.stop()
    yield store
    await store.close()


async def test_statements_were_taken_for_prepared_after_an_error_in_a_pipeline(store: PostgresStateStore) -> None:
    chance = random.Random(1)
    good = [Do(f"SELECT {number} + ?::int", (1,), answers=True) for number in range(30)]
    bad = [Do(f"SELECT {number} / ?::int", (0,)) for number in range(6)]
    for _ in range(60):
        # Together in one pipeline; what fails by itself must not take the others with it.
        lots = [chance.choices(good, k=3) for _ in range(3)]
        wrong = [*chance.choices(good, k=2), chance.choice(bad), chance.choice(good)]
        outcomes = await asyncio.gather(*map(store._engine.write, [*lots, wrong]), return_exceptions=True)
        assert [type(one) for one in outcomes] == [list, list, list, StoreError]


@pytest.mark.parametrize(("statement_timeout", "connect_timeout"), [(10.0, 3.0), (12.9, 0.1), (20.0, 3.0)])
def test_a_lease_was_shorter_than_a_statement_may_hang(statement_timeout: float, connect_timeout: float) -> None:
    with pytest.raises(ChannelConfigurationError, match="lease_seconds"):
        PostgresStateStore(
            "dbname=x", lease_seconds=13.0, statement_timeout=statement_timeout, connect_timeout=connect_timeout
        )


async def test_events_whose_commit_had_no_answer_failed_the_run_when_they_were_sent_again(
    store: PostgresStateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _queue(store)
    (held,) = await store.background.claim("host", limit=1)
    engine: Any = store._engine
    finish = engine._finish

    async def unheard(connection: Any) -> None:
        await finish(connection)
        monkeypatch.undo()
        await connection.close()
        await connection.execute("SELECT 1")

    monkeypatch.setattr(engine, "_finish", unheard)
    events = [event(1), event(2)]
    with pytest.raises(StoreUnavailableError):
        await _log(store, events, held)
    await _log(store, [*events, event(3)], held)
    assert [one.number for one in await store.runs.events(OWNER, "run_1")] == [1, 2, 3]


async def test_events_of_a_stalled_commit_were_added_after_another_had_ended_the_run(
    postgres: str, store: PostgresStateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _queue(store)
    (held,) = await store.background.claim("host", limit=1)
    await store._engine.write([Do("UPDATE background SET until = 0")])
    engine: Any = store._engine
    finish, stalled, go_on = engine._finish, asyncio.Event(), asyncio.Event()

    async def stall(connection: Any) -> None:
        stalled.set()
        await go_on.wait()
        await finish(connection)

    monkeypatch.setattr(engine, "_finish", stall)
    writing = asyncio.create_task(_log(store, [event(1)], held))
    await stalled.wait()
    other = PostgresStateStore(postgres)
    await other.open()
    # While the commit is on its way nobody can take the run over; afterwards the event is there for whoever does.
    assert await other.background.claim("other", limit=1) == []
    go_on.set()
    await writing
    (taken,) = await other.background.claim("other", limit=1)
    assert [one.number for one in await other.runs.events(OWNER, "run_1")] == [1]
    with pytest.raises(LostRunError):
        await _log(store, [event(2)], held)
    async with other.transaction() as transaction:
        transaction.end_job(taken)
    await other.close()


async def _queue(store: PostgresStateStore) -> None:
    async with store.transaction() as transaction:
        transaction.queue_run(run(status="queued", background=True), job(), most_waiting=10, most_of_owner=10)


async def _log(store: PostgresStateStore, events: Sequence[RunEvent], held: BackgroundRun) -> None:
    async with store.transaction() as transaction:
        transaction.add_events(events, held)
