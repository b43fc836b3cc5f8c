"""Histories that are kept in memory: bounded, and never wrong."""

from collections.abc import Sequence
from typing import Any

import pytest

from frontdesk.errors import StoreUnavailableError
from frontdesk.models.session import ForkPoint
from frontdesk.stores.sql.sessions import Histories
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk_testing.store_samples import OWNER, build_messages, keep_session, session, texts
from tests.stores.sql.bases import Base


@pytest.fixture
def base(base_with_tables: Base) -> Base:
    return base_with_tables


class Watched:
    """An engine that tells how many rows of history were read."""

    def __init__(self, store: SqlStateStore) -> None:
        self._engine = store._engine
        self.rows = 0
        self.fails = False

    async def read(self, sql: str, values: Sequence[Any] = ()) -> Any:
        if self.fails:
            raise StoreUnavailableError
        rows = await self._engine.read(sql, values)
        self.rows += sum(row[-1] is not None for row in rows) if " history " in sql else 0
        return rows


def histories(store: SqlStateStore, **settings: Any) -> tuple[Histories, Watched]:
    watched: Any = Watched(store)
    return Histories(watched, store._records, **settings), watched


async def test_only_what_is_new_is_read_again(base: Base) -> None:
    async with base.open() as store:
        found, watched = histories(store)
        for number in range(1, 6):
            await keep_session(store, session(), build_messages(str(number)))
            assert len(await found.read(OWNER, "ses_1")) == number
            assert watched.rows == number
        await found.read(OWNER, "ses_1")
        assert watched.rows == 5


async def test_they_take_no_more_than_their_room_and_stay_right(base: Base) -> None:
    async with base.open() as store:
        for number in range(12):
            await keep_session(store, session(f"s{number}"), build_messages("x" * 1000, str(number)))
        found, watched = histories(store, limit=40_000)
        for _ in range(3):
            for number in range(12):
                assert texts(await found.read(OWNER, f"s{number}"))[1] == str(number)
                assert found._size <= 40_000
                assert found._size == sum(one.size for one in found._known.values())
        assert 0 < len(found._known) < 12
        assert watched.rows > 12


async def test_a_history_that_is_larger_than_all_the_room_is_read_each_time(base: Base) -> None:
    async with base.open() as store:
        await keep_session(store, session(), build_messages("x" * 50_000))
        found, watched = histories(store, limit=20_000)
        for number in (1, 2):
            assert len(await found.read(OWNER, "ses_1")) == 1
            assert watched.rows == number
        assert (found._size, len(found._known)) == (0, 0)


async def test_sessions_without_a_message_were_kept_without_end(base: Base) -> None:
    async with base.open() as store:
        for number in range(60):
            await keep_session(store, session(f"s{number}"))
        found, _ = histories(store, limit=10_000)
        for number in range(60):
            assert await found.read(OWNER, f"s{number}") == []
        assert len(found._known) < 30


@pytest.mark.parametrize("limit", [0, 6_000, 10**9])
async def test_branches_are_right_whatever_is_kept(base: Base, limit: int) -> None:
    async with base.open() as store:
        found, _ = histories(store, limit=limit)
        await keep_session(store, session("root"), build_messages("1", "2", "3"))
        await keep_session(store, session("b", parent=ForkPoint(session_id="root", messages=2)), build_messages("b"))
        await keep_session(store, session("c", parent=ForkPoint(session_id="b", messages=1)), build_messages("c"))
        for number in range(4, 7):
            assert texts(await found.read(OWNER, "root")) == [str(n) for n in range(1, number)]
            assert texts(await found.read(OWNER, "b")) == ["1", "2", "b"]
            assert texts(await found.read(OWNER, "c")) == ["1", "c"]
            await keep_session(store, session("root"), build_messages(str(number)))


async def test_what_was_returned_belongs_to_the_caller(base: Base) -> None:
    async with base.open() as store:
        found, _ = histories(store)
        await keep_session(store, session(), build_messages("one"))
        first: Any = await found.read(OWNER, "ses_1")
        first.clear()
        assert texts(await found.read(OWNER, "ses_1")) == ["one"]


async def test_a_failure_leaves_what_is_known(base: Base) -> None:
    async with base.open() as store:
        found, watched = histories(store)
        await keep_session(store, session(), build_messages("one"))
        await found.read(OWNER, "ses_1")
        watched.fails = True
        with pytest.raises(StoreUnavailableError):
            await found.read(OWNER, "ses_1")
        watched.fails = False
        await keep_session(store, session(), build_messages("two"))
        assert texts(await found.read(OWNER, "ses_1")) == ["one", "two"]
