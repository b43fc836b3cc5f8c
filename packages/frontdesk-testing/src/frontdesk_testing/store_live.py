"""The contract of stores for live messages."""

from collections.abc import Sequence

import pytest

from frontdesk.errors import LostEventError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import Delivery
from frontdesk.models.live_message import LiveMessageRecord
from frontdesk_testing.store_samples import ODD_KEYS, delivery, live_answer


async def save(store: HostStateStore, *answers: LiveMessageRecord, deliveries: Sequence[Delivery] = ()) -> None:
    """Store live messages and deliveries in one transaction."""
    async with store.transaction() as transaction:
        for row in deliveries:
            transaction.add_delivery(row)
        for answer in answers:
            transaction.save_live(answer)


async def find_live(store: HostStateStore, answer: LiveMessageRecord) -> LiveMessageRecord | None:
    """Return the stored live message."""
    return await store.live.get(answer.run_id, answer.channel, answer.place)


class LiveAnswers:
    """Live messages and their answers."""

    async def test_a_live_answer_is_read_as_it_was_written(self, store: HostStateStore) -> None:
        opening = live_answer()
        assert await find_live(store, opening) is None
        for answer in (opening, opening.replace(state="open", handles=('{"id": "\0"}', "")), opening):
            await save(store, answer)
            assert await find_live(store, opening) == answer

    async def test_no_other_place_has_it(self, store: HostStateStore) -> None:
        answers = [live_answer(place=odd, handles=(odd,)) for odd in ODD_KEYS]
        answers += [live_answer(channel=odd, handles=(odd,)) for odd in ODD_KEYS]
        answers += [live_answer(odd, handles=(odd,)) for odd in ODD_KEYS]
        await save(store, *answers)
        assert [await find_live(store, answer) for answer in answers] == answers
        assert await find_live(store, live_answer()) is None

    async def test_a_later_claim_takes_it_over_and_an_earlier_one_can_not_write(self, store: HostStateStore) -> None:
        opened = live_answer(state="open", handles=("h",))
        await save(store, opened)
        taken = opened.replace(fence=2)
        await save(store, taken)
        for late in (opened, opened.replace(state="closed")):
            with pytest.raises(LostEventError):
                await save(store, late)
        assert await find_live(store, opened) == taken

    async def test_one_that_is_closed_stays_closed(self, store: HostStateStore) -> None:
        closed = live_answer(state="closed", handles=("h",))
        await save(store, closed)
        with pytest.raises(LostEventError):
            await save(store, closed.replace(state="opening", fence=2))
        assert await find_live(store, closed) == closed

    async def test_a_write_that_came_too_late_takes_the_whole_transaction_with_it(self, store: HostStateStore) -> None:
        await save(store, live_answer(fence=2))
        with pytest.raises(LostEventError):
            await save(store, live_answer(state="closed"), deliveries=[delivery()])
        assert await store.outbox.get("del_1") is None

    async def test_those_that_were_lost_are_listed(self, store: HostStateStore) -> None:
        assert list(await store.live.lost()) == []
        lost = [live_answer(f"run_{number}", state="lost", handles=("h",)) for number in range(3)]
        await save(store, live_answer("run_8"), *lost, live_answer("run_9", state="closed"))
        assert list(await store.live.lost()) == lost
        assert list(await store.live.lost(limit=2)) == lost[:2]
