"""Two versions on one store: what was expanded is lived with, what was contracted is refused, backfills resume."""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import StoreError, StoreUnavailableError
from frontdesk.stores.sql import store as schema_watch
from frontdesk.stores.sql.migrations import schema, steps
from frontdesk.stores.sql.migrations.schema import STEPS, VERSION, NewerStoreError
from frontdesk.stores.sql.migrations.steps import Backfill, Step
from frontdesk.stores.sql.move.endpoints import SqliteEnd, move
from frontdesk.stores.sql.postgres.connections import describe
from frontdesk.stores.sql.postgres.engine import PostgresEngine
from frontdesk.stores.sql.sqlite.engine import SqliteEngine
from frontdesk_testing import serving
from frontdesk_testing.store_samples import NOW, OWNER, build_messages, keep_session, run, session, texts
from tests.scenarios.cast import echo
from tests.stores.sql.bases import Base

EXPANDED = (
    "ALTER TABLE runs ADD COLUMN shade TEXT",
    "ALTER TABLE sessions ADD COLUMN seen BIGINT NOT NULL DEFAULT 0",
    "CREATE TABLE labels (name TEXT NOT NULL PRIMARY KEY, data {blob} NOT NULL)",
    "CREATE INDEX runs_by_shade ON runs (shade)",
)
CONTRACTED = ("DROP TABLE last_seen",)


