"""A store that was moved is the same store: what is read, what comes next, and what it is made of."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from frontdesk.stores.sql.migrations.schema import VERSION, NewerStoreError
from frontdesk.stores.sql.move.endpoints import LEASES, MoveError, Shape, SqliteEnd, move
from frontdesk.stores.sql.move.postgres import PostgresEnd
from frontdesk_testing.store_samples import (
    NOW,
    OWNER,
    build_messages,
    conversation_item,
    inbox_item,
    keep_session,
    question,
    session,
    texts,
)
from tests.databases import PostgresServer
from tests.stores.sql.bases import Base
from tests.stores.sql.moving import SESSIONS, Place, fill, read_picture

WAYS = [(source, target) for source in ("sqlite", "postgres") for target in ("sqlite", "postgres")]


class Places(dict[str, list[Place]]):
    """Two places of each kind, made when they are asked for."""

    def __init__(self, directory: Path, server: Callable[[], PostgresServer], stack: ExitStack) -> None:
        self._directory, self._server, self._stack = directory, server, stack

    def __missing__(self, kind: str) -> list[Place]:
        if kind == "sqlite":
            made = [Place(str(self._directory / name)) for name in ("a.db", "b.db")]
        else:
            made = [Place(self._stack.enter_context(self._server().database())) for _ in range(2)]
        return self.setdefault(kind, made)


@pytest.fixture
def places(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Places]:
    with ExitStack() as stack:
        yield Places(tmp_path, lambda: request.getfixturevalue("postgres_of_this_process"), stack)


def quiet(table: str, moved: int, total: int) -> None:
    assert moved <= total


@pytest.mark.parametrize(("source", "target"), WAYS)
async def test_what_was_moved_reads_the_same(places: Places, source: str, target: str) -> None:
    old, new = places[source][0], places[target][1]
    await fill(old)
    before, numbers = await read_picture(old), old.numbers()
    assert all(count for table, count in numbers.items() if table != LEASES), "a kind of record has no sample"
    told: dict[str, tuple[int, int]] = {}
    moved = move(old.end(), new.end(), lambda table, done, total: told.update({table: (done, total)}))
    assert (await read_picture(old), old.numbers()) == (before, numbers)
    assert await read_picture(new) == before
    del numbers[LEASES]
    assert told == {table: (count, count) for table, count in numbers.items()}
    assert moved == sum(numbers.values())
    assert new.execute("SELECT kind, data FROM set_aside") == [("runs", b"torn")]


@pytest.mark.parametrize(("source", "target"), WAYS)
async def test_a_session_goes_on_where_it_was_moved_to(places: Places, source: str, target: str) -> None:
    old, new = places[source][0], places[target][1]
    await fill(old)
    move(old.end(), new.end(), quiet)
    store = new.store()
    await store.open()
    await keep_session(store, session("ses_1", messages=3), build_messages("four"))
    assert texts(await store.sessions.history(OWNER, "ses_1")) == ["one", "two", "four"]
    async with store.transaction() as transaction:
        transaction.add_approval(question("apr_new"))
        transaction.accept(inbox_item("evt_new"))
        transaction.accept(inbox_item("evt_1"))
        transaction.add_items(OWNER, [conversation_item("c")])
        transaction.decide_approval(OWNER, "apr_1", "approved", at=NOW)
        transaction.use_grant("gra_1")
    assert [one.approval_id for one in await store.approvals.pending(OWNER)] == ["apr_2", "apr_3", "apr_new"]
    assert [one.item_id for one in await store.conversations.items(OWNER, "conv_1")] == ["a", "b", "c"]
    for event_id in ("evt_1", "evt_2", "evt_new"):
        item = await store.inbox.next("telegram", "chat")
        assert item is not None
        assert item.event_id == event_id
        async with store.transaction() as transaction:
            transaction.finish(item)
    await store.close()


@pytest.mark.parametrize(("here", "there"), [("sqlite", "postgres"), ("postgres", "sqlite")])
async def test_there_and_back_is_where_one_was(places: Places, here: str, there: str) -> None:
    await fill(places[here][0])
    move(places[here][0].end(), places[there][0].end(), quiet)
    move(places[there][0].end(), places[here][1].end(), quiet)
    assert await read_picture(places[here][1]) == await read_picture(places[here][0])
    assert places[here][1].numbers() | {LEASES: 0} == places[here][0].numbers() | {LEASES: 0}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_target_is_made_as_a_host_would_make_it(places: Places, kind: str) -> None:
    await fill(places["sqlite"][0])
    fresh, moved = places[kind][0], places[kind][1]
    if kind == "postgres":
        store = fresh.store()
        await store.open()
        await store.close()
    move(places["sqlite"][0].end(), moved.end(), quiet)
    assert sorted(map(str, moved.schema())) == sorted(map(str, fresh.schema()))
    assert moved.execute("SELECT version FROM frontdesk_schema") == [(one,) for one in range(1, VERSION + 1)]


# The reader of an old store does not know what it is read for: its versions matter, and each kind of target once.
@pytest.mark.parametrize(
    ("version", "target"), [*((version, "sqlite") for version in range(1, VERSION)), (1, "postgres"), (10, "postgres")]
)
async def test_an_older_store_arrives_up_to_date(places: Places, version: int, target: str) -> None:
    old, new = places["sqlite"][0], places[target][1]
    Base("sqlite", old.where).build(version)
    old.execute("INSERT INTO names VALUES ('mine', 'ses_1')")
    move(old.end(), new.end(), quiet)
    assert new.execute("SELECT MAX(version) FROM frontdesk_schema") == [(VERSION,)]
    assert new.numbers()["names"] == 1
    assert old.execute("SELECT MAX(version) FROM frontdesk_schema") == [(version,)]


@pytest.mark.parametrize("source", ["sqlite", "postgres"])
async def test_a_newer_store_is_left_alone(places: Places, source: str) -> None:
    old, new = places[source][0], places["sqlite"][1]
    await fill(old)
    old.execute("INSERT INTO frontdesk_schema (version) VALUES (99)")
    with pytest.raises(NewerStoreError):
        move(old.end(), new.end(), quiet)
    assert not new.is_there


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_newer_target_is_left_alone(places: Places, kind: str) -> None:
    old, new = places["sqlite"][0], places[kind][1]
    await fill(old)
    new.execute("CREATE TABLE frontdesk_schema (version INTEGER NOT NULL)")
    new.execute("INSERT INTO frontdesk_schema (version) VALUES (99)")
    with pytest.raises(NewerStoreError):
        move(old.end(), new.end(), quiet)
    assert new.execute("SELECT version FROM frontdesk_schema") == [(99,)]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_target_that_holds_something_is_refused(places: Places, kind: str) -> None:
    old, new = places["sqlite"][0], places[kind][1]
    await fill(old)
    await fill(new)
    before = new.numbers()
    with pytest.raises(MoveError, match="is not empty: it has rows in sessions"):
        move(old.end(), new.end(), quiet)
    assert new.numbers() == before


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_target_in_which_nothing_was_kept_yet_is_taken(places: Places, kind: str) -> None:
    old, new = places["sqlite"][0], places[kind][1]
    await fill(old)
    store = new.store()
    await store.open()
    store.sessions.release(await store.sessions.claim("ses_of_a_turn_that_failed"))
    await store.close()
    move(old.end(), new.end(), quiet)
    assert await read_picture(new) == await read_picture(old)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_tables_of_another_program_are_left_alone(places: Places, kind: str) -> None:
    old, new = places["sqlite"][0], places[kind][1]
    await fill(old)
    new.execute("CREATE TABLE sessions (cookie TEXT)")
    with pytest.raises(MoveError, match=r"tables of other programs with the names of ours \(sessions\)"):
        move(old.end(), new.end(), quiet)
    assert new.execute("SELECT cookie FROM sessions") == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_place_without_state_is_no_source(places: Places, kind: str) -> None:
    old, new = places[kind][0], places["sqlite"][1]
    old.execute("CREATE TABLE other (x INTEGER)")
    with pytest.raises(MoveError, match="contains no Frontdesk state"):
        move(old.end(), new.end(), quiet)
    assert not new.is_there


async def test_a_file_that_is_no_database_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("Buy marmalade. " * 100)
    with pytest.raises(MoveError, match="not a database"):
        move(SqliteEnd(tmp_path / "notes.db"), SqliteEnd(tmp_path / "new.db"), quiet)
    with pytest.raises(MoveError, match="not found"):
        move(SqliteEnd(tmp_path / "missing.db"), SqliteEnd(tmp_path / "new.db"), quiet)
    assert os.listdir(tmp_path) == ["notes.db"]


@pytest.mark.parametrize("used", ["source", "target"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_store_that_is_open_is_not_moved(places: Places, kind: str, used: str) -> None:
    other = "postgres" if kind == "sqlite" else "sqlite"
    old, new = (places[kind][0], places[other][1]) if used == "source" else (places[other][0], places[kind][1])
    await fill(old)
    store = (old if used == "source" else new).store()
    await store.open()
    assert await store.runs.get(OWNER, "run_of_nobody") is None
    with pytest.raises(MoveError, match="is in use; stop the host"):
        move(old.end(), new.end(), quiet)
    await store.close()
    move(old.end(), new.end(), quiet)
    assert await read_picture(new) == await read_picture(old)


@pytest.mark.parametrize("target", ["sqlite", "postgres"])
async def test_an_error_half_way_leaves_nothing(places: Places, target: str) -> None:
    old, new = places["sqlite"][0], places[target][1]
    await fill(old)

    def fail(table: str, moved: int, total: int) -> None:
        if table == "runs":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(old.end(), new.end(), fail)
    assert not new.is_there
    move(old.end(), new.end(), quiet)
    assert await read_picture(new) == await read_picture(old)


KILLED = """
import os, sys
from pathlib import Path
from frontdesk.stores.sql.move.endpoints import move
from frontdesk.stores.sql.move.postgres import PostgresEnd
from frontdesk.stores.sql.move.endpoints import SqliteEnd

