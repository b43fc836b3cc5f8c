"""Two hosts on one database, and what went wrong elsewhere when two had the same session."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from tests.faults.crash.books import Book, Said, Tally
from tests.faults.crash.clients import Named
from tests.faults.crash.processes import HostProcess, HostProcesses
from tests.faults.crash.server import TOLD
from tests.scenarios.desk import until


@asynccontextmanager
async def _hosts(
    postgres: str, root: Path, **settings: Any
) -> AsyncIterator[tuple[HostProcesses, HostProcess, HostProcess]]:
    async with HostProcesses("postgres", postgres, root / "ledger", **settings) as house:
        one, other = await asyncio.gather(house.start(), house.start())
        yield house, one, other


async def _say(host: HostProcess, message: str, session_id: str = "s") -> httpx.Response:
    return await host.client.post("/invocations", json={"message": message, "session_id": session_id})


async def _recall(host: HostProcess, session_id: str = "s") -> Said:
    return await Named(Book(session_id), Tally(), Random(0)).recall(host)


async def _begin(house: HostProcesses, host: HostProcess, name: str) -> "asyncio.Task[httpx.Response]":
    """A turn that has begun, and goes on until its file is there."""
    turn = asyncio.create_task(_say(host, f"hold {name}"))
    await until(house.sign(f"{name}.begun").exists)
    return turn


async def test_two_writers_interleaved_and_corrupted_a_history(postgres: str, tmp_path: Path) -> None:
    async with _hosts(postgres, tmp_path) as (_, one, other):
        texts = [f"s:{number}" for number in range(24)]
        hosts = [one, other] * 12
        answers = await asyncio.gather(*(_say(host, text) for host, text in zip(hosts, texts, strict=True)))
        assert [answer.json()["text"] for answer in answers] == [f"heard {text}" for text in texts]
        said = await _recall(one)
        assert said == await _recall(other)
        asked = [text for role, text in said if role == "user"]
        assert sorted(asked) == sorted(texts)
        assert said == [pair for text in asked for pair in (("user", text), ("assistant", f"heard {text}"))]


async def test_a_lease_outlived_its_run_and_two_ran(postgres: str, tmp_path: Path) -> None:
    async with _hosts(postgres, tmp_path, lease=1.0) as (house, one, other):
        late = await _begin(house, one, "late")
        one.pause()
        assert (await _say(other, "s:1")).json()["text"] == "heard s:1"
        house.sign("late.go").touch()
        one.go_on()
        assert (await late).json()["status"] == "cancelled"
        for host in (one, other):
            assert await _recall(host) == [("user", "s:1"), ("assistant", "heard s:1")]
        assert (await _say(one, "s:2")).status_code == 200


async def test_a_lock_ran_out_during_a_long_run_and_a_second_one_started(postgres: str, tmp_path: Path) -> None:
    async with _hosts(postgres, tmp_path, lease=1.5, wait=4.5) as (house, one, other):
        long = await _begin(house, one, "long")
        # It waits for three times as long as a lease is good for.
        refused = await _say(other, "s:1")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "session_busy")
        assert int(refused.headers["retry-after"]) >= 1
        house.sign("long.go").touch()
        assert (await long).json()["text"] == "done long"
        assert (await _say(other, "s:2")).status_code == 200
        said = await _recall(other)
        assert [text for _, text in said] == ["hold long", "done long", "s:2", "heard s:2"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_thread_stayed_busy_for_ever_after_a_crash(kind: Any, tmp_path: Path, request: Any) -> None:
    place = str(tmp_path / "state") if kind == "sqlite" else request.getfixturevalue("postgres")
    async with HostProcesses(kind, place, tmp_path / "ledger", lease=1.0) as house:
        host = await house.start()
        turn = await _begin(house, host, "never")
        host.kill()
        with pytest.raises(httpx.TransportError):
            await turn
        await host.wait_for_end()
        assert (await _say(await house.start(), "s:1")).json()["text"] == "heard s:1"


async def test_a_session_was_changed_by_two_branches(postgres: str, tmp_path: Path) -> None:
    async with _hosts(postgres, tmp_path) as (_, one, other):
        root = await _respond(one, "s:1")
        branches = await asyncio.gather(
            *(_respond(host, f"s:{number}", root) for number, host in enumerate([one, other] * 4, 2))
        )
        for number, branch in enumerate(branches, 2):
            for host in (one, other):
                told = (await _respond(host, "recall", branch))["output"][0]["content"][0]["text"]
                assert [f"heard s:{n}" in told for n in range(1, 10)] == [n in (1, number) for n in range(1, 10)]


async def test_a_chain_was_refused_while_another_host_had_its_session(postgres: str, tmp_path: Path) -> None:
    async with _hosts(postgres, tmp_path) as (house, one, other):
        root = await _respond(one, "s:1")
        held = asyncio.create_task(_respond(one, "hold long", root))
        await until(house.sign("long.begun").exists)
        branch = await _respond(other, "s:2", root)
        assert branch["status"] == "completed"
        house.sign("long.go").touch()
        assert (await held)["status"] == "completed"
        for end, texts in ((branch, ["s:1", "s:2"]), (await held, ["s:1", "hold long"])):
            told = await _respond(other, "recall", end)
            said = json.loads(told["output"][0]["content"][0]["text"].removeprefix(TOLD))
            assert [text for role, text in said if role == "user"] == texts


async def _respond(host: HostProcess, text: str, previous: dict[str, Any] | None = None) -> dict[str, Any]:
    more = {} if previous is None else {"previous_response_id": previous["id"]}
    return (await host.client.post("/v1/responses", json={"model": "any", "input": text, **more})).json()


async def test_an_approval_was_taken_by_two_hosts(postgres: str, tmp_path: Path) -> None:
    async with _hosts(postgres, tmp_path) as (house, one, other):
        (question,) = (await _say(one, "pay s:1")).json()["approvals"]
        answer = {"approval": {"id": question["id"], "approved": True}}
        answers = await asyncio.gather(*(host.client.post("/invocations", json=answer) for host in [one, other] * 5))
        assert sorted(one.status_code for one in answers) == [200] + [409] * 9
        assert house.payments() == ["s:1"]


async def test_a_question_was_asked_by_one_host_and_answered_at_another(postgres: str, tmp_path: Path) -> None:
    async with _hosts(postgres, tmp_path) as (house, one, other):
        (question,) = (await _say(one, "pay s:1")).json()["approvals"]
        one.kill()
        answer = {"approval": {"id": question["id"], "approved": True}}
        assert (await other.client.post("/invocations", json=answer)).json()["text"] == "done s:1"
        assert house.payments() == ["s:1"]
