"""A host in a process of its own is killed while a workflow waits, or while it takes its answer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.ports import free_port, is_ready
from tests.forked import fork
from tests.scenarios.desk import until


@asynccontextmanager
async def _house(root: Path, kind: str, moment: str = "never") -> AsyncIterator[tuple[Any, httpx.AsyncClient]]:
    port = free_port()
    process = await fork("tests.faults.waiting_host:main", str(port), str(root), kind, moment)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            await until(lambda: is_ready(client))
            yield process, client
    finally:
        process.kill()
        await process.wait()


async def _post(client: httpx.AsyncClient, **body: Any) -> Any:
    return await client.post("/invocations", json=body)


def _diary(root: Path) -> list[str]:
    place = root / "diary"
    return place.read_text().split("\n")[:-1] if place.exists() else []


async def test_a_pause_outlived_its_process(tmp_path: Path) -> None:
    async with _house(tmp_path, "inn") as (process, client):
        run = (await _post(client, message="anna", session_id="s")).json()
        process.kill()
        await process.wait()
    answer = {"responses": {run["requests"][0]["id"]: {"accepted": True, "nights": 3}}, "session_id": "s"}
    async with _house(tmp_path, "inn") as (process, client):
        told = (await _post(client, **answer)).json()
        assert told["outputs"] == ["anna takes the attic for 3", "bags for 3 nights"]
        process.kill()
        await process.wait()
    async with _house(tmp_path, "inn") as (_, client):
        assert (await _post(client, **answer)).status_code == 400
        assert (await _post(client, message="who?", session_id="s")).json()["text"] == "served anna"
    assert _diary(tmp_path) == ["attic 3"]


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_process_died_with_the_checkpoint_saved(moment: str, tmp_path: Path) -> None:
    async with _house(tmp_path, "inn") as (_, client):
        run = (await _post(client, message="anna", session_id="s")).json()
    answer = {"responses": {run["requests"][0]["id"]: {"accepted": True, "nights": 3}}, "session_id": "s"}
    async with _house(tmp_path, "inn", moment) as (process, client):
        with suppress(httpx.TransportError):
            await _post(client, **answer)
        await process.wait()
    async with _house(tmp_path, "inn") as (_, client):
        again = await _post(client, **answer)
        # The record decides: without it the session is where it was, and with it the answer was taken.
        assert again.status_code == (200 if moment == "before" else 400)
        assert (await _post(client, message="who?", session_id="s")).json()["text"] == "served anna"


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_process_died_after_an_approval_was_used_up(moment: str, tmp_path: Path) -> None:
    async with _house(tmp_path, "till") as (_, client):
        run = (await _post(client, message="pay", session_id="s")).json()
    answer = {"approval": {"id": run["approvals"][0]["id"], "approved": True}}
    async with _house(tmp_path, "till-second", moment) as (process, client):
        with suppress(httpx.TransportError):
            await _post(client, **answer)
        await process.wait()
    async with _house(tmp_path, "till-third") as (_, client):
        again = await _post(client, **answer)
        assert (again.status_code, again.json()["error"]["code"]) == (409, "approval_answered")
        # The session is not stuck with a question that nobody can answer.
        assert (await _post(client, message="hello", session_id="s")).status_code == 200
    assert _diary(tmp_path) == ["5"]
