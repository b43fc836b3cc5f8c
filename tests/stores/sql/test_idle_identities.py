"""People who came once and left nothing behind are forgotten; nobody else is."""

from collections.abc import Callable
from typing import Any

import pytest

from frontdesk.access.identify import IdentityKeys
from frontdesk.ids import RandomIds
from frontdesk.interfaces.store import StateTransaction
from frontdesk.models.operations import Expiry
from frontdesk.stores.sql import sweeper
from frontdesk.stores.sql.writes import Do
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import (
    NOW,
    OWNER,
    build_identity,
    build_last_seen,
    build_messages,
    conversation,
    delivery,
    identity,
    job,
    keep_session,
    link,
    question,
    run,
    session,
)
from tests.stores.sql.bases import Base
from tests.stores.sql.test_sweeper import NEVER, counts, quiet

DAY = 86_400.0
YEAR = 365 * DAY
EXPIRY = NEVER.replace(identities=YEAR, runs=DAY, continuations=DAY)


@pytest.fixture
def base(base_with_tables: Base) -> Base:
    return base_with_tables


async def test_an_identity_of_which_nothing_was_left_stayed_for_ever(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=EXPIRY, clock=clock) as store:
        keys = IdentityKeys(store, RandomIds(), clock)
        first = await keys.issue(identity())
        assert await keys.look_up(identity()) == first
        # Noted once a day at most, and known for a day.
        clock.advance(YEAR + 2 * DAY)
        assert await store._sweep.once() == 0
        clock.advance(1)
        assert await store._sweep.look() == 1
        assert counts(base, "identities") == [0]
        # Whoever comes back is somebody new, and so is everybody else.
        assert await keys.look_up(identity()) is None
        assert await keys.issue(identity()) not in (None, first)


Leave = Callable[[StateTransaction], None]


def _queue(transaction: StateTransaction) -> None:
    transaction.queue_run(
        run(status="queued", background=True, finished_at=None), job("run_1"), most_waiting=10, most_of_owner=10
    )


LEFT: dict[str, Leave] = {
    "conversations": lambda transaction: transaction.save_conversation(conversation()),
    "approvals": lambda transaction: transaction.add_approval(question()),
    "deliveries": lambda transaction: transaction.add_delivery(delivery()),
    "last_seen": lambda transaction: transaction.see(build_last_seen(identity())),
    "links": lambda transaction: transaction.add_link(link(identity())),
    # Of somebody else, who was linked with them.
    "links of others": lambda transaction: transaction.add_link(link(identity("2"))),
    "background": _queue,
}


@pytest.mark.parametrize("what", [*LEFT, "sessions"])
async def test_an_identity_stays_as_long_as_something_of_it_is_there(base: Base, what: str) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=EXPIRY, clock=clock) as store:
        await store.identities.remember(build_identity(identity()))
        if what == "sessions":
            await keep_session(store, session(), build_messages("one"))
        else:
            async with store.transaction() as transaction:
                LEFT[what](transaction)
        clock.advance(100 * YEAR)
        await store._sweep.once()
        assert counts(base, "identities") == [1]
        base.execute(f"DELETE FROM {what.split()[0]}")
        assert await store._sweep.once() == 1


async def test_somebody_whose_links_have_changed_stays(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=EXPIRY, clock=clock) as store:
        known = await store.identities.remember(build_identity(identity()))
        async with store.transaction() as transaction:
            # What was theirs before is under a key that only this record knows.
            transaction.remember_identity(known.replace(version=1, archived=("old",)), instead_of=known)
        clock.advance(100 * YEAR)
        assert await store._sweep.once() == 0


async def test_somebody_who_comes_now_and_then_is_not_forgotten(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=EXPIRY, clock=clock) as store:
        await store.identities.remember(build_identity(identity()))
        for _ in range(20):
            clock.advance(0.4 * YEAR)
            assert await store._sweep.once() == 0
            assert await store.identities.find(identity()) == build_identity(identity())


