"""Pictures of records lie in files: once, in parts, within limits, and for as long as a record uses them."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from frontdesk.errors import ChannelConfigurationError, FilesFullError, StaleTurnError
from frontdesk.models.file import FileLimits
from frontdesk.models.operations import Expiry
from frontdesk.models.session import Lease
from frontdesk.serialization.codec import encode
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.stores.sql import files as sql_files
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk.stores.sql.tables import FILE_CHUNKS
from frontdesk.stores.sql.writes import Op, Put
from frontdesk_testing import FakeClock
from frontdesk_testing.store_samples import (
    NOW,
    OTHER,
    OWNER,
    build_messages,
    conversation,
    data_uri,
    inbox_item,
    keep_session,
    pictures,
    run,
    session,
)
from tests.stores.sql.bases import Base

DAY = 86_400.0
TABLES = ("files", "file_chunks", "file_uses")


@pytest.fixture
def base(base_with_tables: Base) -> Base:
    return base_with_tables


def counts(base: Base, *tables: str) -> list[int]:
    return [base.execute(f"SELECT COUNT(*) FROM {table}")[0][0] for table in tables or TABLES]


class Counted:
    """What a store asks of its database."""

    def __init__(self, store: SqlStateStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads: list[str] = []
        self.writes: list[list[Op]] = []
        engine: Any = store._engine
        read, write = engine.read, engine.write

        async def count_read(sql: str, values: Sequence[Any] = ()) -> Any:
            self.reads.append(sql)
            return await read(sql, values)

        async def count_write(ops: Sequence[Op]) -> Any:
            self.writes.append(list(ops))
            return await write(ops)

        monkeypatch.setattr(engine, "read", count_read)
        monkeypatch.setattr(engine, "write", count_write)


async def keep_turn(store: SqlStateStore, messages: Sequence[Any], run_id: str = "run_1") -> None:
    lease = await store.sessions.claim("ses_1")
    async with store.transaction() as transaction:
        transaction.save_session(session(), lease)
        transaction.append_history("ses_1", messages)
        transaction.save_run(run(run_id, input=messages, finished_at=NOW))
    store.sessions.release(lease)


async def keep_history(store: SqlStateStore, lease: Lease, messages: Sequence[Any]) -> None:
    async with store.transaction() as transaction:
        transaction.save_session(session(), lease)
        transaction.append_history("ses_1", messages)


async def test_a_picture_is_kept_once_for_its_history_and_its_runs(base: Base) -> None:
    async with base.open() as store:
        for number in range(3):
            await keep_turn(store, pictures("a"), f"run_{number}")
        assert await store.files.get_size(OWNER) == 20_000
    assert counts(base) == [1, 1, 4]
    rows = [*base.execute("SELECT data FROM history"), *base.execute("SELECT data FROM runs")]
    assert len(rows) == 6
    assert all(len(data) < 1000 and b"frontdesk-file:" in bytes(data) for (data,) in rows)


async def test_a_turn_without_large_data_costs_what_it_did(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    async with base.open() as store:
        await keep_session(store, session(), build_messages("one"))
        asked = Counted(store, monkeypatch)
        lease = await store.sessions.claim("ses_1")
        asked.writes.clear()
        async with store.transaction() as transaction:
            transaction.save_session(session(), lease)
            transaction.append_history("ses_1", build_messages("x" * 100_000, "data:image/png;base64,AAAA"))
            transaction.save_run(run(input=build_messages("x" * 100_000)))
        assert [type(op).__name__ for op in asked.writes.pop()] == ["Fence", "Put", "Put", "Put"]
        assert asked.writes == asked.reads == []
        await store.sessions.history(OWNER, "ses_1")
        await store.runs.get(OWNER, "run_1")
        assert len(asked.reads) == 2


async def test_all_pictures_of_a_history_are_one_query_and_only_those_that_are_new(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"picture {number}" for number in range(20)]
    async with base.open() as store:
        for name in names:
            await keep_session(store, session(), pictures(name))
    async with base.open() as store:
        asked = Counted(store, monkeypatch)
        assert encode(list(await store.sessions.history(OWNER, "ses_1"))) == encode(pictures(*names))
        assert len(asked.reads) == 2
        await keep_session(store, session(), pictures("new"))
        asked.reads.clear()
        assert len(await store.sessions.history(OWNER, "ses_1")) == 21
        assert len(asked.reads) == 2
        asked.reads.clear()
        await store.sessions.history(OWNER, "ses_1")
        assert len(asked.reads) == 1
        assert store.sessions._histories._size > 20 * 20_000


async def test_a_large_file_is_written_in_small_transactions(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    async with base.open() as store:
        asked = Counted(store, monkeypatch)
        await keep_session(store, session(), [*build_messages("look"), data_uri("a", 3_000_000)])
        sizes = [
            sum(len(op.row[2]) for op in ops if isinstance(op, Put) and op.table is FILE_CHUNKS) for ops in asked.writes
        ]
        assert sum(sizes) == 3_000_000
        assert max(sizes) <= 1024 * 1024
        assert list(await store.sessions.history(OWNER, "ses_1"))[1] == data_uri("a", 3_000_000)
    assert counts(base, "file_chunks") == [12]


# Limits


async def test_what_has_no_room_stays_in_its_record(base: Base) -> None:
    async with base.open() as store:
        store.files._limits = FileLimits(max_file_bytes=30_000, max_owner_bytes=50_000)
        await keep_session(store, session(), pictures("a", "b"))
        await keep_session(store, session(), pictures("c"))
        await keep_session(store, session(), pictures("a"))
        await keep_session(store, session("ses_2", owner=OTHER), [data_uri("large", 30_001), *pictures("c")])
        assert encode(list(await store.sessions.history(OWNER, "ses_1"))) == encode(pictures("a", "b", "c", "a"))
        assert (await store.files.get_size(OWNER), await store.files.get_size(OTHER)) == (40_000, 20_000)
        with pytest.raises(FilesFullError) as caught:
            await store.files.put(OWNER, bytes(10_001), media_type="image/png")
        assert (caught.value.status, caught.value.code) == (413, "files_full")
        await store.files.put(OWNER, bytes(10_000), media_type="image/png")
    kept = [b"frontdesk-file:" in bytes(data) for (data,) in base.execute("SELECT data FROM history ORDER BY number")]
    assert kept == [True, False, True, True]


@pytest.mark.parametrize("make", [InMemoryStateStore, lambda **more: SqliteStateStore("unused.db", **more)])
def test_limits_that_make_no_sense_are_told(make: Any) -> None:
    with pytest.raises(ChannelConfigurationError) as caught:
        make(file_limits=FileLimits(max_file_bytes=0, max_owner_bytes=-1))
    assert "max_file_bytes must be at least 1" in str(caught.value)
    assert "max_owner_bytes must be at least 1" in str(caught.value)


# What expires


async def test_a_file_goes_with_the_last_record_that_uses_it(base: Base) -> None:
    clock = FakeClock(NOW)
    expiry = Expiry(sessions=30 * DAY, runs=10 * DAY, inbox=5 * DAY, conversations=20 * DAY, files=DAY)
    async with base.open(expiry=expiry, clock=clock) as store:
        await keep_turn(store, pictures("a"))
        item = inbox_item()
        async with store.transaction() as transaction:
            transaction.accept(item.replace(request=item.request.replace(input=pictures("a"))))
            transaction.save_conversation(conversation())
        async with store.transaction() as transaction:
            transaction.finish(item)
        assert counts(base) == [2, 2, 3]
        left: list[list[int]] = []
        for days in (4, 2, 5, 20):
            clock.advance(days * DAY)
            await store._sweep.once()
            left.append(counts(base))
    # The owner's file is used by the run and the session, the channel's by the event.
    assert left == [[2, 2, 3], [1, 1, 2], [1, 1, 1], [0, 0, 0]]


async def test_a_file_that_was_put_goes_when_nobody_uses_it(base: Base) -> None:
    clock = FakeClock(NOW)
    async with base.open(expiry=Expiry(files=100.0), clock=clock) as store:
        file = await store.files.put(OWNER, b"cat", media_type="image/png")
        clock.advance(99)
        await store.files.put(OWNER, b"cat", media_type="image/png")
        clock.advance(99)
        assert await store._sweep.once() == 0
        assert await store.files.get(OWNER, file.file_id) is not None
        clock.advance(2)
        assert await store._sweep.once() == 1
        assert await store.files.get(OWNER, file.file_id) is None
    assert counts(base) == [0, 0, 0]


async def test_a_file_that_is_used_again_after_it_was_dropped_is_whole(base: Base) -> None:
    clock = FakeClock(NOW)
    async with base.open(expiry=Expiry(files=100.0), clock=clock) as store:
        await store.files.put(OWNER, b"cat", media_type="image/png")
        clock.advance(101)
        puts = [store.files.put(OWNER, b"cat", media_type="image/png") for _ in range(5)]
        _, files = await asyncio.gather(store._sweep.once(), asyncio.gather(*puts))
        file = files[0]
        assert await store.files.get(OWNER, file.file_id) == (file, b"cat")


async def test_none_keeps_files_for_good(base: Base) -> None:
    clock = FakeClock(NOW)
    async with base.open(expiry=Expiry(files=None), clock=clock) as store:
        await store.files.put(OWNER, b"cat", media_type="image/png")
        clock.advance(10**9)
        await store._sweep.once()
    assert counts(base) == [1, 1, 0]


async def test_a_use_that_only_a_newer_version_knows_keeps_its_file(base: Base) -> None:
    clock = FakeClock(NOW)
    async with base.open(expiry=Expiry(files=100.0), clock=clock) as store:
        file = await store.files.put(OWNER, b"cat", media_type="image/png")
        row = (file.file_id, "album", "alb_1", "", NOW)
        base.execute("INSERT INTO file_uses (file_id, kind, place, owner, used_at) VALUES (?, ?, ?, ?, ?)", row)
        clock.advance(101)
        assert await store._sweep.once() == 0
        assert await store.files.get(OWNER, file.file_id) is not None


# What goes wrong


class Cut(BaseException):
    """The end of a process."""


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("at", range(1, 6))
async def test_a_process_that_ends_around_any_commit_leaves_a_turn_or_none(
    base: Base, side: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row of the file, three transactions of chunks, and the turn."""
    monkeypatch.setattr(sql_files, "CHUNK_BYTES", 10_000)
    clock = FakeClock(NOW)
    messages = [data_uri("a", 100_000), *build_messages("look")]
    async with base.open(clock=clock) as store:
        lease = await store.sessions.claim("ses_1")
        engine: Any = store._engine
        write, count = engine.write, 0

        async def cut(ops: Sequence[Op]) -> Any:
            nonlocal count
            count += 1
            if count == at and side == "before":
                raise Cut
            rows = await write(ops)
            if count == at:
                raise Cut
            return rows

        monkeypatch.setattr(engine, "write", cut)
        with pytest.raises(Cut):
            await keep_history(store, lease, messages)
        monkeypatch.setattr(engine, "write", write)
        store.sessions.release(lease)
    async with base.open(clock=clock) as store:
        written = (side, at) == ("after", 5)
        assert len(await store.sessions.history(OWNER, "ses_1")) == (2 if written else 0)
        if not written:
            # The retry writes what is missing, whatever was left.
            await keep_session(store, session(), messages)
        assert encode(list(await store.sessions.history(OWNER, "ses_1"))) == encode(messages)
        assert counts(base) == [1, 10, 1]
        clock.advance(2 * DAY)
        await store._sweep.once()
        assert counts(base) == [1, 10, 1]


