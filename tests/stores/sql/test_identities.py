"""Identities that are kept in memory: bounded, and changes are seen."""

import asyncio
from typing import Any

import pytest

from frontdesk.errors import UnreadableRecordError
from frontdesk.models.identity import Reach
from frontdesk.stores.sql import identities
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import NOW, OTHER, OWNER, build_identity, identity, link
from tests.stores.sql.bases import Base


@pytest.fixture
def base(base_with_tables: Base) -> Base:
    return base_with_tables


async def change(store: SqlStateStore, key: str) -> None:
    async with store.transaction() as transaction:
        transaction.remember_identity(build_identity(identity(), key))


async def get_key(store: SqlStateStore) -> str | None:
    found = await store.identities.find(identity())
    return None if found is None else found.isolation_key


async def test_an_identity_that_is_known_is_not_looked_up_again(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    async with base.open() as store:
        await store.identities.remember(build_identity(identity()))
        assert await get_key(store) == OWNER
        plain: Any = store._engine.read
        asked: list[str] = []

        async def read(sql: str, values: Any = ()) -> Any:
            asked.append(sql)
            return await plain(sql, values)

        monkeypatch.setattr(store._engine, "read", read)
        assert await get_key(store) == OWNER
        assert asked == []


async def test_a_change_is_seen_at_once(base: Base) -> None:
    async with base.open() as store:
        await store.identities.remember(build_identity(identity()))
        for key in (OTHER, OWNER, "third"):
            await change(store, key)
            assert await get_key(store) == key


async def test_how_somebody_is_reached_is_not_looked_up_again(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    async with base.open() as store:
        await store.identities.remember(build_identity(identity()))
        assert await store.identities.reach(identity()) == Reach()
        plain: Any = store._engine.read
        asked: list[str] = []

        async def read(sql: str, values: Any = ()) -> Any:
            asked.append(sql)
            return await plain(sql, values)

        monkeypatch.setattr(store._engine, "read", read)
        assert await store.identities.reach(identity()) == Reach()
        assert asked == []
        async with store.transaction() as transaction:
            transaction.keep_reference(identity(), {"url": "u"})
        assert await store.identities.reach(identity()) == Reach(reference={"url": "u"})


async def test_a_broken_reference_counts_as_none_and_the_record_stays(base: Base) -> None:
    async with base.open() as store:
        await store.identities.remember(build_identity(identity()))
        base.execute("UPDATE identities SET reference = ?, push_group = ?", (b"torn", None))
        assert await store.identities.reach(identity()) == Reach()
        assert await store.identities.find(identity()) == build_identity(identity())
        async with store.transaction() as transaction:
            transaction.keep_reference(identity(), {"url": "u"})
        assert await store.identities.reach(identity()) == Reach(reference={"url": "u"})


async def test_a_reference_of_a_newer_version_is_left_to_it(base: Base) -> None:
    newer = b'{"v":99,"data":{"url":"u"}}'
    async with base.open() as store:
        await store.identities.remember(build_identity(identity()))
        base.execute("UPDATE identities SET reference = ?", (newer,))
        with pytest.raises(UnreadableRecordError):
            await store.identities.reach(identity())
        assert store.unreadable == 1
        assert [bytes(one) for (one,) in base.execute("SELECT reference FROM identities")] == [newer]


@pytest.mark.parametrize("linked", [True, False])
async def test_a_link_that_is_known_or_known_to_be_none_is_not_looked_up_again(
    base: Base, linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with base.open() as store:
        if linked:
            async with store.transaction() as transaction:
                transaction.add_link(link(identity()))
        assert (await store.identities.link(identity()) is not None) is linked

        async def read(sql: str, values: Any = ()) -> Any:
            raise AssertionError(sql)

        with monkeypatch.context() as patch:
            patch.setattr(store._engine, "read", read)
            assert (await store.identities.link(identity()) is not None) is linked
        async with store.transaction() as transaction:
            if linked:
                transaction.remove_link(OWNER, identity())
            else:
                transaction.add_link(link(identity()))
        assert (await store.identities.link(identity()) is not None) is not linked


async def test_a_change_while_it_was_looked_up_is_seen(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    async with base.open() as store:
        await store.identities.remember(build_identity(identity()))
        plain: Any = store._engine.read
        reading, may = asyncio.Event(), asyncio.Event()

        async def read(sql: str, values: Any = ()) -> Any:
            rows = await plain(sql, values)
            reading.set()
            await may.wait()
            return rows

        monkeypatch.setattr(store._engine, "read", read)
        looking = asyncio.create_task(get_key(store))
        await reading.wait()
        await change(store, OTHER)
        may.set()
        assert await looking == OWNER
        assert await get_key(store) == OTHER


async def test_a_stranger_who_was_asked_for_is_known_after_the_first_visit(base: Base) -> None:
    async with base.open() as store:
        assert await get_key(store) is None
        await store.identities.remember(build_identity(identity()))
        assert await get_key(store) == OWNER


async def test_a_change_by_another_process_is_seen_a_moment_later(postgres: str) -> None:
    base, clock = Base("postgres", postgres), FakeClock(NOW)
    async with base.open(clock=clock) as store, base.open() as other:
        await store.identities.remember(build_identity(identity()))
        assert await get_key(store) == OWNER
        await change(other, OTHER)
        clock.advance(1.0)
        assert await get_key(store) == OTHER
        # Whoever can't wait for that asks for it as it is now.
        await change(other, OWNER)
        assert await get_key(store) == OTHER
        fresh = await store.identities.find(identity(), fresh=True)
        assert fresh is not None
        assert fresh.isolation_key == await get_key(store) == OWNER


async def test_an_identity_stayed_as_it_was_while_the_clock_was_set_back(postgres: str) -> None:
    base, clock = Base("postgres", postgres), FakeClock(NOW)
    async with base.open(clock=clock) as store, base.open() as other:
        await store.identities.remember(build_identity(identity()))
        assert await get_key(store) == OWNER
        await change(other, OTHER)
        clock.jump(-86_400)
        clock.advance(1.0)
        assert await get_key(store) == OTHER


async def test_no_more_than_a_number_of_them_is_kept(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identities, "MAX_CACHED_IDENTITIES", 10)
    async with base.open() as store:
        for number in range(30):
            await store.identities.remember(build_identity(identity(str(number)), f"key_{number}"))
            await store.identities.find(identity(str(number)))
        assert len(store.identities._known.kept) == 10
        for number in range(30):
            found = await store.identities.find(identity(str(number)))
            assert found is not None
            assert found.isolation_key == f"key_{number}"
