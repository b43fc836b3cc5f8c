"""A store that was moved is the same store: what is read, what comes next, and what it is made of."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from frontdesk.data.link import Grant
from frontdesk.data.session import ForkPoint, SessionName
from frontdesk.stores.sql.ends import LEASES, End, MoveError, Shape, shapes_of
from frontdesk.stores.sql.migrations import SQLITE, VERSION, NewerStoreError, steps_from
from frontdesk.stores.sql.move import move
from frontdesk.stores.sql.postgres import PostgresStateStore
from frontdesk.stores.sql.postgres_end import PostgresEnd
from frontdesk.stores.sql.sqlite import SqliteStateStore
from frontdesk.stores.sql.sqlite_end import SqliteEnd
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk.testing import FakeClock
from frontdesk.testing.store_samples import (
    NOW,
    ODD_KEYS,
    OWNER,
    conversation,
    conversation_item,
    delivery,
    event,
    identity,
    inbox_item,
    issued,
    job,
    keep_session,
    link,
    named,
    question,
    run,
    said,
    seen,
    session,
    texts,
)
from tests.databases import PostgresServer

WAYS = [(source, target) for source in ("sqlite", "postgres") for target in ("sqlite", "postgres")]
GRANT = Grant(grant_id="gra_1", identity=identity(), expires_at=NOW + 60, data={"code": "123"})


class Place:
    """Somewhere to keep state, and the ways to it."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._sqlite = where.endswith(".db")

    def store(self) -> SqlStateStore:
        clock = FakeClock(NOW)
        return (
            SqliteStateStore(self.where, clock=clock) if self._sqlite else PostgresStateStore(self.where, clock=clock)
        )

    def end(self) -> End:
        return SqliteEnd(Path(self.where)) if self._sqlite else PostgresEnd(self.where)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        if self._sqlite:
            with closing(sqlite3.connect(self.where, isolation_level=None)) as connection:
                return connection.execute(sql, values).fetchall()
        with psycopg.connect(self.where, autocommit=True) as connection:
            cursor = connection.execute(sql.replace("?", "%s"), values)  # pyright: ignore[reportArgumentType]
            return cursor.fetchall() if cursor.description else []

    def schema(self) -> list[Any]:
        """All that the tables are made of."""
        if self._sqlite:
            return self.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name")
        columns = "SELECT table_name, column_name, data_type, is_nullable, identity_generation"
        return [
            *self.execute(f"{columns} FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"),
            *self.execute("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"),
        ]

    def numbers(self) -> dict[str, int]:
        return {shape.name: self.execute(f"SELECT COUNT(*) FROM {shape.name}")[0][0] for shape in shapes_of(VERSION)}


