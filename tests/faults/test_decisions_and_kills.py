"""A host is killed around each commit of a decision: what was decided runs by itself, once, or fails and says so."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.ports import free_port, is_ready
from tests.forked import ForkedProcess, fork
from tests.scenarios.desk import until

BEGUN = 7
"""The commit that uses the answer up; before it are the decision, what is written of its event, the start of the run
and its hold on the answer. A busy machine writes two of them in one commit, or one that is not among them."""
LAST = 8


@asynccontextmanager
async def _serve(root: Path, **given: Any) -> AsyncIterator[tuple[ForkedProcess, httpx.AsyncClient]]:
    port = free_port()
    process = await fork("tests.faults.deciding_host:main", json.dumps({"root": str(root), "port": port, **given}))
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            await until(lambda: is_ready(client))
            yield process, client
    finally:
        process.kill()
        await process.wait()


def _read_paid(root: Path) -> list[str]:
    place = root / "paid"
    return place.read_text().split() if place.exists() else []


async def _decide_and_kill(root: Path, **given: Any) -> str:
    """Ask, decide, and be gone; return the id of the question."""
    async with _serve(root, **given) as (process, client):
        asked = (await client.post("/invocations", json={"message": "pay", "session_id": "s"})).json()
        (approval,) = asked["approvals"]
        with suppress(httpx.TransportError):
            await client.post(f"/invocations/decide/{approval['id']}")
            await _end(client)
        process.kill()
        await process.wait()
    return approval["id"]


async def _end(client: httpx.AsyncClient) -> list[Any]:
    """Wait until the run of the decision has ended, and return its status and the code of its failure."""
    ended: list[Any] = []

    async def is_over() -> bool:
        decided = (await client.get("/invocations/decided")).json()
        ended[:] = decided["runs"]
        return decided["left"] == 0 and len(ended) == 1 and ended[0][0] in ("completed", "failed")

    await until(is_over)
    return ended[0]


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
@pytest.mark.parametrize("passes", range(1, LAST + 1))
async def test_a_kill_around_each_commit_of_a_decision(passes: int, point: str, tmp_path: Path) -> None:
    await _assert_once(tmp_path, passes, point)


@pytest.mark.parametrize(("moment", "outcome"), [("undecided", "recorded"), ("decided", "late")])
async def test_a_kill_around_a_decision_on_postgres(moment: str, outcome: str, postgres: str, tmp_path: Path) -> None:
    """Other commits of the host come between there, so that it is killed by what is called around this one."""
    approval_id = await _decide_and_kill(tmp_path, moment=moment, dsn=postgres)
    async with _serve(tmp_path, dsn=postgres) as (_, client):
        again = (await client.post(f"/invocations/decide/{approval_id}")).json()
        assert (again["outcome"], await _end(client)) == (outcome, ["completed", None])
        assert _read_paid(tmp_path) == ["5"]


@pytest.mark.parametrize(("moment", "end"), [("entered", ["completed", None]), ("begun", ["failed", "interrupted"])])
async def test_a_kill_around_the_beginning_on_postgres(
    moment: str, end: list[Any], postgres: str, tmp_path: Path
) -> None:
    await _decide_and_kill(tmp_path, moment=moment, dsn=postgres)
    async with _serve(tmp_path, dsn=postgres) as (_, client):
        assert (await _end(client), _read_paid(tmp_path)) == (end, ["5"])


async def _assert_once(root: Path, passes: int, point: str, **given: Any) -> None:
    approval_id = await _decide_and_kill(root, point=point, passes=passes, **given)
    can_be_undecided = passes == 1 or (passes, point) == (2, "before_commit")
    can_be_interrupted = passes >= BEGUN - 1
    before = _read_paid(root)
    async with _serve(root, **given) as (_, client):
        outcome = (await client.post(f"/invocations/decide/{approval_id}")).json()["outcome"]
        assert outcome == "late" or (can_be_undecided and outcome == "recorded")
        end = await _end(client)
        if end == ["failed", "interrupted"]:
            assert can_be_interrupted
            assert _read_paid(root) == before
        else:
            assert (end, _read_paid(root)) == (["completed", None], ["5"])


async def test_a_kill_in_the_tool_is_never_repeated(tmp_path: Path) -> None:
    await _decide_and_kill(tmp_path, moment="begun")
    async with _serve(tmp_path) as (_, client):
        assert await _end(client) == ["failed", "interrupted"]
        assert _read_paid(tmp_path) == ["5"]


async def test_a_kill_before_the_tool_and_the_run_begins_again_by_itself(tmp_path: Path) -> None:
    await _decide_and_kill(tmp_path, moment="entered")
    assert _read_paid(tmp_path) == []
    async with _serve(tmp_path) as (_, client):
        assert await _end(client) == ["completed", None]
        assert _read_paid(tmp_path) == ["5"]
