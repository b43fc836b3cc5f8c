"""The contract of a store for events whose holder has ended."""

from collections.abc import Awaitable, Callable

import pytest

from frontdesk.errors import LostEventError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import InboxItem
from frontdesk_testing.store_boxes import accept, claim_event, finish
from frontdesk_testing.store_samples import NOW, inbox_item

EndLeases = Callable[[], Awaitable[object]]


async def isolate(store: HostStateStore, item: InboxItem, isolated: bool = True) -> None:
    """Record whether an event is isolated."""
    async with store.transaction() as transaction:
        transaction.isolate(item, isolated=isolated)


async def give_back(store: HostStateStore, item: InboxItem, *, tried: bool = False) -> None:
    """Release an event."""
    async with store.transaction() as transaction:
        transaction.give_back(item, tried=tried)


def counts(item: InboxItem) -> tuple[int, int, int]:
    """Return how often an event was tried, lost, and lost while it was isolated."""
    return item.attempts, item.lost, item.alone


async def bundle(store: HostStateStore, holder: str) -> InboxItem:
    """Claim the first event with those that follow it."""
    item = await store.inbox.claim_bundle("telegram", "chat", holder, now=NOW, longest=60.0, limit=10)
    assert item is not None
    return item


class LostEvents:
    """Events whose holder has crashed."""

    @pytest.fixture
    def end_leases(self, store: HostStateStore) -> EndLeases:
        """Return a function that ends the leases of all events. A store with timed leases overrides it."""

        async def end() -> None:
            if store.lease_seconds is not None:
                pytest.skip("the leases of this store end by themselves alone")

        return end

    async def test_an_event_whose_holder_has_ended_was_lost(self, store: HostStateStore, end_leases: EndLeases) -> None:
        await accept(store, inbox_item("evt_1"))
        assert counts(await claim_event(store, "host_1")) == (1, 0, 0)
        for number in (2, 3):
            await end_leases()
            assert counts(await claim_event(store, f"host_{number}")) == (number, number - 1, 0)

    async def test_an_event_that_was_given_back_was_not_lost(
        self, store: HostStateStore, end_leases: EndLeases
    ) -> None:
        await accept(store, inbox_item("evt_1"))
        item = await claim_event(store, "host_1")
        await isolate(store, item)
        await give_back(store, item)
        again = await claim_event(store, "host_2")
        assert counts(again) == (1, 0, 0)
        await give_back(store, again, tried=True)
        assert counts(await claim_event(store, "host_3")) == (2, 0, 0)
        await end_leases()
        # The isolation has ended with the first try.
        assert counts(await claim_event(store, "host_4")) == (3, 1, 0)

    async def test_an_event_that_was_isolated_when_its_holder_ended_was_alone(
        self, store: HostStateStore, end_leases: EndLeases
    ) -> None:
        await accept(store, inbox_item("evt_1"))
        for number in range(4):
            item = await claim_event(store, f"host_{number}")
            assert counts(item) == (number + 1, number, number)
            await isolate(store, item)
            await end_leases()
        item = await claim_event(store, "host_4")
        await isolate(store, item)
        await isolate(store, item, False)
        await end_leases()
        assert counts(await claim_event(store, "host_5")) == (6, 5, 4)

    async def test_only_the_holder_isolates_an_event(self, store: HostStateStore, end_leases: EndLeases) -> None:
        await accept(store, inbox_item("evt_1"))
        late = await claim_event(store, "host_1")
        await end_leases()
        item = await claim_event(store, "host_2")
        with pytest.raises(LostEventError):
            await isolate(store, late)
        await finish(store, item)
        with pytest.raises(LostEventError):
            await isolate(store, item)

    async def test_events_that_are_answered_together_are_counted_together(
        self, store: HostStateStore, end_leases: EndLeases
    ) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2"))
        for number in range(2):
            item = await bundle(store, f"host_{number}")
            assert [counts(member) for member in item.members] == [(number + 1, number, number)] * 2
            await isolate(store, item)
            await end_leases()
        await accept(store, inbox_item("evt_3"))
        item = await bundle(store, "host_2")
        assert [counts(member) for member in item.members] == [(3, 2, 2), (3, 2, 2), (1, 0, 0)]

    async def test_the_others_of_a_holder_that_has_ended_were_not_alone(
        self, store: HostStateStore, end_leases: EndLeases
    ) -> None:
        await accept(store, *(inbox_item(f"evt_{chat}", chat=chat) for chat in "abc"))
        items = [await claim_event(store, "host_1", chat) for chat in "abc"]
        await isolate(store, items[1])
        await end_leases()
        assert [counts(await claim_event(store, "host_2", chat)) for chat in "abc"] == [(2, 1, 0), (2, 1, 1), (2, 1, 0)]
