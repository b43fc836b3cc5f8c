"""The contract of a store for the values of channels."""

import asyncio

import pytest

from frontdesk.errors import LostEventError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.live_message import LiveFence, LiveMessageRecord
from frontdesk_testing.store_samples import NOW, ODD_KEYS, VALUE_PLACE, build_value


class ChannelValues:
    """Values by channel, storage and key."""

    async def test_a_value_is_kept_replaced_and_deleted(self, store: HostStateStore) -> None:
        assert await store.channel_values.get(VALUE_PLACE, now=NOW) is None
        for value in (build_value("val_1"), build_value("val_2", expires_at=NOW + 5), build_value("val_3")):
            await store.channel_values.set(VALUE_PLACE, value)
            assert await store.channel_values.get(VALUE_PLACE, now=NOW) == value
        await store.channel_values.delete(VALUE_PLACE)
        assert await store.channel_values.get(VALUE_PLACE, now=NOW) is None
        await store.channel_values.delete(VALUE_PLACE)

    async def test_no_other_place_has_a_value(self, store: HostStateStore) -> None:
        places = [VALUE_PLACE.replace(channel=odd) for odd in ODD_KEYS]
        places += [VALUE_PLACE.replace(storage=odd) for odd in ODD_KEYS]
        places += [VALUE_PLACE.replace(key=odd) for odd in ODD_KEYS]
        for number, place in enumerate(places):
            await store.channel_values.set(place, build_value(f"val_{number}"))
        found = [await store.channel_values.get(place, now=NOW) for place in places]
        assert found == [build_value(f"val_{number}") for number in range(len(places))]
        assert await store.channel_values.get(VALUE_PLACE, now=NOW) is None

    async def test_a_value_that_has_expired_is_not_there(self, store: HostStateStore) -> None:
        value = build_value(expires_at=NOW + 5)
        await store.channel_values.set(VALUE_PLACE, value)
        assert await store.channel_values.get(VALUE_PLACE, now=NOW + 4.9) == value
        assert await store.channel_values.get(VALUE_PLACE, now=NOW + 5) is None
        assert not await store.channel_values.compare_and_set(VALUE_PLACE, "val_1", build_value("val_2"), now=NOW + 5)
        assert await store.channel_values.compare_and_set(VALUE_PLACE, None, build_value("val_3"), now=NOW + 5)

    async def test_a_value_is_set_only_in_place_of_the_one_that_was_read(self, store: HostStateStore) -> None:
        values = store.channel_values
        assert not await values.compare_and_set(VALUE_PLACE, "val_0", build_value("val_1"), now=NOW)
        assert await values.compare_and_set(VALUE_PLACE, None, build_value("val_1"), now=NOW)
        assert not await values.compare_and_set(VALUE_PLACE, None, build_value("val_2"), now=NOW)
        assert not await values.compare_and_set(VALUE_PLACE, "val_0", build_value("val_2"), now=NOW)
        assert await values.compare_and_set(VALUE_PLACE, "val_1", build_value("val_2"), now=NOW)
        assert await values.get(VALUE_PLACE, now=NOW) == build_value("val_2")

    async def test_a_value_is_set_under_a_fence_only_by_the_owner_of_the_live_answer(
        self, store: HostStateStore
    ) -> None:
        live = LiveMessageRecord(
            run_id="run_1", channel="web", place="p", state="opening", fence=2, expires_at=NOW + 60
        )
        fence = LiveFence(run_id="run_1", channel="web", place="p", fence=2)
        values, version = store.channel_values, 0

        async def sets() -> bool:
            nonlocal version
            version += 1
            await values.delete(VALUE_PLACE)
            try:
                return await values.compare_and_set(
                    VALUE_PLACE, None, build_value(f"val_{version}"), now=NOW, fence=fence
                )
            except LostEventError:
                assert await values.get(VALUE_PLACE, now=NOW) is None
                return False

        assert not await sets()
        for answer, may in (
            (live, True),
            (live.replace(fence=3), False),
            (live.replace(fence=3, state="closed"), False),
        ):
            async with store.transaction() as transaction:
                transaction.save_live(answer)
            assert await sets() == may

    async def test_a_closed_live_answer_refuses_values_of_its_own_claim(self, store: HostStateStore) -> None:
        live = LiveMessageRecord(run_id="run_1", channel="web", place="p", state="closed", fence=2, expires_at=NOW + 60)
        async with store.transaction() as transaction:
            transaction.save_live(live)
        fence = LiveFence(run_id="run_1", channel="web", place="p", fence=2)
        with pytest.raises(LostEventError):
            await store.channel_values.compare_and_set(VALUE_PLACE, None, build_value("val_1"), now=NOW, fence=fence)

    async def test_of_twenty_that_read_the_same_one_sets(self, store: HostStateStore) -> None:
        expected: str | None = None
        for turn in range(2):
            values = [build_value(f"val_{turn}_{number}") for number in range(20)]
            done = await asyncio.gather(
                *(store.channel_values.compare_and_set(VALUE_PLACE, expected, value, now=NOW) for value in values)
            )
            assert done.count(True) == 1
            assert await store.channel_values.get(VALUE_PLACE, now=NOW) == values[done.index(True)]
            expected = values[done.index(True)].version
