"""Postgres is asked what every store is asked."""

from collections.abc import AsyncIterator

import pytest

from frontdesk.stores.sql.postgres import PostgresStateStore
from frontdesk.testing import FakeClock
from frontdesk.testing.store_contract import StoreContract
from frontdesk.testing.store_samples import NOW


class TestPostgres(StoreContract):
    @pytest.fixture
    async def store(self, postgres: str) -> AsyncIterator[PostgresStateStore]:
        store = PostgresStateStore(postgres, clock=FakeClock(NOW))
        await store.open()
        yield store
        await store.close()
