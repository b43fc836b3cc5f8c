"""A store of each kind, for what operators do."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontdesk.interfaces.store import HostStateStore
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import NOW


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[HostStateStore]:
    clock = FakeClock(NOW)
    if request.param == "memory":
        store = InMemoryStateStore(clock=clock)
    elif request.param == "sqlite":
        store = SqliteStateStore(tmp_path / "frontdesk.db", clock=clock)
    else:
        store = PostgresStateStore(request.getfixturevalue("postgres_tables"), clock=clock)
    await store.open()
    yield store
    await store.close()
