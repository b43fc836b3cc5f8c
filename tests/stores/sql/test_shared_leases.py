"""Leases over processes: each store here stands for a host of its own on one database."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from frontdesk.errors import SessionBusyError, StaleTurnError
from frontdesk.models.session import Lease
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import (
    NOW,
    OWNER,
    build_last_seen,
    build_messages,
    identity,
    keep_session,
    session,
    texts,
)
from tests.scenarios.desk import until

Two = tuple[PostgresStateStore, PostgresStateStore]


@pytest.fixture
async def two(postgres_tables: str) -> AsyncIterator[Two]:
    one, other = (
        PostgresStateStore(postgres_tables, clock=FakeClock(NOW)),
        PostgresStateStore(postgres_tables, clock=FakeClock(NOW)),
    )
    await one.open()
    await other.open()
    yield one, other
    await one.close()
    await other.close()


async def save(store: PostgresStateStore, lease: Lease, turns: int = 1, *, keep: bool = False) -> None:
    async with store.transaction() as transaction:
        transaction.save_session(session(lease.session_id, turns=turns), lease, keep=keep)


async def is_busy(store: PostgresStateStore, session_id: str = "ses_1") -> bool:
    """Whether another host holds it; if not, it is taken and given free again."""
    try:
        store.sessions.release(await store.sessions.claim(session_id))
    except SessionBusyError as error:
        return error.retry_after == 1.0
    return False


async def is_free(store: PostgresStateStore) -> bool:
    return not await is_busy(store)


async def expire(store: PostgresStateStore) -> None:
    """As if time had passed, for the only clock that counts: the database's."""
    await store._engine.read("UPDATE leases SET until = 0 WHERE until > 0 RETURNING 1")


async def test_a_session_is_busy_while_another_host_holds_it(two: Two) -> None:
    one, other = two
    lease = await one.sessions.claim("ses_1")
    assert await is_busy(other)
    with pytest.raises(SessionBusyError):
        await other.sessions.claim("ses_1", force=True)
    assert not await is_busy(other, "ses_2")
    one.sessions.release(lease)
    await until(lambda: is_free(other))


async def test_what_was_written_is_free_at_once_unless_it_is_kept(two: Two) -> None:
    one, other = two
    lease = await one.sessions.claim("ses_1")
    await save(one, lease, keep=True)
    assert await is_busy(other)
    await save(one, lease)
    assert not await is_busy(other)


async def test_a_lease_that_ran_out_is_taken_and_its_holder_writes_nothing_more(two: Two) -> None:
    one, other = two
    old = await one.sessions.claim("ses_1")
    await expire(one)
    new = await other.sessions.claim("ses_1")
    assert new.fence > old.fence
    assert list(await one.sessions.renew([old])) == [old]
    with pytest.raises(StaleTurnError):
        await save(one, old, 1)
    await save(other, new, 2)
    assert await one.sessions.get(OWNER, "ses_1") == session(turns=2)


async def test_a_lease_that_is_renewed_does_not_run_out(two: Two) -> None:
    one, other = two
    lease = await one.sessions.claim("ses_1")
    await expire(one)
    assert list(await one.sessions.renew([lease])) == []
    assert await is_busy(other)


async def test_a_session_that_was_begun_and_kept_is_a_session_like_any_other(two: Two) -> None:
    one, other = two
    lease = one.sessions.begin(OWNER, "ses_1")
    await save(one, lease, keep=True)
    assert await is_busy(other)
    await save(one, lease, 2)
    assert not await is_busy(other)


async def test_a_session_that_was_begun_and_kept_once_stayed_taken(two: Two) -> None:
    # The last write did not give the row free, and neither did the release after it.
    one, other = two
    lease = one.sessions.begin(OWNER, "ses_1")
    await save(one, lease, keep=True)
    await save(one, lease)
    one.sessions.release(lease)
    assert not await is_busy(other)


async def test_a_session_that_was_begun_and_kept_once_was_not_renewed(two: Two) -> None:
    one, other = two
    lease = one.sessions.begin(OWNER, "ses_1")
    await save(one, lease, keep=True)
    await expire(one)
    assert list(await one.sessions.renew([lease])) == []
    assert await is_busy(other)


async def test_a_session_that_was_begun_was_once_written_over(two: Two) -> None:
    one, other = two
    lease = one.sessions.begin(OWNER, "ses_1")
    await save(one, lease, 1, keep=True)
    await expire(one)
    await save(other, await other.sessions.claim("ses_1"), 2)
    with pytest.raises(StaleTurnError):
        await save(one, lease, 3)
    assert list(await one.sessions.renew([lease])) == [lease]
    assert await one.sessions.get(OWNER, "ses_1") == session(turns=2)


async def test_what_was_begun_and_stored_is_claimed_like_any_other(two: Two) -> None:
    one, other = two
    lease = one.sessions.begin(OWNER, "ses_1")
    await save(one, lease, 1)
    await save(other, await other.sessions.claim("ses_1"), 2)
    with pytest.raises(StaleTurnError):
        await save(one, lease, 3)
    assert await other.sessions.get(OWNER, "ses_1") == session(turns=2)


async def test_an_older_lease_got_through_in_one_lot_with_the_newer(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = two
    old = await one.sessions.claim("ses_1")
    new = await one.sessions.claim("ses_1")
    # As if the newer one had not come back to this host yet when the older one was used.
    monkeypatch.setattr(vars(one._engine)["leases"], "holds", lambda lease: True)
    results = await asyncio.gather(save(one, old, 1), save(one, new, 2), return_exceptions=True)
    assert [type(result) for result in results] == [StaleTurnError, type(None)]
    assert await one.sessions.get(OWNER, "ses_1") == session(turns=2)


async def test_a_released_lease_is_not_renewed(two: Two) -> None:
    one, other = two
    lease = await one.sessions.claim("ses_1")
    one.sessions.release(lease)
    assert list(await one.sessions.renew([lease])) == [lease]
    await until(lambda: is_free(other))


async def test_a_history_that_another_host_went_on_with_is_seen(two: Two) -> None:
    for number in range(6):
        await keep_session(two[number % 2], session(), build_messages(str(number)))
        expected = [str(before) for before in range(number + 1)]
        for store in two:
            assert texts(await store.sessions.history(OWNER, "ses_1")) == expected


async def count_deadlocks(store: PostgresStateStore) -> int:
    """Return how many the database has seen; other tests may have used it before."""
    rows = await store._engine.read("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    return int(rows[0][0])


async def test_two_hosts_that_write_the_same_rows_do_not_stand_in_each_others_way(two: Two) -> None:
    people = [f"person {number}" for number in range(20)]

    async def see(store: PostgresStateStore, keys: list[str]) -> None:
        async with store.transaction() as transaction:
            for key in keys:
                transaction.see(build_last_seen(identity(key), key=key))

    before = await count_deadlocks(two[0])
    for _ in range(10):
        await asyncio.gather(see(two[0], people), see(two[1], people[::-1]))
    assert await count_deadlocks(two[0]) == before