def shade(row: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    run_id, data = row
    found = json.loads(bytes(data))["data"]["status"]
    yield "UPDATE runs SET shade = ? WHERE run_id = ? AND data = ?", (found, run_id, bytes(data))


SHADES = Backfill(
    "shades",
    "SELECT run_id, data FROM runs WHERE shade IS NULL AND run_id > ? ORDER BY run_id LIMIT ?",
    shade,
    start="",
)
EXPAND = Step(EXPANDED, min_reader=VERSION, backfill=SHADES)


@contextmanager
def newer(*more: Sequence[str]) -> Iterator[None]:
    """Be a version that knows more steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "STEPS", (*STEPS, *more))
        for module in (
            "frontdesk.stores.sql.migrations.schema",
            "frontdesk.stores.sql.sqlite.engine",
            "frontdesk.stores.sql.postgres.connections",
            "frontdesk.stores.sql.store",
        ):
            patch.setattr(f"{module}.VERSION", VERSION + len(more))
        yield


async def keep_runs(base: Base, count: int) -> None:
    async with base.open() as store:
        for number in range(count):
            async with store.transaction() as transaction:
                transaction.save_run(run(f"run_{number:03}", finished_at=NOW))


def shades(base: Base) -> list[Any]:
    return [one for (one,) in base.execute("SELECT shade FROM runs ORDER BY run_id")]


async def test_an_older_host_was_refused_by_a_store_that_had_only_grown(base: Base) -> None:
    async with base.open() as store:
        await keep_session(store, session(), build_messages("one"))
    with newer(EXPAND):
        async with base.open():
            pass
    assert base.version() == VERSION + 1
    before = base.shape()
    async with base.open() as store:
        await keep_session(store, session(turns=1), build_messages("two"))
        async with store.transaction() as transaction:
            transaction.save_run(run())
        assert texts(await store.sessions.history(OWNER, "ses_1")) == ["one", "two"]
    assert (base.version(), base.shape()) == (VERSION + 1, before)
    # And the newer one again after it.
    with newer(EXPAND):
        async with base.open() as store:
            assert texts(await store.sessions.history(OWNER, "ses_1")) == ["one", "two"]


@pytest.mark.parametrize("last", [CONTRACTED, Step(CONTRACTED, min_reader=VERSION + 1, contracts=True)])
async def test_an_older_host_is_refused_by_a_store_that_lacks_what_it_uses(base: Base, last: Sequence[str]) -> None:
    with newer(EXPAND, last):
        async with base.open():
            pass
        assert base.version() == VERSION + 2
    min_reader = VERSION + 1 if isinstance(last, Step) else VERSION + 2
    before = base.shape(), base.tables()
    store = base.store()
    with pytest.raises(
        NewerStoreError, match=f"schema version {min_reader}, and this version of Frontdesk knows {VERSION}"
    ):
        await store.open()
    await store.close()
    assert (base.shape(), base.tables()) == before
    with newer(EXPAND):
        # The release in between knows what was expanded, and does not use what was taken away.
        if isinstance(last, Step):
            async with base.open():
                pass
        else:
            with pytest.raises(NewerStoreError):
                await base.store().open()


async def test_an_older_host_that_runs_lives_with_a_store_that_grows(postgres: str) -> None:
    base = Base("postgres", postgres)
    async with base.open() as old:
        with newer(EXPAND):
            async with base.open() as new:
                await keep_session(new, session(), build_messages("one"))
        assert await old._upkeep.check(lambda: pytest.fail("it may go on"))
        await keep_session(old, session(turns=1), build_messages("two"))
        assert texts(await old.sessions.history(OWNER, "ses_1")) == ["one", "two"]


def warnings(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    texts = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    return [text for text in texts if words in text]


async def test_a_schema_grew_under_a_living_host_and_neither_noticed(
    postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    base = Base("postgres", postgres)
    async with base.open() as old, base.open() as other:
        for store in (old, other):
            await store._upkeep.stop()
        with newer(EXPAND):
            async with base.open():
                pass
        (told,) = warnings(caplog, "while other hosts are connected")
        assert f"from={VERSION} to={VERSION + 1}: " in told
        assert told.endswith(f": 2 of schema version {VERSION} (they go on)")
        # The new one here has a newer schema and not a newer version, and may have heard of it from itself.
        caplog.clear()
        for _ in range(3):
            assert await old._upkeep.check(lambda: pytest.fail("it may go on"))
    heard = warnings(
        caplog, f"schema migrated by a newer host, continuing: schema_version={VERSION + 1} known_version={VERSION}"
    )
    assert len(heard) == 1


async def test_a_schema_shrank_under_a_living_host_and_nobody_was_told(
    postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    base = Base("postgres", postgres)
    async with base.open():
        with newer(EXPAND, CONTRACTED):
            async with base.open():
                pass
    (told,) = warnings(caplog, "while other hosts are connected")
    assert told.endswith(f": 1 of schema version {VERSION} (they will refuse to work on)")


async def test_a_host_that_is_alone_warns_of_nobody(base: Base, caplog: pytest.LogCaptureFixture) -> None:
    base.build(VERSION - 1)
    async with base.open():
        pass
    async with base.open(), base.open():
        pass
    assert not warnings(caplog, "schema")


@pytest.mark.parametrize(
    ("names", "min_reader", "told"),
    [
        ([], 11, ""),
        (["frontdesk/11/a", "frontdesk/11/a", "frontdesk/11/b"], 11, "2 of schema version 11 (they go on)"),
        (["frontdesk/11/a"], 12, "1 of schema version 11 (they will refuse to work on)"),
        (["frontdesk"] * 3, 10, "3 connections of hosts older than schema version 11 (they go on)"),
        (
            ["frontdesk", "frontdesk/12/a"],
            12,
            "1 connections of hosts older than schema version 11 (they will refuse to work on), "
            "1 of schema version 12 (they go on)",
        ),
        (["frontdesk/x"], 12, "1 of schema version 0 (they will refuse to work on)"),
    ],
)
def test_the_names_of_connections_tell_which_hosts_there_are(names: list[str], min_reader: int, told: str) -> None:
    assert describe(names, min_reader) == told


async def test_a_host_whose_schema_is_no_longer_known_answers_503(postgres: str) -> None:
    base = Base("postgres", postgres)
    store = base.store()
    host = AgentFrameworkHost(echo, channels=[InvocationsChannel()], store=store)
    async with serving(host) as client:
        assert (await client.invoke("one", session_id="s"))["status"] == "completed"
        with newer(EXPAND, CONTRACTED):
            async with base.open():
                pass
        refuse = store._upkeep._refuse
        assert refuse is not None
        assert not await store._upkeep.check(refuse)
        answer = await client.http.post("/invocations", json={"message": "two", "session_id": "s"})
        assert answer.status_code == 503


async def test_an_older_host_that_runs_stops_using_a_store_that_shrank(
    postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    base = Base("postgres", postgres)
    async with base.open() as old:
        await keep_session(old, session(), build_messages("one"))
        with newer(EXPAND, CONTRACTED):
            async with base.open():
                pass
        refuse = old._upkeep._refuse
        assert refuse is not None
        assert not await old._upkeep.check(refuse)
        with pytest.raises(StoreUnavailableError):
            await old.sessions.get(OWNER, "ses_1")
        with pytest.raises(StoreUnavailableError):
            await old.tasks.cancel("t")
    assert [one for one in caplog.records if one.levelno == logging.ERROR and "no longer usable" in one.getMessage()]


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE last_seen",
        "ALTER TABLE runs DROP COLUMN kind",
        "ALTER TABLE runs RENAME COLUMN kind TO sort",
        "ALTER TABLE runs ADD COLUMN shade TEXT NOT NULL",
        "CREATE UNIQUE INDEX one_run ON runs (owner)",
        "UPDATE runs SET kind = 'x'",
        "DELETE FROM runs",
    ],
)
def test_a_step_that_takes_something_away_has_to_say_so(statement: str) -> None:
    with pytest.raises(ValueError, match="contracts=True"):
        Step([statement], min_reader=VERSION)
    assert Step([statement], min_reader=VERSION, contracts=True) == (statement,)
    # Without a promise to older hosts there is nothing to break.
    assert Step([statement]).min_reader is None


def test_every_step_so_far_that_makes_a_promise_only_expands() -> None:
    for number, step in enumerate(STEPS, start=1):
        if isinstance(step, Step) and step.min_reader is not None:
            assert step.min_reader <= number


async def test_a_backfill_changes_all_rows_a_batch_at_a_time(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_watch, "BATCH_ROWS", 10)
    await keep_runs(base, 35)
    with newer(EXPAND):
        async with base.open() as store:
            await store._upkeep.stop()
            await store._upkeep.fill()
            await store._upkeep.fill()
        assert set(shades(base)) == {"completed"}
    assert base.execute("SELECT name, position, done FROM backfills") == [("shades", "run_034", 1)]


class KilledError(Exception):
    """Ends a process in the middle."""


@pytest.mark.parametrize("batches", range(1, 5))
async def test_a_backfill_that_was_cut_off_goes_on_from_where_it_was(
    base: Base, batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_watch, "BATCH_ROWS", 10)
    await keep_runs(base, 35)
    seen: list[str] = []
    with newer(EXPAND):
        async with base.open() as store:
            await store._upkeep.stop()
            engine = SqliteEngine if base.kind == "sqlite" else PostgresEngine
            write, left = engine.write, [batches]

            async def dying(self: Any, ops: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    raise KilledError
                return await write(self, ops)

            with monkeypatch.context() as patch:
                patch.setattr(engine, "write", dying)
                with pytest.raises(KilledError):
                    await store._upkeep.fill()
    done = min(10 * batches, 35)
    assert sum(one is not None for one in shades(base)) == done
    noted = SHADES._replace(change=lambda row: (seen.append(row[0]), *shade(row))[1:])
    with newer(Step(EXPANDED, min_reader=VERSION, backfill=noted)):
        async with base.open() as store:
            await store._upkeep.stop()
            await store._upkeep.fill()
    # No row twice, and none left out.
    assert seen == [f"run_{number:03}" for number in range(done, 35)]
    assert set(shades(base)) == {"completed"}


async def test_of_two_processes_at_a_backfill_one_does_each_batch(base: Base) -> None:
    await keep_runs(base, 5)
    with newer(EXPAND):
        async with base.open() as store:
            await store._upkeep.stop()
            ((name, position),) = await store._engine.read(schema_watch._OPEN)
            await store._upkeep.fill()
            with pytest.raises(StoreError, match="another process"):
                await store._upkeep._fill(schema.backfills()[name], position)


async def test_a_step_that_contracts_first_completes_the_backfill_that_it_needs(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("sqlite.engine", "postgres.connections"):
        monkeypatch.setattr(f"frontdesk.stores.sql.{module}.BATCH_ROWS", 2)
    assert steps.BATCH_ROWS > 2
    await keep_runs(base, 5)
    with newer(EXPAND):
        async with base.open() as store:
            await store._upkeep.stop()
            await store._upkeep.fill()
    # An older host goes on writing, after the backfill was complete.
    await keep_runs(base, 8)
    assert shades(base)[5:] == [None] * 3
    with newer(EXPAND, Step(CONTRACTED, min_reader=VERSION + 1, contracts=True, needs=("shades",))):
        async with base.open():
            pass
    assert shades(base) == ["completed"] * 8


async def test_a_store_goes_on_with_its_backfills_by_itself(base: Base) -> None:
    await keep_runs(base, 3)
    with newer(EXPAND):
        store = base.store()
        await store.open()
        try:
            task = store._upkeep._task
            assert task is not None
            while None in shades(base):
                assert not task.done()
                await store._engine.read("SELECT 1")
        finally:
            await store.close()


async def test_a_store_that_is_moved_gets_its_backfills_before_what_needs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.stores.sql.move.endpoints.BATCH_ROWS", 2)
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    await keep_runs(Base("sqlite", str(old)), 5)
    contract = Step(CONTRACTED, min_reader=VERSION + 1, contracts=True, needs=("shades",))
    with newer(EXPAND, contract):
        for name in ("KNOWN", "VERSION"):
            monkeypatch.setattr(f"frontdesk.stores.sql.move.endpoints.{name}", VERSION + 2)
        move(SqliteEnd(old), SqliteEnd(new), lambda table, moved, total: None)
    assert shades(Base("sqlite", str(new))) == ["completed"] * 5
