"""Proofs end in their time, whatever the clock is set to meanwhile."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.link import Grant
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import NOW
from tests.access.linking import desk, who
from tests.scenarios.stores import open_store

DAY = 86_400.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW)


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[HostStateStore]:
    async with open_store(request.param, tmp_path, clock=clock) as store:
        yield store


async def test_a_proof_lived_until_the_time_that_a_clock_was_set_back_from(
    store: HostStateStore, clock: FakeClock
) -> None:
    links = desk(store, clock=clock)
    clock.jump(DAY)
    for grant_id in ("seen", "again"):
        await links.keep(Grant(grant_id=grant_id, identity=who("a"), expires_at=clock.now() + 60))
    clock.jump(-DAY)
    assert await links.kept("seen") is None
    assert not await links.exchange("again")
    # Its place is free, and it does not come to life when its time comes again.
    await links.keep(Grant(grant_id="again", identity=who("b"), expires_at=clock.now() + 60))
    clock.advance(DAY)
    assert await links.kept("seen") is None


async def test_a_clock_that_is_corrected_takes_no_proof_away(store: HostStateStore, clock: FakeClock) -> None:
    links = desk(store, clock=clock)
    await links.keep(Grant(grant_id="g", identity=who("a"), expires_at=NOW + 60))
    clock.jump(-60)
    found = await links.kept("g")
    assert found is not None
    assert found.begun_at == NOW
    clock.advance(119)
    assert await links.kept("g") is not None
    clock.advance(1)
    assert await links.kept("g") is None
