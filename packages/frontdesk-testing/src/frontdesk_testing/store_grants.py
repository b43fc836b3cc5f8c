"""The contract of stores for pending proofs of identity."""

import asyncio

import pytest

from frontdesk.errors import StoreError
from frontdesk.interfaces.store import HostStateStore
from frontdesk_testing.store_samples import ODD_KEYS, OWNER, grant, inbox_item, run


async def begin(store: HostStateStore, *grant_ids: str) -> None:
    """Store grants."""
    async with store.transaction() as transaction:
        for grant_id in grant_ids:
            transaction.add_grant(grant(grant_id))


async def use(store: HostStateStore, grant_id: str) -> bool:
    """Use a grant. Return True if that was possible."""
    try:
        async with store.transaction() as transaction:
            transaction.use_grant(grant_id)
    except StoreError:
        return False
    return True


class Grants:
    """Pending proofs. Each is used once."""

    async def test_a_grant_is_read_as_it_was_last_written(self, store: HostStateStore) -> None:
        assert await store.identities.grant("gra_1") is None
        for sample in (grant("gra_1", state="a"), grant("gra_1", state="b", deep=[{"x": None}])):
            async with store.transaction() as transaction:
                transaction.add_grant(sample)
            assert await store.identities.grant("gra_1") == sample

    async def test_a_grant_keeps_the_events_for_after_the_link(self, store: HostStateStore) -> None:
        sample = grant("gra_1").replace(requests=(inbox_item("evt_1"), inbox_item("evt_2", group=True)))
        async with store.transaction() as transaction:
            transaction.add_grant(sample)
        assert await store.identities.grant("gra_1") == sample

    async def test_a_used_grant_and_its_event_are_written_together_or_not_at_all(self, store: HostStateStore) -> None:
        await begin(store, "gra_1")
        for accepts in (True, False):
            try:
                async with store.transaction() as transaction:
                    transaction.use_grant("gra_1")
                    transaction.accept(inbox_item("evt_1" if accepts else "evt_2"))
            except StoreError:
                assert not accepts
        assert await store.inbox.find("telegram", "evt_1") is not None
        assert await store.inbox.find("telegram", "evt_2") is None

    async def test_a_grant_is_used_once(self, store: HostStateStore) -> None:
        await begin(store, "gra_1", "gra_2")
        assert await use(store, "gra_1")
        assert await store.identities.grant("gra_1") is None
        assert not await use(store, "gra_1")
        assert await store.identities.grant("gra_2") == grant("gra_2")

    async def test_of_twenty_uses_at_once_one_counts(self, store: HostStateStore) -> None:
        await begin(store, "gra_1")
        used = await asyncio.gather(*(use(store, "gra_1") for _ in range(20)))
        assert used.count(True) == 1

    async def test_what_comes_with_a_grant_that_is_not_there_is_not_written(self, store: HostStateStore) -> None:
        with pytest.raises(StoreError):
            await self._use_unknown(store)
        assert await store.runs.get(OWNER, "run_1") is None

    async def test_odd_ids_are_grants_like_any_other(self, store: HostStateStore) -> None:
        await begin(store, *ODD_KEYS)
        for key in ODD_KEYS:
            assert await store.identities.grant(key) == grant(key)
            assert await use(store, key)
            assert await store.identities.grant(key) is None

    async def test_a_used_grant_can_be_given_again(self, store: HostStateStore) -> None:
        for _ in range(2):
            await begin(store, "gra_1")
            assert await use(store, "gra_1")

    async def _use_unknown(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            transaction.save_run(run())
            transaction.use_grant("gra_unknown")


class Checkpoints:
    """Checkpoints of workflows that have paused."""

    async def test_a_checkpoint_is_read_as_it_was_last_written(self, store: HostStateStore) -> None:
        assert await store.checkpoints.get("ses_1", "chk_1") is None
        for data in (b"one", bytes(range(256)) * 4096):
            async with store.transaction() as transaction:
                transaction.save_checkpoint("ses_1", "chk_1", data)
            assert await store.checkpoints.get("ses_1", "chk_1") == data

    async def test_a_deleted_checkpoint_is_gone_and_its_neighbours_are_not(self, store: HostStateStore) -> None:
        places = [("ses_1", "chk_1"), ("ses_1", "chk_2"), ("ses_2", "chk_1")]
        async with store.transaction() as transaction:
            for session_id, checkpoint_id in places:
                transaction.save_checkpoint(session_id, checkpoint_id, b"data")
        async with store.transaction() as transaction:
            transaction.delete_checkpoint("ses_1", "chk_1")
            transaction.delete_checkpoint("ses_1", "chk_unknown")
        assert [await store.checkpoints.get(*place) for place in places] == [None, b"data", b"data"]

    async def test_odd_ids_are_checkpoints_like_any_other(self, store: HostStateStore) -> None:
        async with store.transaction() as transaction:
            for number, key in enumerate(ODD_KEYS):
                transaction.save_checkpoint(key, "chk", b"of session %d" % number)
                transaction.save_checkpoint("ses", key, b"checkpoint %d" % number)
        for number, key in enumerate(ODD_KEYS):
            assert await store.checkpoints.get(key, "chk") == b"of session %d" % number
            assert await store.checkpoints.get("ses", key) == b"checkpoint %d" % number
