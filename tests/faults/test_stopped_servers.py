"""A server in a process of its own is told to stop while somebody is being served."""

import asyncio
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx

from tests.scenarios.desk import until

ROOT = Path(__file__).parents[2]
SCRIPT = """
import asyncio, json, sys
from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.stores.memory import InMemoryStateStore
from tests.scenarios.ledger import Ledger

async def endless(text: str):
    yield "begun"
    await asyncio.Event().wait()

async def report():
    runs = sorted((run.run_id, run.status) for run in ledger.kept_runs.values())
    print(json.dumps(runs), flush=True)

ledger = Ledger(InMemoryStateStore())
host = AgentFrameworkHost(
    endless, channels=[InvocationsChannel()], store=ledger, shutdown_grace_seconds=1, cancel_grace_seconds=1
)
ledger.close = report
host.serve(port=int(sys.argv[1]), log_level="critical")
"""


@asynccontextmanager
async def _process() -> AsyncIterator[tuple[asyncio.subprocess.Process, httpx.AsyncClient]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SCRIPT, str(port), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
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


async def test_a_server_was_stopped_with_a_stream_an_answer_and_a_background_run_open() -> None:
    async with _process() as (process, client):
        background = {"message": "x", "background": True}
        await client.post("/invocations", json=background, headers={"x-agent-invocation-id": "background"})
        whole = asyncio.create_task(
            client.post("/invocations", json={"message": "x"}, headers={"x-agent-invocation-id": "whole"})
        )
        body = {"message": "x", "stream": True}
        with suppress(httpx.TransportError):
            async with client.stream(
                "POST", "/invocations", json=body, headers={"x-agent-invocation-id": "stream"}
            ) as response:
                async for line in response.aiter_lines():
                    if line == "event: update":
                        await until(lambda: _is_running(client, "whole"))
                        process.send_signal(signal.SIGTERM)
        await asyncio.wait([whole])
        said, _ = await asyncio.wait_for(process.communicate(), 60)
        runs = dict(json.loads(said.splitlines()[-1]))
        assert runs == {"background": "running", "whole": "cancelled", "stream": "cancelled"}


async def _is_running(client: httpx.AsyncClient, run_id: str) -> bool:
    found = await client.get(f"/invocations/{run_id}")
    return found.status_code == 200 and found.json()["status"] == "running"
