"""A fuzzer that we did not write reads a document of the routes and calls a live server."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from agent_framework import tool

from frontdesk import ApiKeyAuth
from frontdesk.channels.responses import ResponsesChannel
from tests.channels.responses.openapi import document
from tests.scenarios.cast import call, scripted
from tests.scenarios.desk import Desk, open_desk

ROOT = Path(__file__).parents[3]
KEY = "the-key-of-the-fuzzer"


async def _fuzz(desk: Desk, tmp_path: Path, *options: str) -> tuple[int, str]:
    """Examples, edges of the schema, random bodies, and chains of calls."""
    described = tmp_path / "openapi.json"
    described.write_text(json.dumps(document()))
    command = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"]
    bounds = ["--seed", os.environ.get("SEED","2"), "--max-examples", os.environ.get("N","30"), "--generation-database", "none", "--no-color", "--workers", "1"]
    process = await asyncio.create_subprocess_exec(
        *command,
        str(described),
        "--url",
        f"http://127.0.0.1:{desk.port}/v1",
        *bounds,
        *options,
        cwd=tmp_path,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.channels.responses.fuzz_hooks", "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


async def test_the_server_keeps_what_its_document_promises(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    agent = scripted(lambda messages: ["you said ", messages[-1].text])
    async with open_desk(agent, channels=[ResponsesChannel()], max_background_runs_per_caller=100) as desk:
        status, said = await _fuzz(desk, tmp_path)
        assert status == 0, said
        assert len(desk.runs()) > 30
        assert not desk.active
    assert not [record for record in caplog.records if record.name.startswith("frontdesk") and record.levelno >= 40]


async def test_the_same_behind_a_lock_with_a_tool_that_asks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pays."""
        return f"paid {amount}"

    agent = scripted(lambda messages: [call("pay", amount=1)] if len(messages) % 2 else ["done"], tools=[pay])
    channel = ResponsesChannel(auth=ApiKeyAuth({"fuzzer": KEY}), host_tools="full")
    async with open_desk(agent, channels=[channel], max_background_runs_per_caller=100) as desk:
        status, said = await _fuzz(desk, tmp_path, "-H", f"Authorization: Bearer {KEY}")
        assert status == 0, said
        assert desk.ledger.kept_approvals
        assert not desk.active
    assert not [record for record in caplog.records if record.name.startswith("frontdesk") and record.levelno >= 40]
