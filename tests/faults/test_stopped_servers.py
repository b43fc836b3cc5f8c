"""A server in a process of its own is told to stop while somebody is being served."""

import asyncio
import signal
import socket
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import httpx
import pytest

from tests.scenarios.desk import until

CANCELLED = ("cancelled", "cancelled")
ROOT = Path(__file__).parents[2]
SCRIPT = """
import asyncio, sys
from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel

async def endless(text: str):
    yield "begun"
    await asyncio.Event().wait()

host = AgentFrameworkHost(
    endless,
    channels=[InvocationsChannel(), ResponsesChannel()],
    state_dir=sys.argv[2],
    shutdown_grace_seconds=1,
    cancel_grace_seconds=1,
)
host.serve(port=int(sys.argv[1]), log_level="critical")
"""


@asynccontextmanager
async def _process(state: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, httpx.AsyncClient]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", SCRIPT, str(port), str(state), cwd=ROOT)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            await until(lambda: _is_ready(client))
            yield process, client
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _is_ready(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/readyz")).status_code == 200
    except httpx.TransportError:
        return False


async def test_runs_were_recorded_as_cancelled_when_the_server_was_stopped(tmp_path: Path) -> None:
    begun: list[str] = []
    streamed: list[str] = []
    async with _process(tmp_path) as (process, client):
        background = {"message": "x", "background": True}
        await client.post("/invocations", json=background, headers={"x-agent-invocation-id": "background"})
        whole = asyncio.create_task(
            client.post("/invocations", json={"message": "x"}, headers={"x-agent-invocation-id": "whole"})
        )
        await until(lambda: _is_running(client, "whole"))
        # A caller's own cancellation stays one.
        mine = {"x-agent-invocation-id": "mine"}
        cancelled = asyncio.create_task(client.post("/invocations", json={"message": "x"}, headers=mine))
        await until(lambda: _is_running(client, "mine"))
        assert (await client.post("/invocations/mine/cancel")).json()["status"] == "cancelled"
        assert (await cancelled).json()["status"] == "cancelled"
        body, headers = {"message": "x", "stream": True}, {"x-agent-invocation-id": "stream"}
        async with client.stream("POST", "/invocations", json=body, headers=headers) as response:
            async for line in response.aiter_lines():
                streamed.append(line)
                if line == "event: update" and not begun:
                    begun.append(line)
                    process.send_signal(signal.SIGTERM)
        answer = (await whole).json()
        assert (answer["status"], answer["error"]["code"]) == ("failed", "interrupted")
        assert "interrupted" in "".join(streamed[-4:])
        await asyncio.wait_for(process.wait(), 60)
    async with _process(tmp_path) as (_, client):

        async def is_over() -> bool:
            return not await _is_running(client, "background")

        # It is ended by the next process.
        await until(is_over)
        ends = {name: await _end(client, name) for name in ("background", "whole", "stream", "mine")}
        interrupted = ("failed", "interrupted")
        assert ends == {"background": interrupted, "whole": interrupted, "stream": interrupted, "mine": CANCELLED}


@pytest.mark.parametrize(("path", "field"), [("/invocations", "message"), ("/responses", "input")])
async def test_one_idempotency_key_returned_two_results_around_the_stop_of_a_server(
    path: str, field: str, tmp_path: Path
) -> None:
    headers, body = {"idempotency-key": "order-17"}, {field: "x", "model": "any"} if field == "input" else {field: "x"}
    async with _process(tmp_path) as (process, client):
        asked = asyncio.create_task(client.post(path, json=body, headers=headers))
        await until(lambda: _is_held(tmp_path))
        process.send_signal(signal.SIGTERM)
        first = (await asked).json()
        await asyncio.wait_for(process.wait(), 60)
    async with _process(tmp_path) as (_, client):
        assert (await client.post(path, json=body, headers=headers)).json() == first
    assert (first["status"], "interrupted" in str(first["error"])) == ("failed", True)


def _is_held(state: Path) -> bool:
    """Tell whether the beginning of the run is on the disk."""
    (place,) = state.glob("*.db")
    with closing(sqlite3.connect(place)) as connection:
        return bool(connection.execute("SELECT run_id FROM background").fetchall())


async def _end(client: httpx.AsyncClient, run_id: str) -> tuple[str, str]:
    found = (await client.get(f"/invocations/{run_id}")).json()
    return found["status"], (found.get("error") or {}).get("code", "")


async def _is_running(client: httpx.AsyncClient, run_id: str) -> bool:
    found = await client.get(f"/invocations/{run_id}")
    return found.status_code == 200 and found.json()["status"] == "running"
