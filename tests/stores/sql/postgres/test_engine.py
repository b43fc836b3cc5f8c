"""Postgres is asked what every store is asked."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from frontdesk.models.operations import TaskRecord
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk.stores.sql.writes import Do
from frontdesk_testing import FakeClock
from frontdesk_testing.store_contract import StoreContract
from frontdesk_testing.store_quarantine import EndLeases
from frontdesk_testing.store_samples import NOW


class TestPostgres(StoreContract):
    @pytest.fixture
    async def store(self, postgres_tables: str) -> AsyncIterator[PostgresStateStore]:
        store = PostgresStateStore(postgres_tables, clock=FakeClock(NOW))
        await store.open()
        yield store
        await store.close()

    @pytest.fixture
    def end_leases(self, store: PostgresStateStore) -> EndLeases:
        return lambda: store._engine.write([Do("UPDATE inbox SET until = 0")])


async def test_a_deadlock_of_two_processes_failed_everything_that_was_written_with_it(postgres: str) -> None:
    stores = [PostgresStateStore(postgres) for _ in range(2)]
    for store in stores:
        await store.open()
    names = [f"task_{number}" for number in range(30)]
    for name in names:
        await stores[0].tasks.schedule(TaskRecord(task_id=name, name="n", payload={}, due_at=0.0))

    async def touch(store: PostgresStateStore, order: list[str]) -> None:
        for _ in range(10):
            await asyncio.gather(*(store.tasks.cancel(name) for name in order))
            tasks = [TaskRecord(task_id=name, name="n", payload={}, due_at=0.0) for name in order]
            await asyncio.gather(*(store.tasks.schedule(task) for task in tasks))

    await asyncio.gather(touch(stores[0], names), touch(stores[1], names[::-1]))
    found = [await stores[0].tasks.get(name) for name in names]
    assert all(one is not None and one.status == "pending" for one in found)
    for store in stores:
        await store.close()
