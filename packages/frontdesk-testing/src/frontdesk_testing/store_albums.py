"""The contract of stores for albums."""

from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import InboxItem
from frontdesk_testing.store_boxes import accept, finish
from frontdesk_testing.store_control_events import cancel_earlier, claim_control, finish_turns
from frontdesk_testing.store_samples import NOW, inbox_item


def picture(event_id: str, album: str = "album", *, chat: str = "chat", sender: str = "1") -> InboxItem:
    """Return a message of an album that waits for the others until a second has passed."""
    return inbox_item(event_id, chat=chat, sender=sender).replace(album_id=album, not_before=NOW + 1, due_by=NOW + 5)


async def take(
    store: HostStateStore, *, holder: str = "host_me", albums_only: bool = True, limit: int = 10
) -> list[str]:
    """Claim and finish a batch, two seconds later. Return its ids."""
    times = {"now": NOW + 2, "longest": 5.0}
    item = await store.inbox.claim_bundle("telegram", "chat", holder, **times, limit=limit, albums_only=albums_only)
    if item is None:
        return []
    await finish(store, item)
    return [member.event_id for member in item.members]


class Albums:
    """Messages of an album, with other messages between them."""

    async def test_an_album_is_taken_up_together_and_nothing_else_with_it(self, store: HostStateStore) -> None:
        await accept(store, picture("evt_1"), inbox_item("evt_2"), picture("evt_3"), inbox_item("evt_4", sender="2"))
        await accept(store, picture("evt_5", "other"), picture("evt_6"), picture("evt_7", sender="2"))
        await accept(store, picture("evt_8", chat="elsewhere"), picture("evt_9", "other"))
        assert [await take(store) for _ in range(6)] == [
            ["evt_1", "evt_3", "evt_6"],
            ["evt_2"],
            ["evt_4"],
            ["evt_5", "evt_9"],
            ["evt_7"],
            [],
        ]

    async def test_messages_that_are_gathered_bring_the_rest_of_their_albums(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), picture("evt_2"), inbox_item("evt_3", sender="2"), picture("evt_4"))
        assert await take(store, albums_only=False) == ["evt_1", "evt_2", "evt_4"]
        assert await take(store, albums_only=False) == ["evt_3"]

    async def test_an_album_keeps_what_is_stored_of_it(self, store: HostStateStore) -> None:
        await accept(store, picture("evt_1").replace(album_position=7))
        item = await store.inbox.next("telegram", "chat")
        assert item is not None
        assert (item.album_id, item.album_position, item.not_before) == ("album", 7, NOW + 1)

    async def test_a_message_that_did_not_wait_is_answered_alone(self, store: HostStateStore) -> None:
        await accept(store, picture("evt_1").replace(not_before=None, due_by=None), picture("evt_2"))
        assert [await take(store), await take(store)] == [["evt_1"], ["evt_2"]]

    async def test_an_album_has_a_largest_size(self, store: HostStateStore) -> None:
        await accept(store, *(picture(f"evt_{number}") for number in range(5)))
        assert await take(store, limit=3) == ["evt_0", "evt_1", "evt_2"]
        assert await take(store, limit=3) == ["evt_3", "evt_4"]

    async def test_an_album_whose_holder_is_gone_is_taken_up_together_again(self, store: HostStateStore) -> None:
        await accept(store, picture("evt_1"), inbox_item("evt_2"), picture("evt_3"))
        item = await store.inbox.claim_bundle(
            "telegram", "chat", "host_me", now=NOW + 2, longest=5.0, limit=10, albums_only=True
        )
        assert item is not None
        assert await take(store) == []
        async with store.transaction() as transaction:
            transaction.give_back(item)
        assert await take(store, holder="host_other") == ["evt_1", "evt_3"]

    async def test_a_cancellation_ends_the_part_of_an_album_that_came_before_it(self, store: HostStateStore) -> None:
        await accept(store, picture("evt_1"), inbox_item("evt_2", kind="control"), picture("evt_3"))
        await cancel_earlier(store, await claim_control(store))
        assert await take(store) == ["evt_3"]

    async def test_a_message_of_an_album_interrupts_all_but_its_album(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), picture("evt_2"), inbox_item("evt_3", sender="2"))
        late = picture("evt_4")
        others = await store.inbox.outside_album(late)
        assert list(others) == ["evt_1"]
        async with store.transaction() as transaction:
            transaction.accept(late)
            transaction.interrupt_earlier(late, only=others)
        async with store.transaction() as transaction:
            transaction.interrupt_earlier(late, only=())
        assert await finish_turns(store) == ["evt_1 !", "evt_2", "evt_3", "evt_4"]
