"""A process is killed while the call of an MCP tool waits for a colleague, who answers at another process."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.channels.mcp.clients import ERAS, connect, modern, send, with_tasks
from tests.faults.ports import free_port, is_ready
from tests.forked import fork
from tests.scenarios.desk import until


@asynccontextmanager
async def _host(root: Path, dsn: str) -> AsyncIterator[tuple[Any, httpx.AsyncClient]]:
    port = free_port()
    settings = json.dumps({"port": port, "root": str(root), "dsn": dsn})
    process = await fork("tests.faults.mcp_host:main", settings)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            await until(lambda: is_ready(client))
            yield process, client
    finally:
        process.kill()
        await process.wait()


def _url(client: httpx.AsyncClient) -> str:
    return str(client.base_url).rstrip("/")


async def _approve(client: httpx.AsyncClient, question: str) -> None:
    assert (await client.post(f"/pager/vote/{question}/bob/yes")).json()["outcome"] == "recorded"


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_outlives_its_process_and_runs_its_tool_once(era: str, postgres: str, tmp_path: Path) -> None:
    async with _host(tmp_path, postgres) as (process, first), _host(tmp_path, postgres) as (_, second):
        async with connect(_url(first), era) as client:
            result = await client.call_tool("payer", {"message": "pay"})
            (question,) = result.structured_content["questions"]
            assert question["waits_for"] == ["bob"]
            session = result.structured_content["session"]
            process.kill()
            await process.wait()
        await _approve(second, question["id"])
        async with connect(_url(second), era) as client:
            resumed = await client.call_tool("payer", {"message": "", "session": session})
            assert resumed.structured_content["text"] == "done"
            again = await client.call_tool("payer", {"message": "", "session": session})
            assert again.structured_content["run_id"] == resumed.structured_content["run_id"]
    assert (tmp_path / "paid").read_text() == "5\n"


async def test_a_task_outlives_its_process(postgres: str, tmp_path: Path) -> None:
    async def get(client: httpx.AsyncClient, task_id: str) -> dict[str, Any]:
        body = modern("tasks/get", {"taskId": task_id}, **with_tasks(elicitation={}))
        return (await send(client, body)).json()["result"]

    async with _host(tmp_path, postgres) as (process, first), _host(tmp_path, postgres) as (_, second):
        params = {"name": "payer", "arguments": {"message": "pay"}}
        answer = await send(first, modern("tools/call", params, **with_tasks(elicitation={})))
        result = answer.json()["result"]
        (question,) = result["structuredContent"]["questions"]
        task_id = result["structuredContent"]["run_id"]
        waiting = await get(second, task_id)
        assert (waiting["status"], waiting["statusMessage"]) == ("working", "Waits for bob.")
        process.kill()
        await process.wait()
        await _approve(second, question["id"])

        async def is_completed() -> bool:
            return (await get(second, task_id))["status"] == "completed"

        await until(is_completed)
        done = await get(second, task_id)
        assert done["result"]["structuredContent"]["text"] == "done"
    assert (tmp_path / "paid").read_text() == "5\n"
