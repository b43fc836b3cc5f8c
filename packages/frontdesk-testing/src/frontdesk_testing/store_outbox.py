"""The contract of stores for the outbox."""

import asyncio

import pytest

from frontdesk.errors import DeliveryExistsError, LostDeliveryError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import Attempt, Delivery, Destination
from frontdesk_testing.store_samples import NOW, ODD_KEYS, OTHER, delivery, run

HERE: Destination = ("telegram", "1")


async def add(store: HostStateStore, *deliveries: Delivery) -> None:
    """Store deliveries in one transaction."""
    async with store.transaction() as transaction:
        for row in deliveries:
            transaction.add_delivery(row)


async def change(store: HostStateStore, *deliveries: Delivery, hold: float = 0.0) -> None:
    """Write the progress of deliveries in one transaction."""
    async with store.transaction() as transaction:
        for row in deliveries:
            transaction.change_delivery(row, hold=hold)


async def queue(store: HostStateStore, destination: Destination = HERE, limit: int = 20) -> list[str]:
    """Return the ids of the waiting deliveries to a destination."""
    return [row.delivery_id for row in await store.outbox.open(destination, limit=limit)]


async def read(store: HostStateStore, delivery_id: str) -> Delivery:
    """Return an existing delivery."""
    row = await store.outbox.get(delivery_id)
    assert row is not None
    return row


def bare(row: Delivery | None) -> Delivery | None:
    """Return a delivery without the fields that the store sets."""
    return None if row is None else row.replace(number=0, held_for=0.0)


