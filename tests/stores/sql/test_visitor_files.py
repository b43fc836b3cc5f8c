"""The room of visitors without an account, on both databases."""

import asyncio
from typing import Any

import pytest

from frontdesk.errors import ChannelConfigurationError, FilesFullError, VisitorFilesFullError
from frontdesk.models.file import FileLimits
from frontdesk.models.operations import Expiry
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import NOW, OWNER
from tests.stores.sql.bases import Base

DAY = 86_400.0
LIMITS = FileLimits(max_visitor_bytes=300, max_visitors_bytes=1_000)


@pytest.fixture
def base(base_with_tables: Base) -> Base:
    return base_with_tables


async def put(store: Any, owner: str, number: int, size: int = 100, *, visitor: bool = True) -> None:
    await store.files.put(owner, bytes([number]) * size, media_type="image/png", visitor=visitor)


async def test_files_that_are_put_at_once_do_not_exceed_the_room_together(base: Base) -> None:
    async with base.open() as store:
        store.files._limits = LIMITS
        puts = [put(store, f"visitor {owner}", number) for owner in range(5) for number in range(5)]
        refused = [error for error in await asyncio.gather(*puts, return_exceptions=True) if error is not None]
        assert {type(error) for error in refused} <= {FilesFullError, VisitorFilesFullError}
        stored = base.execute("SELECT owner, SUM(size) FROM files GROUP BY owner")
        assert sum(size for _, size in stored) <= 1_000
        assert max(size for _, size in stored) <= 300
        # Nobody with an account is held up by visitors.
        await put(store, OWNER, 1, 5_000, visitor=False)


async def test_other_hosts_files_count_and_expiry_frees_the_room(base: Base) -> None:
    clock = FakeClock(NOW)
    async with base.open(clock=clock, expiry=Expiry(files=DAY)) as store, base.open(clock=clock) as other:
        limits = FileLimits(max_visitor_bytes=10_000, max_visitors_bytes=1_000)
        store.files._limits = other.files._limits = limits
        await put(store, "a", 1)
        for number in range(9):
            await put(other, "b", number)
        with pytest.raises(VisitorFilesFullError) as caught:
            await put(other, "c", 1)
        assert (caught.value.status, caught.value.code) == (413, "visitor_files_full")
        # This host looks again once it has written a twentieth of the limit.
        with pytest.raises(VisitorFilesFullError):
            await put(store, "c", 1)
        clock.advance(2 * DAY)
        assert await store._sweep.once() == 10
        await put(store, "c", 1)
        await put(other, "c", 2)


@pytest.mark.parametrize("make", [InMemoryStateStore, lambda **more: SqliteStateStore("unused.db", **more)])
def test_limits_of_a_wrong_type_are_findings(make: Any) -> None:
    wrong: Any = {"max_visitor_bytes": "64 MB", "max_visitors_bytes": 1.5, "max_file_bytes": True}
    with pytest.raises(ChannelConfigurationError) as caught:
        make(file_limits=FileLimits(**wrong))
    for name, kind in (("max_visitor_bytes", "str"), ("max_visitors_bytes", "float"), ("max_file_bytes", "bool")):
        assert f"file_limits: {name} must be an int, got {kind}" in str(caught.value)
    with pytest.raises(ChannelConfigurationError, match=r"is not FileLimits\(\.\.\.\)"):
        make(file_limits={"max_file_bytes": 1})
