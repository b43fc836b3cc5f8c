"""A fuzzer that we did not write reads the OpenAPI document and calls a live server."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from agent_framework import tool

from frontdesk import ApiKeyAuth, ChannelRequest
from frontdesk.channels.invocations import InvocationsChannel
from tests.examples import examples
from tests.scenarios.cast import build_scripted, call
from tests.scenarios.desk import InvocationsHost, open_client

# It draws examples until it has enough, and other processes may use the same cores.
pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[3]
KEY = "the-key-of-the-fuzzer"


def _any_input(request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
    return request if isinstance(request.input, str) else request.replace(input=str(request.input))


async def _fuzz(desk: InvocationsHost, tmp_path: Path, *options: str) -> tuple[int, str]:
    """The edges of the schema and random bodies, with every check; the same calls each time."""
    command = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"]
    address = f"http://127.0.0.1:{desk.port}/invocations/docs/openapi.json"
    # Chains of calls are left out: what they send depends on ids and times that are new at each run.
    phases = ["--phases", "examples,coverage,fuzzing"]
    bounds = ["--seed", "2", "--generation-database", "none", "--no-color", "--workers", "1"]
    count = ["--max-examples", str(examples(10).max_examples)]
    process = await asyncio.create_subprocess_exec(
        *command,
        address,
        *phases,
        *bounds,
        *count,
        *options,
        cwd=tmp_path,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.channels.invocations.fuzz_hooks", "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


async def test_the_server_keeps_what_its_document_promises(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    agent = build_scripted(lambda messages: ["you said ", messages[-1].text])
    async with open_client(agent, InvocationsChannel(run_hook=_any_input), max_background_runs_per_caller=100) as desk:
        status, said = await _fuzz(desk, tmp_path)
        assert status == 0, said
        assert len(desk.runs()) > 5
        assert not desk.active
    assert not [record for record in caplog.records if record.name.startswith("frontdesk") and record.levelno >= 40]


async def test_the_same_behind_a_lock(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pays."""
        return f"paid {amount}"

    agent = build_scripted(lambda messages: [call("pay", amount=1)] if len(messages) % 2 else ["done"], tools=[pay])
    channel = InvocationsChannel(auth=ApiKeyAuth({"fuzzer": KEY}), run_hook=_any_input, tool_calls="show")
    async with open_client(agent, channel, max_background_runs_per_caller=100) as desk:
        status, said = await _fuzz(desk, tmp_path, "-H", f"Authorization: Bearer {KEY}")
        assert status == 0, said
        assert desk.runs()
        assert not desk.active
    assert not [record for record in caplog.records if record.name.startswith("frontdesk") and record.levelno >= 40]
