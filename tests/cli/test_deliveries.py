"""`frontdesk deliveries`: what an operator sees of it."""

import getpass
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from frontdesk.cli import main
from frontdesk.clock import SystemClock
from frontdesk.models.delivery import Attempt, Delivery
from frontdesk.state_dir.lock import lock_directory
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk_testing.store_samples import delivery
from tests.cli.processes import frontdesk

NOW = SystemClock().now()
HIDDEN = "what it says is nobody's business"
TRIED = (Attempt(at=NOW, code="down"), Attempt(at=NOW, code="down"))


def rows() -> list[Delivery]:
    fields = {"created_at": NOW, "due_at": NOW, "payload": HIDDEN, "parts": 2}
    return [
        delivery("dlv_1", status="accepted", receipt="r1", ended_at=NOW, **fields),
        delivery(
            "dlv_2", answer_id="a", status="dead", error="blocked", ended_at=NOW, history=TRIED, attempts=2, **fields
        ),
        delivery(
            "dlv_3", answer_id="a", status="dead", error="an earlier part is dead", ended_at=NOW, **fields
        ).replace(part=1),
        delivery("dlv_4", channel="slack", place="U\x1b[31m1", **fields),
    ]


async def fill(store: SqlStateStore) -> None:
    await store.open()
    async with store.transaction() as transaction:
        for one in rows():
            transaction.add_delivery(one)
    await store.close()


@pytest.fixture
async def state(tmp_path: Path) -> Path:
    """A state directory with some deliveries in it."""
    directory = tmp_path / "state"
    directory.mkdir()
    await fill(SqliteStateStore(directory / "frontdesk.db"))
    return directory


def test_a_table_shows_what_may_be_shown(state: Path) -> None:
    done = frontdesk("deliveries", "list", "--state", str(state))
    assert (done.returncode, done.stderr) == (0, "")
    head, *lines, total = done.stdout.splitlines()
    assert head.split() == ["delivery_id", "status", "channel", "to", "part", "attempts", "created_at", "error"]
    assert [line.split()[:2] for line in lines] == [
        ["dlv_4", "pending"],
        ["dlv_3", "dead"],
        ["dlv_2", "dead"],
        ["dlv_1", "accepted"],
    ]
    assert total == "All together: 1 accepted, 2 dead, 1 pending."
    assert HIDDEN not in done.stdout
    assert "\x1b" not in done.stdout


def test_some_of_them_as_json(state: Path) -> None:
    line = ["deliveries", "list", "--state", str(state), "--json", "--status", "dead", "--channel", "telegram"]
    found = json.loads(frontdesk(*line).stdout)
    assert [one["delivery_id"] for one in found["deliveries"]] == ["dlv_3", "dlv_2"]
    assert found["counts"] == {"accepted": 1, "dead": 2, "pending": 1}
    assert HIDDEN not in json.dumps(found)
    assert len(json.loads(frontdesk(*line, "--limit", "1").stdout)["deliveries"]) == 1


def test_one_of_them_with_its_history(state: Path) -> None:
    done = frontdesk("deliveries", "show", "dlv_2", "--state", str(state))
    assert "error:        blocked\n" in done.stdout
    assert done.stdout.count("  down\n") == 2
    shown = json.loads(frontdesk("deliveries", "show", "dlv_2", "--state", str(state), "--json").stdout)
    assert [one["what"] for one in shown["history"]] == ["down", "down"]
    assert shown["part"] == "1 of 2"


def test_one_that_is_not_there_is_a_mistake(state: Path) -> None:
    done = frontdesk("deliveries", "show", "dlv_9", "--state", str(state))
    assert (done.returncode, done.stderr) == (3, "frontdesk: No delivery with this id.\n")


async def test_a_dead_one_is_tried_again_with_those_that_died_with_it(state: Path) -> None:
    done = frontdesk("deliveries", "retry", "dlv_2", "--by", "ann", "--state", str(state))
    assert done.stdout == "dlv_2 is tried again. It is done when the host is started.\n"
    assert "delivery_id=dlv_2 channel=telegram actor=operator:ann previous_status=dead" in done.stderr
    store = SqliteStateStore(state / "frontdesk.db")
    await store.open()
    waiting = [one.delivery_id for one in await store.outbox.open(("telegram", "1"))]
    await store.close()
    assert waiting == ["dlv_2", "dlv_3"]
    again = frontdesk("deliveries", "retry", "dlv_2", "--state", str(state))
    assert (again.returncode, again.stderr) == (4, "frontdesk: The delivery can't be retried: its status is pending.\n")


def test_one_that_waits_is_dropped(state: Path) -> None:
    done = frontdesk("deliveries", "drop", "dlv_4", "--state", str(state))
    assert (done.returncode, done.stdout) == (0, "dlv_4 is dropped.\n")
    assert f"actor=operator:{getpass.getuser()} previous_status=pending" in done.stderr
    assert frontdesk("deliveries", "drop", "dlv_1", "--state", str(state)).returncode == 4


def test_a_directory_that_a_host_uses_is_left_alone_and_it_says_why(state: Path) -> None:
    with lock_directory(state, SystemClock()):
        done = frontdesk("deliveries", "list", "--state", str(state))
    assert done.returncode == 1
    assert "another host uses it" in done.stderr
    assert "on Postgres this works at any time" in done.stderr


async def test_on_postgres_it_works_while_a_host_runs(postgres: str) -> None:
    await fill(PostgresStateStore(postgres))
    host = PostgresStateStore(postgres)
    await host.open()
    done = frontdesk("deliveries", "retry", "dlv_2", "--state", postgres)
    assert done.stdout == "dlv_2 is tried again. A host or a worker that runs does it within a few seconds.\n"
    found = await host.outbox.get("dlv_2")
    await host.close()
    assert found is not None
    assert (found.status, found.attempts, found.history[-1].code) == ("pending", 0, "tried again")


@pytest.mark.parametrize(
    "line", ["", "list", "show --state x", "list --state x --status lost", "list --state x --limit 0"]
)
def test_wrong_usage_is_2(line: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(["deliveries", *line.split()])
    assert left.value.code == 2


def test_what_only_a_newer_version_can_read_is_shown_by_its_columns_and_left(state: Path) -> None:
    with closing(sqlite3.connect(state / "frontdesk.db")) as connection, connection:
        newer = b'{"v":9,"data":{"$":"Invented"}}'
        connection.execute("UPDATE deliveries SET data = ? WHERE delivery_id = 'dlv_2'", (newer,))
    done = frontdesk("deliveries", "list", "--state", str(state), "--json")
    assert done.returncode == 0
    row = next(row for row in json.loads(done.stdout)["deliveries"] if row["delivery_id"] == "dlv_2")
    assert (row["status"], row["error"], row["readable"], row["to"]) == ("dead", "blocked", False, None)
    for action in ("retry", "drop"):
        refused = frontdesk("deliveries", action, "dlv_2", "--state", str(state))
        assert (refused.returncode, "newer version" in refused.stderr) == (1, True), refused
    with closing(sqlite3.connect(state / "frontdesk.db")) as connection:
        assert connection.execute("SELECT status, data FROM deliveries WHERE delivery_id = 'dlv_2'").fetchall() == [
            ("dead", newer)
        ]
