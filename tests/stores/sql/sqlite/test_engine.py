"""SQLite is asked what every store is asked."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import FakeClock
from frontdesk_testing.store_contract import StoreContract
from frontdesk_testing.store_samples import NOW


class TestSqlite(StoreContract):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SqliteStateStore]:
        store = SqliteStateStore(tmp_path / "frontdesk.db", clock=FakeClock(NOW))
        await store.open()
        yield store
        await store.close()
