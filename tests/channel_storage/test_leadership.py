"""One holder at a time leads, and whoever loses that is cancelled and told so."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontdesk.channel_storage import leadership
from frontdesk.channel_storage.leadership import Leaders
from frontdesk.errors import LeadershipLostError, StoreError, StoreUnavailableError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.stores.memory.channels import MemoryLeaderships
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from tests.scenarios.stores import open_store


class Shared(InMemoryStateStore):
    """A store whose leaderships have to be renewed, and can be lost."""

    lease_seconds = 0.2  # pyright: ignore[reportAssignmentType]

    def lose_all(self) -> None:
        self.leaderships = MemoryLeaderships()


async def lead_until_lost(store: Shared, *, recovers: bool = False, error: Exception | None = None) -> None:
    """Lead, lose it, and do what a body may do then."""
    async with Leaders(store).lead("chat", "poller"):
        store.lose_all()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if error is not None:
                raise error from None
            if not recovers:
                raise


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[HostStateStore]:
    async with open_store(request.param, tmp_path) as store:
        yield store


async def test_the_next_holder_begins_when_the_block_is_left(store: HostStateStore) -> None:
    leaders, fences, began = Leaders(store), list[int](), asyncio.Event()

    async def second() -> None:
        async with leaders.lead("chat", "poller") as led:
            fences.append(led.fence)
            began.set()

    async with leaders.lead("chat", "poller") as led:
        fences.append(led.fence)
        waiting = asyncio.create_task(second())
        # Another name and another channel are free meanwhile.
        async with leaders.lead("chat", "other"), leaders.lead("other", "poller"):
            assert not began.is_set()
    await waiting
    assert fences == sorted(set(fences))
    assert len(fences) == 2


async def test_a_fence_grows_over_a_restart(tmp_path: Path) -> None:
    fences: list[int] = []
    for _ in range(3):
        async with open_store("sqlite", tmp_path) as store, Leaders(store).lead("chat", "poller") as led:
            fences.append(led.fence)
    assert fences == [1, 2, 3]


async def test_whoever_is_cancelled_while_waiting_leaves_nothing_behind(store: HostStateStore) -> None:
    leaders = Leaders(store)
    async with leaders.lead("chat", "poller"):
        waiting = asyncio.create_task(leaders.lead("chat", "poller").__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with leaders.lead("chat", "poller"):
        pass
    await leaders.stop()


async def test_a_body_that_lost_its_leadership_is_cancelled_and_told_so() -> None:
    with pytest.raises(LeadershipLostError, match="'chat' has lost its leadership 'poller'"):
        await lead_until_lost(Shared())
    # The task itself goes on, and can be cancelled as ever.
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_a_body_that_ended_well_after_it_lost_its_leadership_is_told_too() -> None:
    with pytest.raises(LeadershipLostError):
        await lead_until_lost(Shared(), recovers=True)


async def test_an_error_of_the_body_is_not_hidden() -> None:
    with pytest.raises(ValueError, match="mine"):
        await lead_until_lost(Shared(), error=ValueError("mine"))


@pytest.mark.parametrize("is_lost", [False, True])
async def test_a_cancellation_from_outside_stays_one(is_lost: bool) -> None:
    store, began, lost = Shared(), asyncio.Event(), asyncio.Event()

    async def lead() -> None:
        async with Leaders(store).lead("chat", "poller"):
            began.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                lost.set()
                if is_lost:
                    await asyncio.Event().wait()
                raise

    task = asyncio.create_task(lead())
    await began.wait()
    if is_lost:
        store.lose_all()
        await lost.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("error", [StoreUnavailableError(), StoreError("refused")])
async def test_a_store_that_does_not_renew_costs_the_leadership(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Shared()

    async def renew(_: object) -> None:
        raise error

    monkeypatch.setattr(store.leaderships, "renew", renew)
    with pytest.raises(LeadershipLostError):
        async with Leaders(store).lead("chat", "poller"):
            await asyncio.Event().wait()


async def test_a_store_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    store, claim, asked = Shared(), MemoryLeaderships.claim, list[str]()
    monkeypatch.setattr(leadership, "_CHECK_INTERVAL_SECONDS", 0.001)

    async def away_at_first(self: MemoryLeaderships, channel: str, name: str, holder: str) -> object:
        asked.append(holder)
        if len(asked) < 3:
            raise StoreUnavailableError
        return await claim(self, channel, name, holder)

    monkeypatch.setattr(MemoryLeaderships, "claim", away_at_first)
    async with Leaders(store).lead("chat", "poller"):
        assert len(asked) == 3
        assert len(set(asked)) == 1


async def test_a_hold_is_entered_once() -> None:
    hold = Leaders(InMemoryStateStore()).lead("chat", "poller")
    async with hold:
        pass
    with pytest.raises(RuntimeError):
        await hold.__aenter__()


async def test_over_many_stores_of_a_database_there_are_never_two_leaders(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leadership, "_CHECK_INTERVAL_SECONDS", 0.01)
    stores = [PostgresStateStore(postgres) for _ in range(3)]
    for store in stores:
        await store.open()
    fences: list[int] = []
    leading: set[int] = set()

    async def lead(leaders: Leaders) -> None:
        for _ in range(3):
            async with leaders.lead("chat", "poller") as led:
                assert not leading
                leading.add(led.fence)
                await asyncio.sleep(0)
                leading.remove(led.fence)
                fences.append(led.fence)

    everybody = [Leaders(store) for store in stores]
    await asyncio.gather(*(lead(leaders) for leaders in everybody for _ in range(2)))
    assert fences == sorted(set(fences))
    assert len(fences) == 18
    for leaders, store in zip(everybody, stores, strict=True):
        await leaders.stop()
        await store.close()
