"""`frontdesk links`: what an operator sees of it, and what it changes."""

import json
from pathlib import Path

import pytest

from frontdesk import Expiry, PostgresStateStore, SqliteStateStore
from frontdesk.cli import main
from frontdesk.clock import SystemClock
from frontdesk.models.link import LinkProof
from frontdesk.state_dir.lock import lock_directory
from frontdesk.stores.sql.migrations.schema import VERSION
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk_testing.store_samples import run
from tests.access.linking import desk, introduce, join, keys, who
from tests.cli.processes import frontdesk
from tests.stores.sql.bases import Base


def store_at(place: str) -> SqlStateStore:
    expiry = Expiry(runs=None)
    if place.startswith("/"):
        return SqliteStateStore(Path(place) / "frontdesk.db", expiry=expiry)
    return PostgresStateStore(place, expiry=expiry)


@pytest.fixture(params=["sqlite", "postgres"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place where a, b and c are linked, c through b, and a by an account elsewhere too."""
    place = str(tmp_path) if request.param == "sqlite" else request.getfixturevalue("postgres")
    store = store_at(place)
    await store.open()
    await introduce(store)
    links = desk(store, clock=SystemClock())
    await links.join(
        LinkProof(linker="oauth", identity=who("a"), subject="issuer|1", claims={"email": "a@example.com"})
    )
    await join(links, "b", "a")
    await join(links, "c", "b")
    async with store.transaction() as transaction:
        transaction.save_run(run("run_old", finished_at=1.0))
    await store.close()
    return place


async def keys_at(place: str) -> dict[str, str]:
    store = store_at(place)
    await store.open()
    try:
        return await keys(store)
    finally:
        await store.close()


async def test_all_links_are_listed(place: str) -> None:
    done = frontdesk("links", "list", "--state", place)
    assert (done.returncode, done.stderr) == (0, "")
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["channel", "id", "name", "linked_at", "linker", "person"]
    assert [line.split()[:3] for line in lines] == [["chat-a", "a", "A"], ["chat-b", "b", "B"], ["chat-c", "c", "C"]]
    found = json.loads(frontdesk("links", "list", "--json", "--state", place).stdout)["links"]
    assert [(one["channel"], one["linker"]) for one in found] == [
        ("chat-a", "oauth"),
        ("chat-b", "test"),
        ("chat-c", "test"),
    ]
    assert len({one["person"] for one in found}) == 1


async def test_one_link_is_shown_without_the_values_of_its_claims(place: str) -> None:
    done = frontdesk("links", "show", "chat-a", "a", "--state-env", "STATE", env={"STATE": place})
    assert done.returncode == 0, done.stderr
    shown = {line.partition(":")[0]: line.partition(":")[2].strip() for line in done.stdout.splitlines()}
    assert (shown["subject"], shown["claims"], shown["owns_the_key"]) == ("issuer|1", "email", "yes")
    assert shown["linked_with"] == "b on chat-b, c on chat-c"
    found = json.loads(frontdesk("links", "show", "chat-b", "b", "--json", "--state", place).stdout)
    assert [one["id"] for one in found["linked_with"]] == ["a", "c"]
    assert found["subject"] is None
    assert "example.com" not in done.stdout + done.stderr


async def test_a_link_is_revoked_with_those_that_came_through_it(place: str) -> None:
    done = frontdesk("links", "revoke", "chat-b", "b", "--state", place)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("b on chat-b is no longer linked.")
    assert "c on chat-c was linked through it, and is not any more.\n" in done.stdout
    assert "No one was notified: only a running host can do that." in done.stdout
    assert [line.partition(" link_id=")[0] for line in done.stderr.splitlines()] == [
        "identity unlinked: identity=chat-b:'b'",
        "identity unlinked: identity=chat-c:'c'",
    ]
    assert await keys_at(place) == {name: name for name in "abcd"}
    again = frontdesk("links", "revoke", "chat-b", "b", "--state", place)
    assert (again.returncode, again.stderr) == (3, "frontdesk: No link with this id.\n")


async def test_a_command_drops_nothing_that_the_host_would_keep(place: str) -> None:
    assert frontdesk("links", "list", "--state", place).returncode == 0
    store = store_at(place)
    await store.open()
    try:
        kept = await store.runs.get("alice", "run_old")
    finally:
        await store.close()
    assert kept is not None


async def test_while_a_host_runs_on_sqlite_it_says_so(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "frontdesk.db")
    await store.open()
    await store.close()
    with lock_directory(tmp_path, SystemClock()):
        done = frontdesk("links", "list", "--state", str(tmp_path))
    assert done.returncode == 1
    assert "another host uses it" in done.stderr
    assert "on Postgres this works at any time" in done.stderr


async def test_on_postgres_a_host_that_runs_sees_the_end_of_a_link(postgres: str) -> None:
    store = PostgresStateStore(postgres)
    await store.open()
    try:
        await introduce(store)
        await join(desk(store), "b", "a")
        done = frontdesk("links", "revoke", "chat-b", "b", "--state", postgres)
        assert done.returncode == 0, done.stderr
        assert "A running host applies it within a second." in done.stdout
        store.identities.forget(who("b"))
        assert (await keys(store))["b"] == "b"
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("list --state {nowhere}", "not found"),
        ("list --state mysql://host/name", "begins with postgresql://"),
        ("list --state-env NOT_SET", "--state-env: NOT_SET is not set"),
        ("list --state postgresql://user:hunter2@127.0.0.1:1/x", "the database can't be reached"),
        ("list --state {empty}", "the database contains no Frontdesk state"),
    ],
)
def test_a_place_that_is_none_is_told_in_words(
    line: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.db").write_bytes(b"")
    words = line.format(nowhere=tmp_path / "nowhere", empty=tmp_path / "empty.db").split()
    assert main(["links", *words]) == 1
    errors = capsys.readouterr().err
    assert told in errors
    assert "hunter2" not in errors


@pytest.mark.parametrize(
    "line", ["", "list", "show --state x", "show chat --state x", "revoke --state x --state-env Y"]
)
def test_wrong_usage_is_2(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["links", *line.split()])
    assert left.value.code == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_state_of_another_version_is_left_as_it_is(
    kind: str, version: int, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = str(tmp_path / "frontdesk.db") if kind == "sqlite" else request.getfixturevalue("postgres")
    base = Base(kind, where)
    base.build(min(version, VERSION))
    if version > VERSION:
        base.execute("INSERT INTO frontdesk_schema (version) VALUES (?)", (version,))
    shape = base.shape()
    assert main(["links", "list", "--state", where]) == 1
    assert f"schema version {version}" in capsys.readouterr().err
    assert base.shape() == shape
