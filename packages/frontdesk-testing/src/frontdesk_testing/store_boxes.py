"""The contract of stores for the inbox."""

import asyncio

import pytest

from frontdesk.errors import LostEventError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import InboxItem
from frontdesk_testing.store_samples import ODD_KEYS, inbox_item


async def accept(store: HostStateStore, *items: InboxItem) -> None:
    """Store events, one transaction each."""
    for item in items:
        async with store.transaction() as transaction:
            transaction.accept(item)


async def finish_next(store: HostStateStore, channel: str = "telegram", chat: str = "chat") -> str | None:
    """Finish the next event of a conversation. Return its id."""
    item = await store.inbox.next(channel, chat)
    if item is None:
        return None
    await finish(store, item)
    return item.event_id


async def list_claimable(store: HostStateStore, holder: str = "host_me") -> list[tuple[str, str]]:
    """Return the conversations with an event that can be claimed."""
    conversations = [(item.channel, item.conversation_id) for item in await store.inbox.waiting(holder)]
    return sorted(set(conversations))


async def claim_event(store: HostStateStore, holder: str = "host_me", chat: str = "chat") -> InboxItem:
    """Claim the next event."""
    item = await store.inbox.claim("telegram", chat, holder)
    assert item is not None
    return item


async def finish(store: HostStateStore, item: InboxItem, error: str | None = None) -> None:
    """Finish an event."""
    async with store.transaction() as transaction:
        transaction.finish(item, error=error)


