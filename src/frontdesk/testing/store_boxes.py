"""What a store is asked about events that come in and deliveries that go out."""

import asyncio
from typing import cast

import pytest

from frontdesk.abc.store import HostStateStore
from frontdesk.data.delivery import DeliveryStatus, InboxItem
from frontdesk.testing.store_samples import NOW, ODD_KEYS, delivery, inbox_item


async def accept(store: HostStateStore, *items: InboxItem) -> None:
    """Takes events in, one transaction each."""
    for item in items:
        async with store.transaction() as transaction:
            transaction.accept(item)


async def finish_next(store: HostStateStore, channel: str = "telegram", chat: str = "chat") -> str | None:
    """Works on the next event of a conversation; returns its id."""
    item = await store.inbox.next(channel, chat)
    if item is None:
        return None
    async with store.transaction() as transaction:
        transaction.finish(item)
    return item.event_id


class Inbox:
    """Events that were accepted and are not finished."""

    async def test_an_empty_inbox_has_nothing_to_do(self, store: HostStateStore) -> None:
        assert await store.inbox.next("telegram", "chat") is None
        assert list(await store.inbox.waiting()) == []

    async def test_events_of_a_conversation_keep_their_order(self, store: HostStateStore) -> None:
        ids = ["evt_9", "evt_1", "evt_5"]
        await accept(store, *(inbox_item(event_id) for event_id in ids))
        first = await store.inbox.next("telegram", "chat")
        assert first is not None
        assert first.replace(number=0) == inbox_item("evt_9")
        assert await store.inbox.next("telegram", "chat") == first
        assert [await finish_next(store) for _ in range(4)] == [*ids, None]

    async def test_numbers_grow_with_arrival(self, store: HostStateStore) -> None:
        numbers: list[int] = []
        for event_id in ("c", "b", "a"):
            await accept(store, inbox_item(event_id, chat=event_id))
            item = await store.inbox.next("telegram", event_id)
            assert item is not None
            numbers.append(item.number)
        assert numbers == sorted(set(numbers))
        assert numbers[0] > 0

    async def test_a_repeated_event_is_one_event(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2"), inbox_item("evt_1"))
        await accept(store, inbox_item("evt_1", chat="another"))
        assert [await finish_next(store) for _ in range(3)] == ["evt_1", "evt_2", None]
        assert list(await store.inbox.waiting()) == []

    async def test_twenty_retries_at_once_are_one_event(self, store: HostStateStore) -> None:
        await asyncio.gather(*(accept(store, inbox_item("evt_1")) for _ in range(20)))
        assert [await finish_next(store) for _ in range(2)] == ["evt_1", None]

    async def test_a_finished_event_stays_known(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"))
        assert await finish_next(store) == "evt_1"
        await accept(store, inbox_item("evt_1"))
        assert await store.inbox.next("telegram", "chat") is None
        assert list(await store.inbox.waiting()) == []

    async def test_finishing_twice_is_finishing_once(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2"))
        item = await store.inbox.next("telegram", "chat")
        assert item is not None
        for _ in range(2):
            async with store.transaction() as transaction:
                transaction.finish(item)
        assert [await finish_next(store) for _ in range(2)] == ["evt_2", None]

    async def test_conversations_do_not_wait_for_each_other(self, store: HostStateStore) -> None:
        await accept(
            store, inbox_item("evt_1", chat="a"), inbox_item("evt_2", chat="b"), inbox_item("evt_1", channel="slack")
        )
        assert sorted(await store.inbox.waiting()) == [("slack", "chat"), ("telegram", "a"), ("telegram", "b")]
        assert await finish_next(store, chat="b") == "evt_2"
        assert sorted(await store.inbox.waiting()) == [("slack", "chat"), ("telegram", "a")]
        assert await finish_next(store, "slack") == "evt_1"
        assert await finish_next(store, chat="a") == "evt_1"

    async def test_odd_ids_are_events_and_chats_like_any_other(self, store: HostStateStore) -> None:
        await accept(store, *(inbox_item(key, chat=key) for key in ODD_KEYS))
        assert len(await store.inbox.waiting()) == len(ODD_KEYS)
        for key in ODD_KEYS:
            assert await finish_next(store, chat=key) == key
        assert list(await store.inbox.waiting()) == []


class Outbox:
    """Deliveries and how far they are."""

    async def test_a_delivery_is_read_as_it_was_written(self, store: HostStateStore) -> None:
        assert await store.outbox.get("del_1") is None
        sample = delivery(payload={"text": "\0", "parts": [1, None]}, is_echo=True)
        async with store.transaction() as transaction:
            transaction.add_delivery(sample)
        assert await store.outbox.get("del_1") == sample

    async def test_what_is_due_comes_oldest_first(self, store: HostStateStore) -> None:
        times = {"del_c": 1.0, "del_a": 3.0, "del_b": 2.0, "del_late": 4.5}
        async with store.transaction() as transaction:
            for delivery_id, seconds in times.items():
                transaction.add_delivery(delivery(delivery_id, due_at=NOW + seconds))
        assert await self._due(store, NOW) == []
        assert await self._due(store, NOW + 3) == ["del_c", "del_b", "del_a"]
        assert await self._due(store, NOW + 3, limit=2) == ["del_c", "del_b"]
        assert await self._due(store, NOW + 9) == ["del_c", "del_b", "del_a", "del_late"]

    @pytest.mark.parametrize("status", ["sending", "accepted", "unknown", "dead", "cancelled"])
    async def test_only_what_is_pending_is_due(self, store: HostStateStore, status: str) -> None:
        marked = cast(DeliveryStatus, status)
        async with store.transaction() as transaction:
            transaction.add_delivery(delivery("del_1"))
            transaction.add_delivery(delivery("del_2"))
            transaction.add_delivery(delivery("del_3", status=marked))
        async with store.transaction() as transaction:
            transaction.mark_delivery("del_1", marked, receipt="r", error="e")
        assert await self._due(store, NOW) == ["del_2"]
        assert await store.outbox.get("del_1") == delivery("del_1", status=marked, receipt="r", error="e")
        async with store.transaction() as transaction:
            transaction.mark_delivery("del_1", "pending")
        assert sorted(await self._due(store, NOW)) == ["del_1", "del_2"]

    async def test_a_delivery_that_is_added_again_stays_as_it_is(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.add_delivery(delivery())
        async with store.transaction() as transaction:
            transaction.mark_delivery("del_1", "accepted", receipt="r")
        async with store.transaction() as transaction:
            transaction.add_delivery(delivery(payload="other"))
        assert await store.outbox.get("del_1") == delivery(status="accepted", receipt="r")
        assert await self._due(store, NOW) == []

    async def test_marking_what_is_not_there_makes_nothing(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.mark_delivery("del_unknown", "pending")
        assert await store.outbox.get("del_unknown") is None
        assert await self._due(store, NOW) == []

    async def test_odd_ids_are_deliveries_like_any_other(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            for key in ODD_KEYS:
                transaction.add_delivery(delivery(key))
        assert sorted(await self._due(store, NOW)) == sorted(ODD_KEYS)
        for key in ODD_KEYS:
            assert await store.outbox.get(key) == delivery(key)

    async def _due(self, store: HostStateStore, now: float, limit: int = 100) -> list[str]:
        return [one.delivery_id for one in await store.outbox.due(now, limit=limit)]
