"""`frontdesk mcp` with the client of the SDK over stdio: a host of its own, and one that runs."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.mcp import MCPChannel
from frontdesk.cli import main
from frontdesk_testing import serving
from tests.channels.mcp.clients import ERAS, MODERN, answering
from tests.channels.mcp.test_questions import PAY
from tests.scenarios.cast import echo
from tests.scenarios.desk import until
from tests.scenarios.messages.test_buttons import Bank

KEYS = {"ada": "the-key-of-ada-is-long", "bob": "the-key-of-bob-is-long"}
HOST = """
import sys
from frontdesk import AgentFrameworkHost
from frontdesk.channels.mcp import MCPChannel

print("a line of the module")


async def echo(text: str) -> str:
    print("a line of the target")
    return f"you said {text}"


def build(state_dir=None):
    return AgentFrameworkHost(echo, channels=[MCPChannel()], state_dir=state_dir)


host = build()
"""


@asynccontextmanager
async def over_stdio(
    arguments: Sequence[str], place: Path, era: str, env: dict[str, str] | None = None, **options: Any
) -> AsyncIterator[Any]:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "frontdesk.cli", "mcp", *arguments],
        cwd=place,
        env={**os.environ, **(env or {})},
    )
    async with Client(stdio_client(parameters), mode=era, **options) as client:  # type: ignore[arg-type]
        yield client


@pytest.mark.parametrize("era", ERAS)
async def test_a_host_of_its_own_keeps_its_state(era: str, tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(HOST)
    arguments = ["desk:build", "--state-dir", "state"]
    async with over_stdio(arguments, tmp_path, era) as client:
        first = await client.call_tool("echo", {"message": "hi"})
        assert first.structured_content["text"] == "you said hi"
        session = first.structured_content["session"]
    async with over_stdio(arguments, tmp_path, era) as client:
        again = await client.call_tool("echo", {"message": "", "session": session})
        assert again.structured_content["text"] == "you said hi"


@pytest.mark.parametrize("era", ERAS)
async def test_a_running_host_is_called_as_the_owner_of_the_key(era: str, tmp_path: Path) -> None:
    host = AgentFrameworkHost(echo, channels=[MCPChannel(auth=ApiKeyAuth(KEYS))])
    async with serving(host) as served:
        arguments = ["--url", f"{served.base_url}/mcp", "--key-env", "DESK_KEY"]
        async with over_stdio(arguments, tmp_path, era, {"DESK_KEY": KEYS["ada"]}) as client:
            result = await client.call_tool("echo", {"message": "hi"})
            assert result.structured_content["text"] == "you said hi"
            session = result.structured_content["session"]
        async with over_stdio(arguments, tmp_path, era, {"DESK_KEY": KEYS["bob"]}) as other:
            nothing = await other.call_tool("echo", {"message": "", "session": session})
            assert nothing.structured_content["code"] == "not_found"

        async def has_no_session() -> bool:
            return len(host.channels[0].server.sessions) == 0  # type: ignore[attr-defined]

        await until(has_no_session)


@pytest.mark.parametrize("era", ERAS)
async def test_questions_and_progress_pass_through_the_forwarder(era: str, tmp_path: Path) -> None:
    bank, seen = Bank(), list[str | None]()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(message)

    host = AgentFrameworkHost(bank.agent(PAY, ["done"]), channels=[MCPChannel()])
    yes = answering(approved=True)
    async with (
        serving(host) as served,
        over_stdio(["--url", served.base_url], tmp_path, era, elicitation_callback=yes) as client,
    ):
        result = await client.call_tool("Concierge", {"message": "pay"}, progress_callback=on_progress)
    assert result.structured_content["text"] == "done"
    assert bank.paid == [5]
    assert "Calling pay" in seen


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_of_the_forwarder_cancels_the_run(era: str, tmp_path: Path) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def slow(text: str) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return text

    host = AgentFrameworkHost(slow, channels=[MCPChannel()])
    async with serving(host) as served, over_stdio(["--url", served.base_url], tmp_path, era) as client:
        task = asyncio.create_task(client.call_tool("slow", {"message": "hi"}))
        await started.wait()
        task.cancel()
        await asyncio.wait([task])
        await asyncio.wait_for(ended.wait(), 60)


async def test_a_host_that_refuses_or_is_away_is_an_error_of_the_call(tmp_path: Path) -> None:
    host = AgentFrameworkHost(echo, channels=[MCPChannel(auth=ApiKeyAuth(KEYS))])
    async with serving(host) as served:
        async with over_stdio(["--url", served.base_url], tmp_path, MODERN) as client:
            with pytest.raises(MCPError, match="credentials"):
                await client.call_tool("echo", {"message": "hi"})
        url = served.base_url
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "frontdesk.cli", "mcp", "--url", url),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    lines = b'{"jsonrpc":"2.0","id":"a","method":"ping"}\nnot json\n{"jsonrpc":"2.0","method":"notifications/x"}\n'
    output, _ = await process.communicate(lines)
    answers = {line["id"]: line["error"] for line in map(json.loads, output.splitlines())}
    assert "can't be reached" in answers["a"]["message"]
    assert answers[None]["code"] == -32700
    assert len(answers) == 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "give a host (module:host) or --url URL"),
        (["desk:host", "--url", "http://127.0.0.1:1/mcp"], "and not both"),
        (["--url", "http://127.0.0.1:1", "--key-env", "NOT_SET"], "NOT_SET is not set"),
        (["desk:host", "--key-env", "NAME"], "--key-env is for --url"),
        (["desk:plain"], "the host has no such MCPChannel"),
        (["desk:two"], "choose one of one, two with --channel"),
    ],
)
def test_wrong_usage_is_explained(
    arguments: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    more = (
        "from frontdesk.channels.invocations import InvocationsChannel\n"
        "plain = AgentFrameworkHost(echo, channels=[InvocationsChannel()])\n"
        "several = [MCPChannel(name=name, path='/' + name) for name in ('one', 'two')]\n"
        "two = AgentFrameworkHost(echo, channels=several)\n"
    )
    (tmp_path / "desk.py").write_text(HOST + more)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "desk", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["mcp", *arguments]) == 1
    assert text in capsys.readouterr().err
