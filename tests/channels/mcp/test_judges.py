"""Judges that others wrote: the conformance suites of the protocol in two versions, and the inspector."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from frontdesk_testing import HostClient, serving
from tests.channels.mcp.conformance_host import build_host
from tests.node_program import INSTALLED, node_with

NODE = node_with("@modelcontextprotocol/conformance", "MCP with")
OLD = INSTALLED / "@modelcontextprotocol/conformance/dist/index.js"
NEXT = INSTALLED / "conformance-next/dist/index.js"
EXPECTED = Path(__file__).with_name("expected_failures.json")
_SUMMARY = re.compile(r"^([✓✗]) ([\w-]+): (\d+) passed, (\d+) failed$", re.MULTILINE)


@pytest.fixture
async def served() -> AsyncIterator[HostClient]:
    async with serving(build_host(), raise_errors=False) as client:
        yield client


async def run_node(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        NODE, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    return output.decode()


def failed_in(output: str) -> dict[str, int]:
    """Return the scenarios that failed, with the number of their failed checks."""
    found = _SUMMARY.findall(output)
    assert found, output
    return {name: int(failed) for _, name, _, failed in found if int(failed)}


def expected(version: str) -> Mapping[str, int]:
    listed: dict[str, Any] = json.loads(EXPECTED.read_text())
    return {name: one["failed"] for name, one in listed[version].items()}


def test_every_expected_failure_has_a_reason() -> None:
    listed: dict[str, Any] = json.loads(EXPECTED.read_text())
    assert all(one["reason"].endswith(".") for version in listed.values() for one in version.values())


@pytest.mark.timeout(280)
async def test_the_suite_of_the_older_versions_fails_where_it_is_expected_to(served: HostClient) -> None:
    output = await run_node(str(OLD), "server", "--url", f"{served.base_url}/mcp")
    assert failed_in(output) == expected("0.1.16")


@pytest.mark.timeout(280)
async def test_the_suite_of_2026_07_28_fails_where_it_is_expected_to(served: HostClient) -> None:
    url = f"{served.base_url}/mcp"
    output = await run_node(str(NEXT), "server", "--requirements", "2026-07-28", "--url", url, "--timeout", "120000")
    assert failed_in(output) == expected("0.2.0-alpha.12")


async def inspect(url: str, *arguments: str) -> Any:
    package = INSTALLED / "@modelcontextprotocol/inspector"
    program = json.loads((package / "package.json").read_text())["bin"]["mcp-inspector"]
    output = await run_node(str(package / program), "--cli", url, "--transport", "http", *arguments)
    # A warning about the version of Node may follow.
    found, _ = json.JSONDecoder().raw_decode(output[output.index("{") :])
    return found


async def test_the_inspector_lists_and_calls_tools(served: HostClient) -> None:
    url = f"{served.base_url}/mcp"
    listed = await inspect(url, "--method", "tools/list")
    assert "greet" in [tool["name"] for tool in listed["tools"]]
    result = await inspect(url, "--method", "tools/call", "--tool-name", "greet", "--tool-arg", "name=Ada")
    assert result["content"] == [{"type": "text", "text": "Hello, Ada!"}]