def end(where):
    return SqliteEnd(Path(where)) if where.endswith(".db") else PostgresEnd(where)

move(end(sys.argv[1]), end(sys.argv[2]), lambda table, moved, total: os._exit(9) if table == "items" else None)
"""


@pytest.mark.parametrize("target", ["sqlite", "postgres"])
async def test_a_kill_half_way_leaves_an_empty_store(places: Places, target: str) -> None:
    old, new = places["sqlite"][0], places[target][1]
    await fill(old)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, old.where, new.where)
    assert await process.wait() == 9
    store = new.store()
    await store.open()
    assert await store.sessions.get(OWNER, "ses_1") is None
    await store.close()
    assert not any(new.numbers().values())
    move(old.end(), new.end(), quiet)
    assert await read_picture(new) == await read_picture(old)


class Losing(SqliteEnd):
    """A database that keeps a row back."""

    def read(self, shape: Shape) -> Iterator[Sequence[Any]]:
        return iter(list(super().read(shape))[1:])


async def test_what_does_not_arrive_whole_is_not_kept(places: Places) -> None:
    old, new = places["sqlite"]
    await fill(old)
    with pytest.raises(MoveError, match=f"sessions has {SESSIONS} rows, but {SESSIONS - 1} were copied"):
        move(Losing(Path(old.where)), new.end(), quiet)
    assert not new.is_there


@pytest.mark.parametrize(
    "conninfo", ["host=localhost password=hunter2 hunter3", "postgresql://u:hunt%zzer2@localhost/x"]
)
def test_an_address_that_is_wrong_is_not_repeated(conninfo: str) -> None:
    with pytest.raises(MoveError) as told:
        PostgresEnd(conninfo)
    assert "hunt" not in str(told.value)


def test_a_server_that_is_not_there_is_told_without_its_password(tmp_path: Path) -> None:
    end = PostgresEnd(f"host={tmp_path} dbname=state user=ada password=hunter2")
    with pytest.raises(MoveError, match="the database state: ") as told:
        move(end, SqliteEnd(tmp_path / "b.db"), quiet)
    assert "hunter2" not in str(told.value)