class Inbox:
    """Events that were accepted and are not finished."""

    async def test_an_empty_inbox_has_nothing_to_do(self, store: HostStateStore) -> None:
        assert await store.inbox.next("telegram", "chat") is None
        assert await list_claimable(store) == []

    async def test_an_event_is_found_by_its_id(self, store: HostStateStore) -> None:
        assert await store.inbox.find("telegram", "evt_1") is None
        await accept(store, inbox_item("evt_1").replace(run_id="run_1"), inbox_item("evt_2"))
        # The platform sends it again.
        await accept(store, inbox_item("evt_1").replace(run_id="run_2"))
        assert await store.inbox.find("telegram", "evt_1") == ("run_1", False)
        assert await store.inbox.find("telegram", "evt_2") == (None, False)
        assert await store.inbox.find("other", "evt_1") is None
        await finish(store, await claim_event(store))
        assert await store.inbox.find("telegram", "evt_1") == ("run_1", True)
        assert await store.inbox.find("telegram", "evt_2") == (None, False)

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
        assert await list_claimable(store) == []

    async def test_twenty_retries_at_once_are_one_event(self, store: HostStateStore) -> None:
        await asyncio.gather(*(accept(store, inbox_item("evt_1")) for _ in range(20)))
        assert [await finish_next(store) for _ in range(2)] == ["evt_1", None]

    async def test_a_finished_event_stays_known(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"))
        assert await finish_next(store) == "evt_1"
        await accept(store, inbox_item("evt_1"))
        assert await store.inbox.next("telegram", "chat") is None
        assert await list_claimable(store) == []

    async def test_an_event_is_finished_once(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2"))
        item = await claim_event(store)
        await finish(store, item)
        with pytest.raises(LostEventError):
            await finish(store, item)
        with pytest.raises(LostEventError):
            async with store.transaction() as transaction:
                transaction.give_back(item)
        assert [await finish_next(store) for _ in range(2)] == ["evt_2", None]

    async def test_the_first_event_of_a_conversation_is_taken_up_by_one(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2"), inbox_item("evt_3", chat="other"))
        claims = await asyncio.gather(*(store.inbox.claim("telegram", "chat", "host_me") for _ in range(20)))
        (item,) = [claim for claim in claims if claim is not None]
        assert (item.event_id, item.attempts) == ("evt_1", 1)
        assert await list_claimable(store) == [("telegram", "chat"), ("telegram", "other")]
        assert (await claim_event(store, chat="other")).event_id == "evt_3"
        await finish(store, item)
        assert (await claim_event(store)).event_id == "evt_2"
        assert await list_claimable(store) == []
        assert await store.inbox.claim("telegram", "empty", "host_me") is None

    async def test_an_event_that_is_given_back_is_first_again(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2"))
        for _ in range(3):
            item = await claim_event(store)
            assert (item.event_id, item.attempts) == ("evt_1", 1)
            async with store.transaction() as transaction:
                transaction.give_back(item)
            assert list(await store.inbox.renew([item])) == []
        async with store.transaction() as transaction:
            transaction.give_back(await claim_event(store), tried=True)
        assert (await claim_event(store)).attempts == 2

    async def test_whoever_took_an_event_up_last_has_the_say(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"))
        item = await claim_event(store)
        assert list(await store.inbox.renew([item])) == [item]
        old = item.replace(fence=item.fence - 1)
        assert list(await store.inbox.renew([old, item])) == [item]
        with pytest.raises(LostEventError):
            await finish(store, old)
        transaction = store.transaction()
        transaction.accept(inbox_item("evt_2"))
        transaction.give_back(old)
        with pytest.raises(LostEventError):
            await transaction.__aexit__(None, None, None)
        await finish(store, item)
        assert await store.inbox.next("telegram", "chat") is None

    async def test_what_could_not_be_answered_is_seen(self, store: HostStateStore) -> None:
        await accept(store, *(inbox_item(f"evt_{number}") for number in range(4)))
        for error in ("denied", None, "target_failed \ud800", "died"):
            await finish(store, await claim_event(store), error)
        failed = [(item.event_id, error) for item, error in await store.inbox.failed()]
        assert failed == [("evt_3", "died"), ("evt_2", "target_failed \ud800"), ("evt_0", "denied")]
        last = (await store.inbox.failed(limit=1))[0][0]
        assert [item.event_id for item, _ in await store.inbox.failed(before=last.number, limit=1)] == ["evt_2"]

    async def test_what_waits_is_read_a_page_at_a_time(self, store: HostStateStore) -> None:
        await accept(store, *(inbox_item(f"evt_{number}", chat=str(number % 3)) for number in range(7)))
        seen, after = list[tuple[str, str]](), 0
        while page := await store.inbox.waiting("host_me", after=after, limit=3):
            seen += [(item.channel, item.conversation_id) for item in page]
            after = page[-1].number
        assert seen == [("telegram", str(number % 3)) for number in range(7)]

    async def test_waiting_events_are_listed_by_channel(self, store: HostStateStore) -> None:
        names = ["web", "telegram", "web", "slack", "x" * 300]
        await accept(store, *(inbox_item(f"evt_{number}", channel=name) for number, name in enumerate(names)))

        async def list_channels(channels: list[str], *, other: bool = False) -> list[str]:
            return [item.channel for item in await store.inbox.waiting("me", channels=channels, other=other)]

        assert await list_channels(["telegram"]) == ["telegram"]
        assert await list_channels(["slack", "web"]) == ["web", "web", "slack"]
        assert await list_channels(["x" * 300]) == ["x" * 300]
        assert await list_channels(["web", "slack"], other=True) == ["telegram", "x" * 300]
        assert (await list_channels([]), await list_channels([], other=True)) == ([], names)
        assert [item.channel for item in await store.inbox.waiting("me", channels=["web"], limit=1)] == ["web"]

    async def test_waiting_turns_of_a_channel_are_counted(self, store: HostStateStore) -> None:
        await accept(store, *(inbox_item(f"evt_{number}") for number in range(3)), inbox_item("evt", channel="web"))
        await accept(store, inbox_item("evt_click").replace(kind="control"))
        await finish(store, await claim_event(store))
        await claim_event(store)
        counted = [await store.inbox.count_waiting_on(channel) for channel in ("telegram", "web", "slack")]
        assert counted == [2, 1, 0]

    async def test_conversations_do_not_wait_for_each_other(self, store: HostStateStore) -> None:
        await accept(
            store, inbox_item("evt_1", chat="a"), inbox_item("evt_2", chat="b"), inbox_item("evt_1", channel="slack")
        )
        assert await list_claimable(store) == [("slack", "chat"), ("telegram", "a"), ("telegram", "b")]
        assert await finish_next(store, chat="b") == "evt_2"
        assert await list_claimable(store) == [("slack", "chat"), ("telegram", "a")]
        assert await finish_next(store, "slack") == "evt_1"
        assert await finish_next(store, chat="a") == "evt_1"

    async def test_odd_ids_are_events_and_chats_like_any_other(self, store: HostStateStore) -> None:
        await accept(store, *(inbox_item(key, chat=key) for key in ODD_KEYS))
        assert len(await list_claimable(store)) == len(ODD_KEYS)
        for key in ODD_KEYS:
            assert await finish_next(store, chat=key) == key
        assert await list_claimable(store) == []
