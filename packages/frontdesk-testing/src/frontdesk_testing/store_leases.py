"""The contract of stores for leases of sessions."""

import asyncio

import pytest

from frontdesk.errors import StaleTurnError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.session import Lease
from frontdesk_testing.store_samples import OTHER, OWNER, build_messages, build_name, keep_session, session, texts


async def save(store: HostStateStore, lease: Lease, turns: int, *, keep: bool = False) -> None:
    """Write a session with a lease."""
    async with store.transaction() as transaction:
        transaction.save_session(session(lease.session_id, turns=turns), lease, keep=keep)


async def check_refused(store: HostStateStore, lease: Lease) -> None:
    """Check that a lease that has ended writes nothing."""
    before = await store.sessions.get(OWNER, lease.session_id)
    with pytest.raises(StaleTurnError):
        await save(store, lease, 99)
    assert await store.sessions.get(OWNER, lease.session_id) == before


class Leases:
    """Leases to write a session."""

    async def test_a_newer_lease_ends_the_older(self, store: HostStateStore) -> None:
        old = await store.sessions.claim("ses_1")
        new = await store.sessions.claim("ses_1")
        assert new.fence > old.fence
        with pytest.raises(StaleTurnError):
            async with store.transaction() as transaction:
                transaction.save_session(session(turns=1), old)
        assert await store.sessions.get(OWNER, "ses_1") is None
        async with store.transaction() as transaction:
            transaction.save_session(session(turns=2), new)
        assert await store.sessions.get(OWNER, "ses_1") == session(turns=2)

    async def test_a_new_session_is_claimed_at_once_and_found_by_its_id(self, store: HostStateStore) -> None:
        lease = store.sessions.begin(OWNER, "ses_1")
        assert lease.session_id == "ses_1"
        assert await store.sessions.get(OWNER, "ses_1") is None
        assert await store.sessions.reserve(build_name("ses_1"), "ses_2") == "ses_1"
        assert await store.sessions.reserve(build_name("ses_1", owner=OTHER), "ses_3") == "ses_3"
        async with store.transaction() as transaction:
            transaction.save_session(session(turns=1), lease)
        assert await store.sessions.find(build_name("ses_1")) == session(turns=1)
        assert await store.sessions.find(build_name("ses_1", owner=OTHER)) is None
        newer = await store.sessions.claim("ses_1")
        assert newer.fence > lease.fence
        with pytest.raises(StaleTurnError):
            async with store.transaction() as transaction:
                transaction.save_session(session(turns=2), lease)

    async def test_a_lease_lasts_until_the_next_one(self, store: HostStateStore) -> None:
        lease = await store.sessions.claim("ses_1")
        for turns in (1, 2):
            async with store.transaction() as transaction:
                transaction.save_session(session(turns=turns), lease)
        assert await store.sessions.get(OWNER, "ses_1") == session(turns=2)

    async def test_an_older_lease_stays_ended_after_the_newer_was_used(self, store: HostStateStore) -> None:
        old = await store.sessions.claim("ses_1")
        await keep_session(store, session(turns=2))
        with pytest.raises(StaleTurnError):
            async with store.transaction() as transaction:
                transaction.save_session(session(turns=1), old)
        assert await store.sessions.get(OWNER, "ses_1") == session(turns=2)

    async def test_a_lease_is_good_for_its_own_session_only(self, store: HostStateStore) -> None:
        lease = await store.sessions.claim("ses_1")
        await store.sessions.claim("ses_2")
        with pytest.raises(StaleTurnError):
            async with store.transaction() as transaction:
                transaction.save_session(session("ses_2"), lease)
        assert await store.sessions.get(OWNER, "ses_2") is None

    async def test_a_lease_that_was_never_given_out_is_refused(self, store: HostStateStore) -> None:
        lease = await store.sessions.claim("ses_1")
        with pytest.raises(StaleTurnError):
            async with store.transaction() as transaction:
                transaction.save_session(session(), lease.replace(fence=lease.fence + 1))
        assert await store.sessions.get(OWNER, "ses_1") is None

    async def test_of_twenty_claims_at_once_only_the_last_may_write(self, store: HostStateStore) -> None:
        leases = await asyncio.gather(*(store.sessions.claim("ses_1") for _ in range(20)))
        assert len({lease.fence for lease in leases}) == 20
        last = max(leases, key=lambda lease: lease.fence)
        for lease in leases:
            if lease != last:
                with pytest.raises(StaleTurnError):
                    async with store.transaction() as transaction:
                        transaction.save_session(session(), lease)
        async with store.transaction() as transaction:
            transaction.save_session(session(), last)

    @pytest.mark.parametrize("begun", [True, False])
    async def test_a_lease_that_was_released_has_ended(self, store: HostStateStore, begun: bool) -> None:
        lease = store.sessions.begin(OWNER, "ses_1") if begun else await store.sessions.claim("ses_1")
        store.sessions.release(lease)
        await check_refused(store, lease)
        await save(store, await store.sessions.claim("ses_1"), 1)
        await check_refused(store, lease)

    async def test_a_lease_that_is_released_after_it_was_used_has_ended_too(self, store: HostStateStore) -> None:
        lease = await store.sessions.claim("ses_1")
        await save(store, lease, 1)
        store.sessions.release(lease)
        await check_refused(store, lease)

    async def test_releasing_again_or_an_older_lease_changes_nothing(self, store: HostStateStore) -> None:
        old = await store.sessions.claim("ses_1")
        store.sessions.release(old)
        new = await store.sessions.claim("ses_1")
        for lease in (old, old, new.replace(fence=new.fence + 1), new.replace(session_id="ses_2")):
            store.sessions.release(lease)
        await save(store, new, 1)
        assert await store.sessions.get(OWNER, "ses_1") == session(turns=1)

    async def test_a_session_can_be_kept_over_what_is_written(self, store: HostStateStore) -> None:
        for session_id, lease in (
            ("ses_1", await store.sessions.claim("ses_1")),
            ("ses_2", store.sessions.begin(OWNER, "ses_2")),
        ):
            for turns in (1, 2, 3):
                await save(store, lease, turns, keep=True)
                assert await store.sessions.get(OWNER, session_id) == session(session_id, turns=turns)
            newer = await store.sessions.claim(session_id)
            await check_refused(store, lease)
            store.sessions.release(lease)
            await save(store, newer, 4)

    async def test_taking_by_force_ends_the_older_lease_after_what_it_has_written(self, store: HostStateStore) -> None:
        old = await store.sessions.claim("ses_1")

        async def write() -> None:
            async with store.transaction() as transaction:
                transaction.save_session(session(turns=1), old)
                transaction.append_history("ses_1", build_messages("last words"))

        writing = asyncio.create_task(write())
        # The turn has given its result away, and waits for it to be safe.
        await asyncio.sleep(0)
        new = await store.sessions.claim("ses_1", force=True)
        assert await store.sessions.get(OWNER, "ses_1") == session(turns=1)
        assert texts(await store.sessions.history(OWNER, "ses_1")) == ["last words"]
        await writing
        await check_refused(store, old)
        await save(store, new, 2)

    async def test_good_leases_are_renewed_and_lost_ones_named(self, store: HostStateStore) -> None:
        good = [
            await store.sessions.claim("ses_1"),
            store.sessions.begin(OWNER, "ses_2"),
            store.sessions.begin(OWNER, "ses_3"),
        ]
        await save(store, good[2], 1, keep=True)
        old = await store.sessions.claim("ses_4")
        good.append(await store.sessions.claim("ses_4"))
        released = await store.sessions.claim("ses_5")
        store.sessions.release(released)
        for _ in range(2):
            assert list(await store.sessions.renew(good)) == []
            # Where no other process can take a session there is nothing to renew.
            lost = set[Lease]() if store.lease_seconds is None else {old, released}
            assert set(await store.sessions.renew([*good, old, released])) == lost
        for lease in good:
            await save(store, lease, 2)
        assert list(await store.sessions.renew([])) == []