@pytest.fixture
def places(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[dict[str, list[Place]]]:
    """Two places of each kind."""
    server: PostgresServer = request.getfixturevalue("postgres_of_this_process")
    with server.database() as first, server.database() as second:
        files = [Place(str(tmp_path / name)) for name in ("a.db", "b.db")]
        yield {"sqlite": files, "postgres": [Place(first), Place(second)]}


def quiet(table: str, moved: int, total: int) -> None:
    assert moved <= total


async def fill(place: Place) -> None:
    """Leaves a record of every kind behind."""
    store = place.store()
    await store.open()
    await keep_session(store, session("ses_1", state={"seen": 1}, messages=2), said("one", "two"))
    await keep_session(
        store, session("ses_2", parent=ForkPoint(session_id="ses_1", messages=1), messages=2), said("three")
    )
    for number, odd in enumerate(ODD_KEYS):
        await store.sessions.reserve(named(odd), f"ses_odd_{number}")
        await keep_session(store, session(f"ses_odd_{number}"), said(odd))
    async with store.transaction() as transaction:
        transaction.name_session(SessionName(owner=OWNER, kind="tracked"), "ses_1")
        for native_id in ("1", "2"):
            transaction.remember_identity(issued(identity(native_id, language="de")))
            transaction.add_link(link(identity(native_id)))
        transaction.see(seen(identity("2")))
        transaction.add_grant(GRANT)
        transaction.save_run(run("run_1", background=True, finished_at=NOW))
        transaction.save_run(run("run_2"))
        transaction.add_events([event(1), event(2)])
        transaction.queue_run(
            run("run_3", status="queued", background=True), job("run_3"), most_waiting=9, most_of_owner=9
        )
        for number in range(3):
            transaction.add_approval(question(f"apr_{number}"))
        transaction.decide_approval(OWNER, "apr_0", "denied", at=NOW, reason="no\0\ud800")
        for number in range(3):
            transaction.accept(inbox_item(f"evt_{number}"))
        transaction.finish(inbox_item("evt_0"))
        transaction.add_delivery(delivery("del_1"))
        transaction.add_delivery(delivery("del_2", due_at=NOW + 5))
        transaction.mark_delivery("del_2", "accepted", receipt="r\0", attempts=2)
        transaction.save_conversation(conversation(topic="rooms"))
        transaction.add_items(OWNER, [conversation_item("a"), conversation_item("b")])
    place.execute("UPDATE runs SET data = ? WHERE run_id = 'run_2'", (b"torn",))
    assert await store.runs.get(OWNER, "run_2") is None
    await store.close()


async def picture(store: SqlStateStore) -> list[Any]:
    """Everything that can be read."""
    sessions = ["ses_1", "ses_2", *(f"ses_odd_{number}" for number in range(len(ODD_KEYS)))]
    return [
        [await store.sessions.get(OWNER, one) for one in sessions],
        [texts(await store.sessions.history(OWNER, one)) for one in sessions],
        [await store.sessions.find(named(odd)) for odd in ODD_KEYS],
        await store.sessions.find(SessionName(owner=OWNER, kind="tracked")),
        await store.identities.find(identity("1")),
        await store.identities.of_owner(OWNER),
        await store.identities.last_seen(OWNER),
        await store.identities.links(OWNER),
        await store.identities.grant("gra_1"),
        await store.runs.get(OWNER, "run_1"),
        await store.runs.events(OWNER, "run_1"),
        await store.background.get(OWNER, "run_3"),
        await store.approvals.of_session(OWNER, "ses_1"),
        await store.approvals.pending(OWNER),
        await store.inbox.waiting(),
        await store.inbox.next("telegram", "chat"),
        [await store.outbox.get(one) for one in ("del_1", "del_2")],
        await store.outbox.due(NOW),
        await store.conversations.get(OWNER, "conv_1"),
        await store.conversations.items(OWNER, "conv_1"),
    ]


async def pictured(place: Place) -> list[Any]:
    store = place.store()
    await store.open()
    try:
        return await picture(store)
    finally:
        await store.close()


@pytest.mark.parametrize(("source", "target"), WAYS)
async def test_what_was_moved_reads_the_same(places: dict[str, list[Place]], source: str, target: str) -> None:
    old, new = places[source][0], places[target][1]
    await fill(old)
    before, numbers = await pictured(old), old.numbers()
    assert all(count for table, count in numbers.items() if table != LEASES), "a kind of record has no sample"
    told: dict[str, tuple[int, int]] = {}
    moved = move(old.end(), new.end(), lambda table, done, total: told.update({table: (done, total)}))
    assert (await pictured(old), old.numbers()) == (before, numbers)
    assert await pictured(new) == before
    del numbers[LEASES]
    assert told == {table: (count, count) for table, count in numbers.items()}
    assert moved == sum(numbers.values())
    assert new.execute("SELECT kind, data FROM set_aside") == [("runs", b"torn")]


@pytest.mark.parametrize(("source", "target"), WAYS)
async def test_a_session_goes_on_where_it_was_moved_to(
    places: dict[str, list[Place]], source: str, target: str
) -> None:
    old, new = places[source][0], places[target][1]
    await fill(old)
    move(old.end(), new.end(), quiet)
    store = new.store()
    await store.open()
    await keep_session(store, session("ses_1", messages=3), said("four"))
    assert texts(await store.sessions.history(OWNER, "ses_1")) == ["one", "two", "four"]
    async with store.transaction() as transaction:
        transaction.add_approval(question("apr_new"))
        transaction.accept(inbox_item("evt_new"))
        transaction.accept(inbox_item("evt_1"))
        transaction.add_items(OWNER, [conversation_item("c")])
        transaction.decide_approval(OWNER, "apr_1", "approved", at=NOW)
        transaction.use_grant("gra_1")
    assert [one.approval_id for one in await store.approvals.pending(OWNER)] == ["apr_2", "apr_new"]
    assert [one.item_id for one in await store.conversations.items(OWNER, "conv_1")] == ["a", "b", "c"]
    for event_id in ("evt_1", "evt_2", "evt_new"):
        item = await store.inbox.next("telegram", "chat")
        assert item is not None
        assert item.event_id == event_id
        async with store.transaction() as transaction:
            transaction.finish(item)
    await store.close()


@pytest.mark.parametrize(("source", "target"), WAYS)
async def test_there_and_back_is_where_one_was(places: dict[str, list[Place]], source: str, target: str) -> None:
    old, new, back = places[source][0], places[target][1], places[source][1]
    if new is back:
        new = places[target][0]
        old, back = back, Place(f"{back.where}.db") if source == "sqlite" else back
    await fill(old)
    before = await pictured(old)
    if back is not old:
        move(old.end(), new.end(), quiet)
        move(new.end(), back.end(), quiet)
    assert await pictured(back) == before


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_target_is_made_as_a_host_would_make_it(places: dict[str, list[Place]], kind: str) -> None:
    await fill(places["sqlite"][0])
    fresh, moved = places[kind][0], places[kind][1]
    if kind == "postgres":
        store = fresh.store()
        await store.open()
        await store.close()
    move(places["sqlite"][0].end(), moved.end(), quiet)
    assert sorted(map(str, moved.schema())) == sorted(map(str, fresh.schema()))
    assert moved.execute("SELECT version FROM frontdesk_schema") == [(one,) for one in range(1, VERSION + 1)]


@pytest.mark.parametrize("target", ["sqlite", "postgres"])
@pytest.mark.parametrize("version", range(1, VERSION))
async def test_an_older_store_arrives_up_to_date(places: dict[str, list[Place]], version: int, target: str) -> None:
    old, new = places["sqlite"][0], places[target][1]
    old.execute("CREATE TABLE frontdesk_schema (version INTEGER NOT NULL)")
    for number, statements in steps_from(0, **SQLITE)[:version]:
        for statement in statements:
            old.execute(statement)
        old.execute("INSERT INTO frontdesk_schema VALUES (?)", (number,))
    old.execute("INSERT INTO names VALUES ('mine', 'ses_1')")
    move(old.end(), new.end(), quiet)
    assert new.execute("SELECT MAX(version) FROM frontdesk_schema") == [(VERSION,)]
    assert new.numbers()["names"] == 1
    assert old.execute("SELECT MAX(version) FROM frontdesk_schema") == [(version,)]


@pytest.mark.parametrize("source", ["sqlite", "postgres"])
async def test_a_newer_store_is_left_alone(places: dict[str, list[Place]], source: str) -> None:
    old, new = places[source][0], places["sqlite"][1]
    await fill(old)
    old.execute("INSERT INTO frontdesk_schema VALUES (99)")
    with pytest.raises(NewerStoreError):
        move(old.end(), new.end(), quiet)
    assert not Path(new.where).exists()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_newer_target_is_left_alone(places: dict[str, list[Place]], kind: str) -> None:
    old, new = places["sqlite"][0], places[kind][1]
    await fill(old)
    new.execute("CREATE TABLE frontdesk_schema (version INTEGER NOT NULL)")
    new.execute("INSERT INTO frontdesk_schema VALUES (99)")
    with pytest.raises(NewerStoreError):
        move(old.end(), new.end(), quiet)
    assert new.execute("SELECT version FROM frontdesk_schema") == [(99,)]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_target_that_holds_something_is_refused(places: dict[str, list[Place]], kind: str) -> None:
    old, new = places["sqlite"][0], places[kind][1]
    await fill(old)
    await fill(new)
    before = new.numbers()
    with pytest.raises(MoveError, match="is not empty: there is something in sessions"):
        move(old.end(), new.end(), quiet)
    assert new.numbers() == before


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_target_in_which_nothing_was_kept_yet_is_taken(places: dict[str, list[Place]], kind: str) -> None:
    old, new = places["sqlite"][0], places[kind][1]
    await fill(old)
    store = new.store()
    await store.open()
    store.sessions.release(await store.sessions.claim("ses_of_a_turn_that_failed"))
    await store.close()
    move(old.end(), new.end(), quiet)
    assert await pictured(new) == await pictured(old)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_tables_of_another_program_are_left_alone(places: dict[str, list[Place]], kind: str) -> None:
    old, new = places["sqlite"][0], places[kind][1]
    await fill(old)
    new.execute("CREATE TABLE sessions (cookie TEXT)")
    with pytest.raises(MoveError, match=r"tables of other programs by our names \(sessions\)"):
        move(old.end(), new.end(), quiet)
    assert new.execute("SELECT cookie FROM sessions") == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_place_without_state_is_no_source(places: dict[str, list[Place]], kind: str) -> None:
    old, new = places[kind][0], places["sqlite"][1]
    old.execute("CREATE TABLE other (x INTEGER)")
    with pytest.raises(MoveError, match="holds no state"):
        move(old.end(), new.end(), quiet)
    assert not Path(new.where).exists()


async def test_a_file_that_is_no_database_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("Buy marmalade. " * 100)
    with pytest.raises(MoveError, match="not a database"):
        move(SqliteEnd(tmp_path / "notes.db"), SqliteEnd(tmp_path / "new.db"), quiet)
    with pytest.raises(MoveError, match="there is no file"):
        move(SqliteEnd(tmp_path / "missing.db"), SqliteEnd(tmp_path / "new.db"), quiet)
    assert os.listdir(tmp_path) == ["notes.db"]


@pytest.mark.parametrize("used", ["source", "target"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_store_that_is_open_is_not_moved(places: dict[str, list[Place]], kind: str, used: str) -> None:
    other = "postgres" if kind == "sqlite" else "sqlite"
    old, new = (places[kind][0], places[other][1]) if used == "source" else (places[other][0], places[kind][1])
    await fill(old)
    store = (old if used == "source" else new).store()
    await store.open()
    with pytest.raises(MoveError, match="is in use; stop the host"):
        move(old.end(), new.end(), quiet)
    await store.close()
    move(old.end(), new.end(), quiet)
    assert await pictured(new) == await pictured(old)


@pytest.mark.parametrize("target", ["sqlite", "postgres"])
async def test_an_error_half_way_leaves_nothing(places: dict[str, list[Place]], target: str) -> None:
    old, new = places["sqlite"][0], places[target][1]
    await fill(old)

    def fail(table: str, moved: int, total: int) -> None:
        if table == "runs":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(old.end(), new.end(), fail)
    if target == "sqlite":
        assert not Path(new.where).exists()
    else:
        assert new.schema() == []
    move(old.end(), new.end(), quiet)
    assert await pictured(new) == await pictured(old)


KILLED = """
import os, sys
from pathlib import Path
from frontdesk.stores.sql.move import move
from frontdesk.stores.sql.postgres_end import PostgresEnd
from frontdesk.stores.sql.sqlite_end import SqliteEnd

def end(where):
    return SqliteEnd(Path(where)) if where.endswith(".db") else PostgresEnd(where)

move(end(sys.argv[1]), end(sys.argv[2]), lambda table, moved, total: os._exit(9) if table == "items" else None)
"""


@pytest.mark.parametrize("target", ["sqlite", "postgres"])
async def test_a_kill_half_way_leaves_an_empty_store(places: dict[str, list[Place]], target: str) -> None:
    old, new, spare = places["sqlite"][0], places[target][1], places["postgres"][0]
    await fill(old)
    assert subprocess.run([sys.executable, "-c", KILLED, old.where, new.where]).returncode == 9
    store = new.store()
    await store.open()
    assert await store.sessions.get(OWNER, "ses_1") is None
    await store.close()
    assert not any(new.numbers().values())
    move(old.end(), spare.end(), quiet)
    assert await pictured(spare) == await pictured(old)


class Losing(SqliteEnd):
    """A database that keeps a row back."""

    def read(self, shape: Shape) -> Iterator[Sequence[Any]]:
        return iter(list(super().read(shape))[1:])


async def test_what_does_not_arrive_whole_is_not_kept(places: dict[str, list[Place]]) -> None:
    old, new = places["sqlite"]
    await fill(old)
    with pytest.raises(MoveError, match=r"sessions has 20 rows, and 19 of them arrived"):
        move(Losing(Path(old.where)), new.end(), quiet)
    assert not Path(new.where).exists()


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
