"""Writes a project for each kind of model, and asks its host, with the framework's client, over a local server.

`make providers` runs it in an environment that has the framework's clients.
"""

import asyncio
import contextlib
import importlib.util
import io
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from frontdesk.cli import main
from frontdesk_testing import serving, serving_app
from tests.providers.servers import model_servers


def settings(url: str) -> Mapping[str, tuple[str, dict[str, str]]]:
    """Return who should answer for each kind of model, and the environment that leads there."""
    return {
        "openai": ("OpenAI", {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "a-key", "OPENAI_CHAT_MODEL": "m"}),
        "azure": (
            "Azure",
            {
                "AZURE_OPENAI_ENDPOINT": f"{url}/azure",
                "AZURE_OPENAI_API_KEY": "a-key",
                "AZURE_OPENAI_CHAT_MODEL": "m",
            },
        ),
        "anthropic": (
            "Anthropic",
            {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "a-key", "ANTHROPIC_CHAT_MODEL": "m"},
        ),
        "ollama": ("Ollama", {"OLLAMA_HOST": url, "OLLAMA_MODEL": "m"}),
        "compatible": (
            "Compatible",
            {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "any", "OPENAI_CHAT_COMPLETION_MODEL": "m"},
        ),
    }


async def ask(model: str, environment: Mapping[str, str], directory: Path) -> str:
    """Return the answer of the host that `frontdesk init` has written, which is the same as a stream."""
    place = directory / model
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["init", str(place), "--model", model, "--channels", "invocations"]) == 0
    spec = importlib.util.spec_from_file_location(f"project_{model}", place / "host.py")
    assert spec is not None
    assert spec.loader is not None
    project = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(project)
    os.environ.update(environment)
    try:
        async with serving(project.build_host(state_dir=place / "state")) as client:
            whole = (await client.invoke("good day"))["text"]
            events = [event async for event in client.stream("good day")]
            assert events[-1].json()["text"] == whole, "a stream has another answer"
            assert len(events) > len(whole.split()), "the answer has come in one piece"
            return whole
    finally:
        for name in environment:
            del os.environ[name]


async def ask_all() -> int:
    """Ask every kind; return 1 if one has answered otherwise than it should."""
    wrong = 0
    with tempfile.TemporaryDirectory() as directory:
        async with serving_app(model_servers()) as served:
            for model, (name, environment) in settings(served.base_url).items():
                said = await ask(model, environment, Path(directory))
                wrong += said != f"{name} heard good day"
                print(f"{model}: {said}")
    return 1 if wrong else 0


if __name__ == "__main__":
    # A proxy of the machine would stand between the clients and the local servers.
    os.environ["NO_PROXY"] = "127.0.0.1"
    sys.exit(asyncio.run(ask_all()))
