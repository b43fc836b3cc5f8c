"""The contract of stores for control events and cancelled turns."""

import pytest

from frontdesk.errors import LostEventError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import Cancelled, InboxItem
from frontdesk_testing.store_boxes import accept, claim_event, finish
from frontdesk_testing.store_samples import NOW, inbox_item


async def claim_control(store: HostStateStore, chat: str = "chat") -> InboxItem:
    """Claim the next control event."""
    item = await store.inbox.claim("telegram", chat, "host_me", kind="control")
    assert item is not None
    return item


async def cancel_earlier(store: HostStateStore, item: InboxItem, *, anyone: bool = False, session_id: str = "") -> None:
    """Cancel the turns before an event, and finish the event."""
    async with store.transaction() as transaction:
        transaction.cancel_earlier(item, anyone=anyone, session_id=session_id)
        transaction.finish(item)


async def finish_turns(store: HostStateStore, chat: str = "chat") -> list[str]:
    """Finish all turns of a conversation and return their ids. Cancelled ones are marked."""
    events: list[str] = []
    while (item := await store.inbox.next("telegram", chat)) is not None:
        await finish(store, item, None if item.cancelled is None else "cancelled")
        events.append(item.event_id if item.cancelled is None else f"{item.event_id} {item.cancelled}!")
    return events


