"""A desk over each kind of store that needs no server."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.operations import Expiry
from tests.delivery.scripted import OutboxWorld, ScriptedChannel
from tests.scenarios.stores import open_store

MakeDesk = Callable[[ScriptedChannel], OutboxWorld]


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[HostStateStore]:
    async with open_store(request.param, tmp_path, expiry=Expiry(deliveries=None)) as store:
        yield store


@pytest.fixture
def make_desk(store: HostStateStore) -> MakeDesk:
    return lambda channel: OutboxWorld(store, channel)
