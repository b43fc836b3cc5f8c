"""`frontdesk people join-principals`: one person of each API key, in a state of the earlier rule."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from frontdesk import (
    AgentFrameworkHost,
    ApiKeyAuth,
    ChannelIdentity,
    Expiry,
    OneTimeCodeIdentityLinker,
    PostgresStateStore,
    SqliteStateStore,
)
from frontdesk.access.principals import PrincipalRule, StoredRule
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.clock import SystemClock
from frontdesk.ids import RandomIds
from frontdesk.models.link import LinkProof
from frontdesk_testing import EchoAgent, HostClient, serving
from tests.access.linking import desk
from tests.cli.processes import frontdesk

KEYS = {"alice": "the-key-of-alice", "bob": "the-key-of-bob-long", "carol": "the-key-of-carol"}
HEADERS = {name: {"x-api-key": key} for name, key in KEYS.items()}
LINES = ["join-principals", "--state"]


def store_at(place: str) -> Any:
    expiry = Expiry(runs=None)
    if place.startswith("/"):
        return SqliteStateStore(Path(place) / "frontdesk.db", expiry=expiry)
    return PostgresStateStore(place, expiry=expiry)


@asynccontextmanager
async def serve_host(place: str) -> AsyncIterator[HostClient]:
    auth = ApiKeyAuth(KEYS)
    channels = [ResponsesChannel(auth=auth), InvocationsChannel(auth=auth)]
    host = AgentFrameworkHost(EchoAgent(), channels=channels, store=store_at(place), linker=OneTimeCodeIdentityLinker())
    async with serving(host) as client:
        yield client


async def ask(client: HostClient, path: str, who: str) -> str:
    body = {"message": "hi"} if path == "/invocations" else {"input": "hi"}
    answer = await client.http.post(path, json=body, headers=HEADERS[who])
    assert answer.status_code == 200, answer.text
    return answer.json()["id"]


async def find_run(client: HostClient, who: str, run_id: str) -> tuple[bool, bool]:
    """Whether somebody finds a run over Invocations, and over Responses."""
    paths = (f"/invocations/{run_id}", f"/v1/responses/{run_id}")
    answers = [await client.http.get(path, headers=HEADERS[who]) for path in paths]
    assert {answer.status_code for answer in answers} <= {200, 404}
    return answers[0].status_code == 200, answers[1].status_code == 200


@pytest.fixture(params=["sqlite", "postgres"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A state of the earlier rule."""
    place = str(tmp_path) if request.param == "sqlite" else request.getfixturevalue("postgres")
    store = store_at(place)
    await store.open()
    assert await StoredRule(store, SystemClock(), RandomIds()).write(PrincipalRule(), None)
    await store.close()
    return place


async def used(client: HostClient) -> dict[str, str]:
    """Runs of alice on both channels, of bob on Invocations alone, and of carol on Responses alone."""
    runs = {"alice": await ask(client, "/invocations", "alice"), "bob": await ask(client, "/invocations", "bob")}
    runs["alice_there"] = await ask(client, "/v1/responses", "alice")
    runs["carol"] = await ask(client, "/v1/responses", "carol")
    assert await find_run(client, "alice", runs["alice"]) == (True, False)
    assert await find_run(client, "alice", runs["alice_there"]) == (False, True)
    return runs


async def all_joined(client: HostClient, runs: dict[str, str]) -> None:
    for name, run_id in runs.items():
        who = name.partition("_")[0]
        for each in KEYS:
            assert await find_run(client, each, run_id) == ((True, True) if each == who else (False, False))
    # Bob had only the one channel, and goes on with what he has there.
    made = await client.http.post(
        "/v1/responses", json={"input": "hi", "previous_response_id": runs["bob"]}, headers=HEADERS["bob"]
    )
    assert made.status_code == 200, made.text


async def test_a_dry_run_prints_what_would_be_joined_and_changes_nothing(place: str) -> None:
    async with serve_host(place) as client:
        runs = await used(client)
    for _ in range(2):
        done = frontdesk("people", *LINES, place)
        assert (done.returncode, done.stderr) == (0, "")
        assert "Principals of invocations become those of responses." in done.stdout
        rows = [line.split()[:4] for line in done.stdout.splitlines() if line.startswith(("join", "move"))]
        assert rows == [["join", "alice", "invocations", "responses"], ["move", "bob", "invocations", "responses"]]
        assert "Nothing was changed. --apply would join 2" in done.stdout
    async with serve_host(place) as client:
        assert await find_run(client, "alice", runs["alice"]) == (True, False)


async def test_people_are_joined_while_no_host_runs(place: str) -> None:
    async with serve_host(place) as client:
        runs = await used(client)
    done = frontdesk("people", *LINES, place, "--apply", "--by", "ada")
    assert done.returncode == 0, done.stderr
    assert "Joined: 2." in done.stdout
    audit = frontdesk("audit", "list", "--by", "operator:ada", "--json", "--state", place)
    assert {line["subject"] for line in json.loads(audit.stdout)["audit"]} == {"invocations:alice", "invocations:bob"}
    async with serve_host(place) as client:
        await all_joined(client, runs)
    again = json.loads(frontdesk("people", *LINES, place, "--json").stdout)
    assert (again["steps"], again["applied"]) == ([], False)


async def test_people_are_joined_while_a_host_runs(place: str) -> None:
    """A host on SQLite answers by its socket; one on Postgres looks at the rule by itself."""
    async with serve_host(place) as client:
        runs = await used(client)
        done = await asyncio.to_thread(frontdesk, "people", *LINES, place, "--apply")
        assert done.returncode == 0, done.stderr
        await all_joined(client, runs)
    async with serve_host(place) as client:
        await all_joined(client, runs)


async def test_links_are_kept_and_contradicting_ones_refuse_everything(tmp_path: Path) -> None:
    place = str(tmp_path)
    store = store_at(place)
    await store.open()
    assert await StoredRule(store, SystemClock(), RandomIds()).write(PrincipalRule(), None)
    await store.close()
    async with serve_host(place) as client:
        runs = await used(client)
    store = store_at(place)
    await store.open()
    links = desk(store, clock=SystemClock())
    who = ChannelIdentity(channel="invocations", native_id="alice")
    there = ChannelIdentity(channel="responses", native_id="alice")
    for identity, subject in ((who, "issuer|1"), (there, "issuer|2")):
        await links.join(LinkProof(linker="oauth", identity=identity, subject=subject))
    await store.close()
    async with serve_host(place) as client:
        refused = await asyncio.to_thread(frontdesk, "people", *LINES, place, "--apply")
        assert refused.returncode == 4
        assert "nothing was joined" in refused.stderr
        assert "conflict" in refused.stdout
        assert await find_run(client, "bob", runs["bob"]) == (True, False)
        for command in (("links", "revoke", "responses", "alice"), ("people", "join-principals", "--apply")):
            done = await asyncio.to_thread(frontdesk, *command, "--state", place)
            assert done.returncode == 0, done.stderr
        await all_joined(client, runs)
    with closing(sqlite3.connect(tmp_path / "frontdesk.db")) as connection:
        linked = connection.execute("SELECT channel, subject FROM links").fetchall()
    assert linked == [("responses", "issuer|1")]


async def test_a_state_that_no_such_host_has_used_is_left_alone(tmp_path: Path) -> None:
    store = store_at(str(tmp_path))
    await store.open()
    await store.close()
    done = frontdesk("people", *LINES, str(tmp_path))
    assert "No channels share an auth object" in done.stdout
    assert frontdesk("people", *LINES, str(tmp_path), "--apply").returncode == 4
