"""A fuzzer that we did not write reads a document of the routes and calls a live server."""

import asyncio
import json
import logging
import os
import sys
from pathlib import Path

import pytest
from agent_framework import tool

from frontdesk import ApiKeyAuth
from frontdesk.channels.responses import ResponsesChannel
from tests.channels.responses.openapi import document
from tests.examples import examples
from tests.scenarios.cast import build_scripted, call
from tests.scenarios.desk import InvocationsHost, open_client

# It draws examples until it has enough, and other processes may use the same cores.
pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[3]
KEY = "the-key-of-the-fuzzer"


# Those that hold for every chain of calls, whatever the ids in it are this time.
SURE = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,use_after_free"


async def _fuzz(desk: InvocationsHost, tmp_path: Path, *options: str) -> tuple[int, str]:
    described = tmp_path / "openapi.json"
    described.write_text(json.dumps(document()))
    command = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"]
    address = ["--url", f"http://127.0.0.1:{desk.port}/v1"]
    bounds = ["--seed", "3", "--generation-database", "none", "--no-color", "--workers", "1"]
    count = ["--max-examples", str(examples(10).max_examples)]
    process = await asyncio.create_subprocess_exec(
        *command,
        str(described),
        *address,
        *bounds,
        *count,
        *options,
        cwd=tmp_path,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.channels.responses.fuzz_hooks", "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


def _unheard(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [one for one in caplog.records if one.name.startswith("frontdesk") and one.levelno >= logging.ERROR]
    return [one.getMessage() for one in found]


async def test_the_server_keeps_what_its_document_promises(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Every check, on the edges of the schema and on random bodies."""
    agent = build_scripted(lambda messages: ['{"heard": ', "true}"])
    async with open_client(agent, channels=[ResponsesChannel()], max_background_runs_per_caller=100) as desk:
        status, said = await _fuzz(desk, tmp_path, "--phases", "examples,coverage,fuzzing")
        assert status == 0, said
        assert len(desk.runs()) > 10
        assert not desk.active
    assert not _unheard(caplog)


async def test_chains_of_calls_with_a_key_and_a_tool_that_asks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Made, then read, listed, cancelled and deleted, in any order."""

    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pays."""
        return f"paid {amount}"

    agent = build_scripted(lambda messages: [call("pay", amount=1)] if len(messages) % 2 else ["{}"], tools=[pay])
    channel = ResponsesChannel(auth=ApiKeyAuth({"fuzzer": KEY}), host_tools="full")
    async with open_client(agent, channels=[channel], max_background_runs_per_caller=100) as desk:
        key = ["-H", f"Authorization: Bearer {KEY}"]
        status, said = await _fuzz(desk, tmp_path, "--phases", "fuzzing,stateful", "--checks", SURE, *key)
        assert status == 0, said
        assert desk.ledger.kept_approvals
        assert not desk.active
    assert not _unheard(caplog)
