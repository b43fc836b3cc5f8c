"""Every runner keeps the same promises."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontdesk import InMemoryStateStore
from frontdesk.interfaces.store import HostStateStore
from frontdesk.runners.base import InProcessTaskRunner
from frontdesk.runners.procrastinate import ProcrastinateTaskRunner
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing.runner_contract import Make, RunnerContract
from tests.databases import short_lease


class InProcess(RunnerContract):
    @pytest.fixture
    async def make(self, store: HostStateStore) -> AsyncIterator[Make]:
        await store.open()
        yield lambda: InProcessTaskRunner(store)
        await store.close()


class TestInMemory(InProcess):
    @pytest.fixture
    def store(self) -> HostStateStore:
        return InMemoryStateStore()


class TestOnSqlite(InProcess):
    @pytest.fixture
    def store(self, tmp_path: Path) -> HostStateStore:
        return SqliteStateStore(tmp_path / "state.db")


class TestOnPostgres(InProcess):
    @pytest.fixture
    def store(self, postgres_tables: str) -> HostStateStore:
        return short_lease(postgres_tables, 2.0)


class TestOnProcrastinate(RunnerContract):
    @pytest.fixture
    async def make(self, postgres: str) -> AsyncIterator[Make]:
        store = short_lease(postgres, 2.0)
        await store.open()
        yield lambda: ProcrastinateTaskRunner(store)
        await store.close()