class Outbox:
    """Deliveries and their progress."""

    async def test_a_delivery_is_read_as_it_was_written(self, store: HostStateStore) -> None:
        assert await store.outbox.get("del_1") is None
        tried = (Attempt(at=NOW, code="push_failed"),)
        sample = delivery(payload={"text": "\0", "parts": [1, None]}, is_echo=True, history=tried, error="e\0")
        sample = sample.replace(attempts=2, queued_at=NOW + 1, parts=3, answer_id="ans", conversation_id="chat")
        await add(store, sample)
        assert bare(await store.outbox.get("del_1")) == sample

    async def test_what_a_delivery_changes_is_read_as_it_was_written_and_can_be_unset(
        self, store: HostStateStore
    ) -> None:
        samples = [
            delivery("del_1", replaces='{"id": "\\u0000"}'),
            delivery("del_2", replaces="", action="settle", payload=None),
            delivery("del_3", action="retract"),
        ]
        await add(store, *samples)
        assert [bare(row) for row in await store.outbox.open(HERE)] == samples
        assert [bare(await store.outbox.get(sample.delivery_id)) for sample in samples] == samples
        await change(store, samples[0].replace(replaces=None))
        assert bare(await store.outbox.get("del_1")) == samples[0].replace(replaces=None, fence=1)

    async def test_a_delivery_is_found_by_its_receipt_on_its_channel(self, store: HostStateStore) -> None:
        long = "r" * 200
        receipts = ["r_1", *filter(None, ODD_KEYS), f"{long}a", f"{long}b", "r" * 10_000]
        for number, receipt in enumerate(receipts):
            await add(store, delivery(f"del_{number}"))
            await change(store, delivery(f"del_{number}", status="accepted", receipt=receipt, ended_at=NOW))
        await add(store, delivery("del_none"))
        for number, receipt in enumerate(receipts):
            found = await store.outbox.by_receipt("telegram", receipt)
            assert found is not None
            assert (found.delivery_id, found.receipt) == (f"del_{number}", receipt)
            assert await store.outbox.by_receipt("teams", receipt) is None
        for unknown in ("r_2", long, "r"):
            assert await store.outbox.by_receipt("telegram", unknown) is None

    async def test_of_two_deliveries_with_one_receipt_the_newest_is_found(self, store: HostStateStore) -> None:
        for name in ("del_1", "del_2"):
            await add(store, delivery(name))
            await change(store, delivery(name, status="accepted", receipt="r_1", ended_at=NOW))
        found = await store.outbox.by_receipt("telegram", "r_1")
        assert found is not None
        assert found.delivery_id == "del_2"

    async def test_what_goes_to_one_destination_keeps_its_order(self, store: HostStateStore) -> None:
        await add(store, delivery("del_c", due_at=NOW + 9), delivery("del_a"))
        await add(store, delivery("del_b", due_at=NOW - 9), delivery("del_other", place="2"))
        assert await queue(store) == ["del_c", "del_a", "del_b"]
        assert await queue(store, limit=2) == ["del_c", "del_a"]
        assert await queue(store, ("telegram", "2")) == ["del_other"]
        assert await queue(store, ("slack", "1")) == []
        numbers = [row.number for row in await store.outbox.open(HERE)]
        assert numbers == sorted(set(numbers))

    async def test_parts_follow_each_other_in_the_order_of_their_answers(self, store: HostStateStore) -> None:
        for answer in ("z", "a"):
            await add(
                store, *(delivery(f"{answer}{part}", answer_id=answer, part=part, parts=12) for part in range(12))
            )
        assert await queue(store, limit=30) == [f"{answer}{part}" for answer in ("z", "a") for part in range(12)]
        first = await read(store, "z0")
        await change(store, first.replace(status="accepted", ended_at=NOW))
        assert (await queue(store))[0] == "z1"

    async def test_a_conversation_is_a_destination_of_its_own(self, store: HostStateStore) -> None:
        await add(store, delivery("del_1"), delivery("del_2", conversation_id="group"))
        assert await queue(store) == ["del_1"]
        assert await queue(store, ("telegram", "group")) == ["del_2"]

    @pytest.mark.parametrize("status", ["accepted", "unknown", "dead", "cancelled"])
    async def test_what_has_ended_leaves_the_queue(self, store: HostStateStore, status: str) -> None:
        await add(store, delivery("del_1"), delivery("del_2"), delivery("del_3", status=status, ended_at=NOW))
        tried = (Attempt(at=NOW, code="ok"),)
        first = await read(store, "del_1")
        ended = first.replace(status=status, receipt="r\0", error="e", ended_at=NOW + 1, attempts=3, history=tried)
        await change(store, ended)
        assert await queue(store) == ["del_2"]
        assert await store.outbox.get("del_1") == ended.replace(fence=first.fence + 1)

    async def test_one_that_comes_back_stands_where_it_stood(self, store: HostStateStore) -> None:
        await add(store, delivery("del_1", status="dead", ended_at=NOW), delivery("del_2"), delivery("del_3"))
        assert await queue(store) == ["del_2", "del_3"]
        await change(store, (await read(store, "del_1")).replace(status="pending", ended_at=None))
        assert await queue(store) == ["del_1", "del_2", "del_3"]

    async def test_whoever_changes_one_must_know_its_last_state(self, store: HostStateStore) -> None:
        await add(store, delivery())
        first = await read(store, "del_1")
        await change(store, first.replace(status="sending", attempts=1), hold=30.0)
        with pytest.raises(LostDeliveryError):
            await change(store, first.replace(status="dead", ended_at=NOW))
        with pytest.raises(LostDeliveryError):
            await change(store, delivery("del_unknown"))
        assert (await read(store, "del_1")).status == "sending"
        await change(store, (await read(store, "del_1")).replace(status="accepted", ended_at=NOW))
        assert await queue(store) == []

    async def test_of_twenty_who_take_one_one_gets_it(self, store: HostStateStore) -> None:
        await add(store, delivery())
        taken = (await read(store, "del_1")).replace(status="sending")
        done = await asyncio.gather(*(change(store, taken, hold=30.0) for _ in range(20)), return_exceptions=True)
        assert done.count(None) == 1
        assert sum(isinstance(outcome, LostDeliveryError) for outcome in done) == 19

    async def test_a_lost_change_takes_the_rest_of_its_transaction_with_it(self, store: HostStateStore) -> None:
        await add(store, delivery("del_1"), delivery("del_2"))
        first, second = await read(store, "del_1"), await read(store, "del_2")
        with pytest.raises(LostDeliveryError):
            await change(store, first.replace(status="dead", ended_at=NOW), second.replace(fence=7))
        assert await queue(store) == ["del_1", "del_2"]

    async def test_a_delivery_that_is_added_again_stays_as_it_is(self, store: HostStateStore) -> None:
        await add(store, delivery())
        await change(store, (await read(store, "del_1")).replace(status="accepted", receipt="r", ended_at=NOW))
        await add(store, delivery(payload="other"))
        row = await read(store, "del_1")
        assert (row.status, row.payload) == ("accepted", {"text": "hello"})
        assert await queue(store) == []

    async def test_what_may_be_added_once_is_not_added_twice(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.add_delivery(delivery(), once=True)
        with pytest.raises(DeliveryExistsError):
            await self._say_again(store)
        assert await queue(store) == ["del_1"]
        assert await store.runs.get("alice", "run_of_the_second") is None

    async def _say_again(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.save_run(run("run_of_the_second"))
            transaction.add_delivery(delivery(), once=True)

    async def test_a_dead_part_ends_what_follows_in_its_answer(self, store: HostStateStore) -> None:
        parts = [delivery(f"del_{number}", answer_id="a", part=number, parts=4) for number in range(4)]
        await add(store, *parts, delivery("del_next", answer_id="b", part=3))
        await add(store, delivery("del_there", answer_id="a", part=3, place="2"))
        async with store.transaction() as transaction:
            transaction.end_rest(parts[1], error="why", at=NOW + 1)
        assert await queue(store) == ["del_0", "del_1", "del_next"]
        last = await read(store, "del_3")
        assert (last.status, last.error, last.ended_at) == ("dead", "why", NOW + 1)
        assert await queue(store, ("telegram", "2")) == ["del_there"]

    async def test_each_destination_waits_once(self, store: HostStateStore) -> None:
        assert list(await store.outbox.waiting("telegram", now=NOW)) == []
        await add(store, *(delivery(f"del_{place}{number}", place=place) for place in "cab" for number in range(3)))
        await add(store, delivery("del_slack", channel="slack"), delivery("del_done", place="d", ended_at=NOW))
        destinations = list(await store.outbox.waiting("telegram", now=NOW))
        assert sorted(destinations) == ["a", "b", "c"]
        assert list(await store.outbox.waiting("slack", now=NOW)) == ["1"]
        pages: list[str] = []
        while page := await store.outbox.waiting("telegram", now=NOW, after=pages[-1] if pages else None, limit=1):
            pages += page
        assert pages == destinations

    async def test_only_the_first_says_whether_a_destination_is_due(self, store: HostStateStore) -> None:
        await add(store, delivery("del_1", due_at=NOW + 5), delivery("del_2"))
        await add(store, delivery("del_3", place="2"), delivery("del_4", place="2", due_at=NOW + 5))
        assert list(await store.outbox.waiting("telegram", now=NOW)) == ["2"]
        assert sorted(await store.outbox.waiting("telegram", now=NOW + 5)) == ["1", "2"]

    async def test_a_time_that_is_too_far_ahead_is_not_waited_for(self, store: HostStateStore) -> None:
        await add(store, delivery("del_1", due_at=NOW + 10), delivery("del_2", place="2", due_at=NOW + 11))
        await add(store, delivery("del_3", place="3"), delivery("del_4", place="3", due_at=NOW + 11))
        assert list(await store.outbox.waiting("telegram", now=NOW)) == ["3"]
        destinations = list(await store.outbox.waiting("telegram", now=NOW, longest=10.0))
        assert sorted(destinations) == ["2", "3"]
        assert (
            list(await store.outbox.waiting("telegram", now=NOW, longest=10.0, after=destinations[0]))
            == destinations[1:]
        )

    async def test_what_another_process_sends_is_left_to_it(self, store: HostStateStore) -> None:
        await add(store, delivery())
        await change(store, (await read(store, "del_1")).replace(status="sending"), hold=60.0)
        (row,) = await store.outbox.open(HERE)
        # Where no other process can send it, a delivery that is being sent was left behind.
        assert (row.held_for > 0) is (store.lease_seconds is not None)
        assert bool(await store.outbox.waiting("telegram", now=NOW)) is (store.lease_seconds is None)

    async def test_deliveries_are_found_by_what_is_known_of_them(self, store: HostStateStore) -> None:
        await add(store, delivery("del_1"), delivery("del_2", channel="slack", run_id="run_2"))
        await add(store, delivery("del_3", owner=OTHER), delivery("del_4", status="dead", ended_at=NOW))

        async def search(**asked: object) -> list[str]:
            return [row.delivery_id for row in await store.outbox.find(**asked)]  # type: ignore[arg-type]

        assert await search() == ["del_4", "del_3", "del_2", "del_1"]
        assert await search(status="dead") == ["del_4"]
        assert await search(channel="telegram", owner="alice") == ["del_4", "del_1"]
        assert await search(run_id="run_2") == ["del_2"]
        first, second = await store.outbox.find(limit=2)
        assert [first.delivery_id, second.delivery_id] == ["del_4", "del_3"]
        assert await search(before="del_3") == ["del_2", "del_1"]
        assert await search(before="del_never") == []
        assert dict(await store.outbox.counts()) == {"pending": 3, "dead": 1}

    async def test_odd_ids_are_deliveries_and_places_like_any_other(self, store: HostStateStore) -> None:
        await add(store, *(delivery(key, place=key) for key in ODD_KEYS))
        assert sorted(await store.outbox.waiting("telegram", now=NOW)) == sorted(ODD_KEYS)
        for key in ODD_KEYS:
            assert await queue(store, ("telegram", key)) == [key]
            assert bare(await store.outbox.get(key)) == delivery(key, place=key)
