"""The guide about MCP: its configuration of a desktop client starts, and its client is answered."""

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from frontdesk_testing import serving
from tests.channels.mcp.clients import answering
from tests.docs.pages import ROOT, blocks
from tests.docs.running import module_of

GUIDE = ROOT / "docs/guides/mcp.md"
EXAMPLE = ROOT / "docs/examples/mcp_host.py"


def _example() -> Any:
    return module_of("mcp_host", compile(EXAMPLE.read_text("utf-8"), str(EXAMPLE), "exec"))["host"]


def _configured() -> list[dict[str, Any]]:
    found = [json.loads(block.text) for block in blocks("json") if block.page == GUIDE]
    return [one["mcpServers"]["concierge"] for one in found]


async def _ask(arguments: list[str], place: Path, env: dict[str, str]) -> str:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "frontdesk.cli", *arguments], cwd=place, env={**os.environ, **env}
    )
    yes = answering(approved=True)
    async with Client(stdio_client(parameters), elicitation_callback=yes) as client:
        result = await client.call_tool("Concierge", {"message": "a table, please"})
    assert len(yes.messages) == 1
    return result.structured_content["text"]


async def test_the_configurations_of_a_desktop_client_start(tmp_path: Path) -> None:
    own, running = _configured()
    assert own["command"] == running["command"] == "frontdesk"
    arguments = [word.replace("/home/ada/hotel/mcp_host.py", str(EXAMPLE)) for word in own["args"]]
    assert await _ask(arguments, tmp_path, {}) == "Done. See you tonight."
    async with serving(_example()) as served:
        arguments = [word.replace("https://desk.example", served.base_url) for word in running["args"]]
        assert await _ask(arguments, tmp_path, running["env"]) == "Done. See you tonight."


async def test_the_client_of_the_guide_is_answered() -> None:
    (block,) = (block for block in blocks("python", calling=True) if block.page == GUIDE)
    async with serving(_example()) as served:
        text = block.text.replace("http://127.0.0.1:8000", served.base_url).replace("asyncio.run(main())", "")
        space = module_of(str(block), compile(text, str(block), "exec"))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            await space["main"]()
    assert printed.getvalue() == "You said: Good day\n"