async def test_what_a_refused_turn_has_written_is_dropped_in_time(base: Base) -> None:
    clock = FakeClock(NOW)
    async with base.open(clock=clock) as store:
        old = await store.sessions.claim("ses_1")
        new = await store.sessions.claim("ses_1", force=True)
        with pytest.raises(StaleTurnError):
            await keep_history(store, old, pictures("a"))
        store.sessions.release(new)
        assert counts(base) == [1, 1, 0]
        assert await store._sweep.once() == 0
        clock.advance(2 * DAY)
        assert await store._sweep.once() == 1
    assert counts(base) == [0, 0, 0]


@pytest.mark.parametrize("lost", ["file_chunks", "file_chunks WHERE number = 1", "files"])
async def test_a_file_that_somebody_removed_does_not_stop_its_session(
    base: Base, lost: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_files, "CHUNK_BYTES", 10_000)
    async with base.open() as store:
        await keep_session(store, session(), pictures("a"))
        base.execute(f"DELETE FROM {lost}")
        (message,) = await store.sessions.history(OWNER, "ses_1")
        assert (message.text, message.contents[1].uri) == ("a", "data:image/png;base64,")
        assert "file missing, returning an empty one" in caplog.text


async def test_the_same_picture_from_many_turns_at_once(base: Base) -> None:
    async with base.open() as store:
        await asyncio.gather(
            *(keep_session(store, session(f"ses_{number}"), pictures("a", str(number % 2))) for number in range(12))
        )
        for number in range(12):
            read = list(await store.sessions.history(OWNER, f"ses_{number}"))
            assert encode(read) == encode(pictures("a", str(number % 2)))
    assert counts(base) == [3, 3, 24]
