"""Runs the commands of the page about hosting an agent in Foundry."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/guides/foundry.md"
FILES = ROOT / "docs/examples/foundry"
_BIN = str(Path(sys.executable).parent)


def commands(heading: str) -> list[str]:
    """Return the commands below a heading of the page, each as it is typed."""
    section = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    (text,) = [part for part in section if part.startswith(heading)]
    return re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def _environment(home: Path, more: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FOUNDRY_", "AZURE_"))}
    return {**kept, "HOME": str(home), "PATH": f"{_BIN}{os.pathsep}{os.environ['PATH']}", **more}


@asynccontextmanager
async def start_program(
    command: str, home: Path, where: Path = ROOT, environment: Mapping[str, str] | None = None
) -> AsyncIterator[str]:
    """Run a command that serves, and stop it by SIGTERM; the address is that which it prints."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", f"exec env {command}"),
        cwd=where,
        env=_environment(home, environment or {}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    printed: list[str] = []
    try:
        async with asyncio.timeout(60):
            while "Ctrl-C" not in "".join(printed[-1:]):
                line = (await process.stdout.readline()).decode()
                assert line, "".join(printed)
                printed.append(line)
        found = re.search(r"served at (http://\S+)", "".join(printed))
        assert found is not None, printed
        yield found.group(1)
    finally:
        if process.returncode is None:
            process.terminate()
        # What it still prints must not fill the pipe.
        await asyncio.wait_for(process.communicate(), 60)


async def output(command: str, home: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command, and return what it prints."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", command), cwd=ROOT, env=_environment(home, environment or {}), stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, printed
    return printed.decode()


async def answer(command: str, base: str, home: Path) -> dict[str, Any]:
    """Send what a curl line sends, to the address of a test."""
    sent = re.sub(r"http://127\.0\.0\.1:\d+", base, command)
    assert sent != command
    return json.loads(await output(sent, home))
