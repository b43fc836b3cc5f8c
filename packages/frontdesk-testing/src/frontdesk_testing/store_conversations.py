"""The contract of stores for conversations."""

from collections.abc import Sequence

import pytest

from frontdesk.errors import StaleTurnError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.conversation import ConversationItem
from frontdesk.models.session import Lease
from frontdesk_testing.store_samples import ODD_KEYS, OTHER, OWNER, conversation, conversation_item, session


async def begin(store: HostStateStore, *ids: str, conversation_id: str = "conv_1") -> None:
    """Store a conversation with items."""
    async with store.transaction() as transaction:
        transaction.save_conversation(conversation(conversation_id))
        transaction.add_items(OWNER, [conversation_item(item_id, conversation_id) for item_id in ids])


async def end_turn(store: HostStateStore, lease: Lease, item_id: str) -> None:
    """Write a session and an item together, as a turn does."""
    async with store.transaction() as transaction:
        transaction.add_items(OWNER, [conversation_item(item_id)])
        transaction.save_session(session(), lease)


def list_ids(items: Sequence[ConversationItem]) -> list[str]:
    """Return the ids of items."""
    return [item.item_id for item in items]


class Conversations:
    """Conversations that callers made, and their items."""

    async def test_a_conversation_is_read_as_it_was_last_written(self, store: HostStateStore) -> None:
        assert await store.conversations.get(OWNER, "conv_1") is None
        for sample in (conversation(topic="a"), conversation(topic="b", more="c")):
            async with store.transaction() as transaction:
                transaction.save_conversation(sample)
            assert await store.conversations.get(OWNER, "conv_1") == sample

    async def test_new_metadata_leaves_the_items(self, store: HostStateStore) -> None:
        await begin(store, "a", "b")
        async with store.transaction() as transaction:
            transaction.save_conversation(conversation(topic="new"))
        assert list_ids(await store.conversations.items(OWNER, "conv_1")) == ["a", "b"]

    async def test_items_keep_their_order_and_get_growing_numbers(self, store: HostStateStore) -> None:
        await begin(store, "z", "y")
        async with store.transaction() as transaction:
            transaction.add_items(OWNER, [conversation_item("x")])
        items = await store.conversations.items(OWNER, "conv_1")
        assert [item.replace(number=0) for item in items] == [conversation_item(item_id) for item_id in "zyx"]
        numbers = [item.number for item in items]
        assert numbers == sorted(set(numbers))
        assert numbers[0] > 0
        assert await store.conversations.item(OWNER, "conv_1", "y") == items[1]
        assert await store.conversations.item(OWNER, "conv_1", "unknown") is None

    async def test_pages_lead_through_all_items_both_ways(self, store: HostStateStore) -> None:
        ids = [f"item_{number}" for number in range(25)]
        await begin(store, *ids[:13])
        await begin(store, "foreign", conversation_id="conv_2")
        async with store.transaction() as transaction:
            transaction.add_items(OWNER, [conversation_item(item_id) for item_id in ids[13:]])
        for descending in (False, True):
            read: list[str] = []
            after = 0
            while page := await store.conversations.items(
                OWNER, "conv_1", after=after, limit=10, descending=descending
            ):
                assert len(page) == min(10, len(ids) - len(read))
                read += list_ids(page)
                after = page[-1].number
            assert read == (ids[::-1] if descending else ids)

    async def test_a_page_has_so_many_bytes_and_at_least_one_item(self, store: HostStateStore) -> None:
        large = {"b", "d", "e"}
        items = [
            conversation_item(item_id).replace(body={"said": item_id * (5_000 if item_id in large else 1)})
            for item_id in "abcdef"
        ]
        async with store.transaction() as transaction:
            transaction.save_conversation(conversation("conv_1"))
            transaction.add_items(OWNER, items)
        for descending, pages in ((False, ["abc", "d", "ef"]), (True, ["fe", "dc", "ba"])):
            read: list[str] = []
            after = 0
            while page := await store.conversations.items(
                OWNER, "conv_1", after=after, limit=10, descending=descending, max_bytes=8_000
            ):
                read.append("".join(list_ids(page)))
                after = page[-1].number
            assert read == pages
        assert list_ids(await store.conversations.items(OWNER, "conv_1", limit=1, max_bytes=8_000)) == ["a"]
        assert list_ids(await store.conversations.items(OWNER, "conv_1", max_bytes=1)) == ["a"]
        assert list_ids(await store.conversations.items(OWNER, "conv_1", max_bytes=100_000)) == [*"abcdef"]
        assert list(await store.conversations.items(OTHER, "conv_1", max_bytes=8_000)) == []

    async def test_a_page_goes_on_where_a_deleted_item_was(self, store: HostStateStore) -> None:
        await begin(store, "a", "b", "c", "d")
        second = (await store.conversations.items(OWNER, "conv_1", limit=2))[-1]
        async with store.transaction() as transaction:
            transaction.delete_item(OWNER, "conv_1", second.item_id)
        assert list_ids(await store.conversations.items(OWNER, "conv_1", after=second.number)) == ["c", "d"]
        down = await store.conversations.items(OWNER, "conv_1", after=second.number, descending=True)
        assert list_ids(down) == ["a"]

    async def test_the_number_of_a_deleted_item_is_not_given_out_again(self, store: HostStateStore) -> None:
        await begin(store, "a", "b")
        last = (await store.conversations.items(OWNER, "conv_1"))[-1]
        async with store.transaction() as transaction:
            transaction.delete_item(OWNER, "conv_1", last.item_id)
        async with store.transaction() as transaction:
            transaction.add_items(OWNER, [conversation_item("c")])
        assert list_ids(await store.conversations.items(OWNER, "conv_1", after=last.number)) == ["c"]

    async def test_a_deleted_item_is_gone_and_its_neighbours_are_not(self, store: HostStateStore) -> None:
        await begin(store, "a", "b", "c")
        await begin(store, "b", conversation_id="conv_2")
        async with store.transaction() as transaction:
            transaction.delete_item(OWNER, "conv_1", "b")
            transaction.delete_item(OWNER, "conv_1", "unknown")
            transaction.delete_item(OWNER, "conv_unknown", "a")
        assert list_ids(await store.conversations.items(OWNER, "conv_1")) == ["a", "c"]
        assert await store.conversations.item(OWNER, "conv_1", "b") is None
        assert await store.conversations.item(OWNER, "conv_2", "b") is not None

    async def test_a_deleted_conversation_takes_its_items_along(self, store: HostStateStore) -> None:
        await begin(store, "a", "b")
        await begin(store, "c", conversation_id="conv_2")
        async with store.transaction() as transaction:
            transaction.delete_conversation(OWNER, "conv_1")
            transaction.delete_conversation(OWNER, "conv_unknown")
        assert await store.conversations.get(OWNER, "conv_1") is None
        assert await store.conversations.item(OWNER, "conv_1", "a") is None
        assert list_ids(await store.conversations.items(OWNER, "conv_2")) == ["c"]
        await begin(store)
        assert list(await store.conversations.items(OWNER, "conv_1")) == []

    async def test_a_conversation_does_not_exist_for_anybody_else(self, store: HostStateStore) -> None:
        await begin(store, "a")
        assert await store.conversations.get(OTHER, "conv_1") is None
        assert list(await store.conversations.items(OTHER, "conv_1")) == []
        assert list(await store.conversations.items(OTHER, "conv_1", descending=True)) == []
        assert await store.conversations.item(OTHER, "conv_1", "a") is None
        async with store.transaction() as transaction:
            transaction.delete_conversation(OTHER, "conv_1")
        assert list_ids(await store.conversations.items(OWNER, "conv_1")) == ["a"]

    async def test_a_turn_that_was_fenced_off_adds_no_items(self, store: HostStateStore) -> None:
        await begin(store, "a")
        late = await store.sessions.claim("ses_1")
        lease = await store.sessions.claim("ses_1", force=True)
        with pytest.raises(StaleTurnError):
            await end_turn(store, late, "late")
        await end_turn(store, lease, "b")
        assert list_ids(await store.conversations.items(OWNER, "conv_1")) == ["a", "b"]

    async def test_odd_ids_are_conversations_and_items_like_any_other(self, store: HostStateStore) -> None:
        for key in ODD_KEYS:
            await begin(store, key, conversation_id=key)
        for key in ODD_KEYS:
            assert await store.conversations.get(OWNER, key) == conversation(key)
            item = await store.conversations.item(OWNER, key, key)
            assert item is not None
            assert item.replace(number=0) == conversation_item(key, key)