async def test_that_somebody_was_seen_is_written_once_a_day_at_most(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=EXPIRY, clock=clock) as store:
        await store.identities.remember(build_identity(identity()))
        plain, writes = store._engine.write, 0

        async def write(ops: Any) -> Any:
            nonlocal writes
            writes += 1
            return await plain(ops)

        monkeypatch.setattr(store._engine, "write", write)
        for _ in range(240):
            clock.advance(DAY / 24)
            await store.identities.find(identity())
        # Where nobody else writes, a record is known for a day before its row is looked at again.
        assert 5 <= writes <= 10


async def test_rows_of_an_older_version_begin_their_time_when_they_are_looked_at(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=EXPIRY, clock=clock) as store:
        await store.identities.remember(build_identity(identity()))
        base.execute("UPDATE identities SET seen_at = NULL")
        clock.advance(10 * YEAR)
        assert await store._sweep.once() == 0
        clock.advance(YEAR + 2 * DAY)
        assert await store._sweep.once() == 0
        clock.advance(1)
        assert await store._sweep.once() == 1


async def test_somebody_was_forgotten_between_two_looks_and_used_all_the_same(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=EXPIRY, clock=clock) as store:
        await store.identities.remember(build_identity(identity()))
        clock.advance(2 * YEAR)
        plain: Any = store._engine.read

        async def read(sql: str, values: Any = ()) -> Any:
            rows = await plain(sql, values)
            monkeypatch.undo()
            assert await store._sweep.once() == 1
            return rows

        monkeypatch.setattr(store._engine, "read", read)
        assert await store.identities.find(identity()) is None


async def test_many_are_dropped_page_by_page(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(NOW)
    monkeypatch.setattr(sweeper, "PAGE", 3)
    async with quiet(base, expiry=EXPIRY, clock=clock) as store:
        for number in range(10):
            await store.identities.remember(build_identity(identity(str(number)), f"key_{number}"))
        plain, reads = store._engine.read, 0

        async def read(sql: str, values: Any = ()) -> Any:
            nonlocal reads
            reads += "FROM identities" in sql
            return await plain(sql, values)

        monkeypatch.setattr(store._engine, "read", read)
        assert await store._sweep.look() == 0
        assert reads == 1
        clock.advance(2 * YEAR)
        # It goes on where the look before has ended, for as long as there is something to drop.
        assert await store._sweep.look() == 10
        assert counts(base, "identities") == [0]


@pytest.mark.parametrize("name", ["identities", "runs", "continuations"])
async def test_where_something_is_kept_for_good_so_is_whose_it_is(base: Base, name: str) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=EXPIRY.replace(**{name: None}), clock=clock) as store:
        await store.identities.remember(build_identity(identity()))
        clock.advance(100 * YEAR)
        assert await store._sweep.once() == 0


async def test_a_run_keeps_whose_it_is(base: Base) -> None:
    clock = FakeClock(NOW)
    async with quiet(base, expiry=EXPIRY.replace(runs=3 * YEAR), clock=clock) as store:
        await store.identities.remember(build_identity(identity()))
        async with store.transaction() as transaction:
            transaction.save_run(run(finished_at=NOW))
        clock.advance(3 * YEAR)
        assert await store._sweep.once() == 0
        assert await store.runs.get(OWNER, "run_1") is not None
        clock.advance(2 * DAY + 1)
        assert await store._sweep.once() == 2


async def test_an_older_host_goes_on_to_write_identities(base: Base) -> None:
    """As the schema before this one wrote them, without a time."""
    async with quiet(base, expiry=EXPIRY, clock=FakeClock(NOW)) as store:
        old = "INSERT INTO identities (channel, native_id, isolation_key, version, data) VALUES (?, ?, ?, ?, ?)"
        await store._engine.write([Do(old, ("telegram", "9", "nine", 0, b"{}"))])
        assert await store._sweep.once() == 0
        assert base.execute("SELECT seen_at FROM identities") == [(NOW,)]


def test_the_default_is_a_year() -> None:
    assert Expiry().identities == YEAR
    assert Expiry().identities_kept == YEAR + 2 * DAY
