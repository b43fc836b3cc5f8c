"""A desk over each kind of store that needs no server."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from frontdesk.abc.store import HostStateStore
from frontdesk.data.expiry import Expiry
from frontdesk.stores.memory import InMemoryStateStore
from frontdesk.stores.sql.sqlite import SqliteStateStore
from tests.delivery.scripted import Desk, ScriptedChannel

MakeDesk = Callable[[ScriptedChannel], Desk]


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[HostStateStore]:
    made = (
        InMemoryStateStore()
        if request.param == "memory"
        else SqliteStateStore(tmp_path / "state.db", expiry=Expiry(deliveries=None))
    )
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def make_desk(store: HostStateStore) -> MakeDesk:
    return lambda channel: Desk(store, channel)