class ControlEvents:
    """Events that act on the turns of their conversation."""

    async def test_the_turns_of_a_sender_are_counted_until_they_are_done(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2", chat="other"), inbox_item("evt_3", sender="2"))
        await accept(store, inbox_item("evt_4", kind="control"), inbox_item("evt_5", channel="slack"))
        assert await store.inbox.count_waiting(inbox_item("evt_new")) == 2
        assert await store.inbox.count_waiting(inbox_item("evt_new", sender="2")) == 1
        assert await store.inbox.count_waiting(inbox_item("evt_new", sender="3")) == 0
        # One that is sent again is not there twice.
        assert await store.inbox.count_waiting(inbox_item("evt_1")) == 1
        first = await claim_event(store)
        assert await store.inbox.count_waiting(inbox_item("evt_new")) == 2
        await finish(store, first)
        assert await store.inbox.count_waiting(inbox_item("evt_new")) == 1

    async def test_control_events_do_not_wait_for_turns(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2", kind="control"), inbox_item("evt_3"))
        await accept(store, inbox_item("evt_4", kind="control"))
        turn, control = await claim_event(store), await claim_control(store)
        assert (turn.event_id, control.event_id, control.kind) == ("evt_1", "evt_2", "control")
        assert await store.inbox.claim("telegram", "chat", "host_me", kind="control") is None
        await finish(store, control)
        waiting = await store.inbox.waiting("host_me", kind="control")
        assert [(event.conversation_id, event.number > turn.number) for event in waiting] == [("chat", True)]
        assert (await claim_control(store)).event_id == "evt_4"
        await finish(store, turn)
        assert (await claim_event(store)).event_id == "evt_3"

    async def test_a_cancellation_drops_what_waits_and_marks_what_is_worked_on(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2"), inbox_item("evt_3", kind="control"))
        await accept(store, inbox_item("evt_4"), inbox_item("evt_5", chat="other"))
        turn, control = await claim_event(store), await claim_control(store)
        assert await store.inbox.count_earlier(control) == Cancelled(running=1, dropped=1)
        await cancel_earlier(store, control, session_id="ses_old")
        (kept,) = await store.inbox.renew([turn])
        assert kept == turn.replace(cancelled="ses_old")
        assert [(item.event_id, error) for item, error in await store.inbox.failed()] == [("evt_2", "cancelled")]
        assert await finish_turns(store) == ["evt_1 ses_old!", "evt_4"]
        assert await finish_turns(store, "other") == ["evt_5"]

    async def test_a_turn_that_was_taken_up_and_waits_again_is_marked(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2"), inbox_item("evt_3", kind="control"))
        async with store.transaction() as transaction:
            transaction.give_back(await claim_event(store))
        control = await claim_control(store)
        assert await store.inbox.count_earlier(control) == Cancelled(running=1, dropped=1)
        await cancel_earlier(store, control)
        assert [(item.event_id, error) for item, error in await store.inbox.failed()] == [("evt_2", "cancelled")]
        assert await finish_turns(store) == ["evt_1 !"]

    async def test_a_cancelled_turn_is_finished_as_cancelled_and_in_no_other_way(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2", kind="control"))
        turn = await claim_event(store)
        await cancel_earlier(store, await claim_control(store))
        for error in (None, "target_failed"):
            with pytest.raises(LostEventError):
                await finish(store, turn, error)
        async with store.transaction() as transaction:
            transaction.give_back(turn, tried=True)
        again = await claim_event(store)
        assert (again.event_id, again.cancelled, again.attempts) == ("evt_1", "", 2)
        await finish(store, again, "cancelled")
        assert await store.inbox.next("telegram", "chat") is None

    async def test_the_first_cancellation_says_which_session_a_turn_belongs_to(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), *(inbox_item(f"evt_{number}", kind="control") for number in (2, 3)))
        turn = await claim_event(store)
        await cancel_earlier(store, await claim_control(store), session_id="ses_1")
        await cancel_earlier(store, await claim_control(store), session_id="ses_2")
        assert [item.cancelled for item in await store.inbox.renew([turn])] == ["ses_1"]

    async def test_only_the_sender_s_own_turns_are_cancelled_unless_anyone_s_are(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1", sender="2", group=True), inbox_item("evt_2", group=True))
        controls = [inbox_item(f"evt_{number}", kind="control", group=True) for number in (3, 4)]
        await accept(store, *controls)
        first = await claim_control(store)
        assert await store.inbox.count_earlier(first) == Cancelled(dropped=1)
        assert await store.inbox.count_earlier(first, anyone=True) == Cancelled(dropped=2)
        await cancel_earlier(store, first)
        assert [item.event_id for item, _ in await store.inbox.failed()] == ["evt_2"]
        await cancel_earlier(store, await claim_control(store), anyone=True)
        assert [item.event_id for item, _ in await store.inbox.failed()] == ["evt_2", "evt_1"]

    async def test_a_cancellation_that_is_lost_cancels_nothing(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2", kind="control"))
        control = await claim_control(store)
        with pytest.raises(LostEventError):
            await cancel_earlier(store, control.replace(fence=control.fence - 1))
        assert await finish_turns(store) == ["evt_1"]

    async def test_an_interruption_marks_the_sender_s_messages_and_finishes_none(self, store: HostStateStore) -> None:
        clicked = inbox_item("evt_2")
        clicked = clicked.replace(request=clicked.request.replace(operation="approval"))
        await accept(store, inbox_item("evt_1"), clicked, inbox_item("evt_3"), inbox_item("evt_4", sender="2"))
        turn = await claim_event(store)
        for _ in range(2):
            async with store.transaction() as transaction:
                transaction.accept(inbox_item("evt_5"))
                transaction.interrupt_earlier(inbox_item("evt_5"))
        assert [item.cancelled for item in await store.inbox.renew([turn])] == [""]
        assert await finish_turns(store) == ["evt_1 !", "evt_2", "evt_3 !", "evt_4", "evt_5"]


class CancelledEvents:
    """Turns that are cancelled one at a time."""

    async def test_a_turn_that_waits_is_finished(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2"))
        await cancel_event(store, inbox_item("evt_1"))
        assert [(item.event_id, error) for item, error in await store.inbox.failed()] == [("evt_1", "cancelled")]
        assert await finish_turns(store) == ["evt_2"]

    async def test_a_turn_that_was_taken_up_once_is_left_to_its_next_holder(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"))
        item = await claim_event(store)
        async with store.transaction() as transaction:
            transaction.give_back(item)
        await cancel_event(store, item)
        assert await finish_turns(store) == ["evt_1 !"]

    async def test_a_turn_that_is_worked_on_is_left_to_its_holder(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2"))
        item = await claim_event(store)
        await cancel_event(store, item)
        (marked,) = await store.inbox.renew([item])
        assert marked.cancelled == ""
        with pytest.raises(LostEventError):
            await finish(store, item)
        await finish(store, item, "cancelled")
        assert await finish_turns(store) == ["evt_2"]

    async def test_an_event_that_has_changed_is_left_alone(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2", kind="control"))
        item = await claim_event(store)
        unknown = inbox_item("evt_9")
        for wrong in (item.replace(fence=item.fence - 1), inbox_item("evt_2", kind="control"), unknown):
            with pytest.raises(LostEventError):
                await cancel_event(store, wrong)
        (kept,) = await store.inbox.renew([item])
        assert kept.cancelled is None
        await finish(store, item)
        with pytest.raises(LostEventError):
            await cancel_event(store, item)


async def cancel_event(store: HostStateStore, item: InboxItem) -> None:
    """Cancel one turn."""
    async with store.transaction() as transaction:
        transaction.cancel_event(item)


class Bundles:
    """Messages of one sender that are answered together."""

    async def test_the_messages_of_a_sender_are_taken_up_together_when_the_first_is_due(
        self, store: HostStateStore
    ) -> None:
        await gather(store, "evt_1", NOW + 1)
        await gather(store, "evt_2", NOW + 2)
        assert await bundle(store, NOW + 1) == []
        assert await bundle(store, NOW + 2) == ["evt_1", "evt_2"]
        assert await bundle(store, NOW + 2) == []

    async def test_a_bundle_ends_where_something_else_begins(self, store: HostStateStore) -> None:
        clicked = inbox_item("evt_4")
        clicked = clicked.replace(request=clicked.request.replace(operation="approval"))
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2"), inbox_item("evt_3", sender="2"))
        await accept(store, clicked, inbox_item("evt_5"), inbox_item("evt_6"), inbox_item("evt_7"))
        assert [await bundle(store, NOW, done=True) for _ in range(5)] == [
            ["evt_1", "evt_2"],
            ["evt_3"],
            ["evt_4"],
            ["evt_5", "evt_6", "evt_7"],
            [],
        ]

    async def test_a_bundle_has_a_largest_size(self, store: HostStateStore) -> None:
        await accept(store, *(inbox_item(f"evt_{number}") for number in range(5)))
        assert await bundle(store, NOW, done=True, limit=3) == ["evt_0", "evt_1", "evt_2"]
        assert await bundle(store, NOW, done=True, limit=3) == ["evt_3", "evt_4"]

    async def test_nobody_waits_longer_than_the_longest_time(self, store: HostStateStore) -> None:
        for second in range(6):
            await gather(store, f"evt_{second}", NOW + second + 2)
        assert await bundle(store, NOW + 4.9) == []
        assert len(await bundle(store, NOW + 5)) == 6

    async def test_a_clock_that_was_set_back_lets_nobody_wait(self, store: HostStateStore) -> None:
        await gather(store, "evt_1", NOW + 1)
        assert await bundle(store, NOW - 3600) == ["evt_1"]

    async def test_what_is_done_with_a_bundle_is_done_with_all_of_it(self, store: HostStateStore) -> None:
        await accept(store, inbox_item("evt_1"), inbox_item("evt_2"), inbox_item("evt_3", kind="control"))
        item = await store.inbox.claim_bundle("telegram", "chat", "host_me", now=NOW, longest=5.0, limit=10)
        assert item is not None
        assert [found.members for found in await store.inbox.renew([item])] == [item.members]
        async with store.transaction() as transaction:
            transaction.give_back(item)
        with pytest.raises(LostEventError):
            await finish(store, item.replace(fence=item.fence - 1))
        item = await store.inbox.claim_bundle("telegram", "chat", "host_me", now=NOW, longest=5.0, limit=10)
        assert item is not None
        assert [member.attempts for member in item.members] == [1, 1]
        await cancel_earlier(store, await claim_control(store))
        (marked,) = await store.inbox.renew([item])
        assert [member.cancelled for member in marked.members] == ["", ""]
        with pytest.raises(LostEventError):
            await finish(store, item)
        await finish(store, item, "cancelled")
        assert await store.inbox.next("telegram", "chat") is None


async def gather(store: HostStateStore, event_id: str, until: float) -> None:
    """Accept a message that waits for more."""
    item = inbox_item(event_id).replace(not_before=until, due_by=NOW + 5)
    async with store.transaction() as transaction:
        transaction.accept(item)
        transaction.postpone_earlier(item)


async def bundle(store: HostStateStore, now: float, *, limit: int = 10, done: bool = False) -> list[str]:
    """Claim a batch and return its ids."""
    item = await store.inbox.claim_bundle("telegram", "chat", "host_me", now=now, longest=5.0, limit=limit)
    if item is not None and done:
        await finish(store, item)
    return [] if item is None else [member.event_id for member in item.members]
