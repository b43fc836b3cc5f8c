from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.processes import Running

PARROT = """
import asyncio
import gc

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel


async def parrot(text: str):
    if text == "process":
        yield f"{gc.get_freeze_count() > 0} {gc.get_threshold()[0]} {type(asyncio.get_running_loop()).__module__}"
    elif text == "fail":
        raise RuntimeError("the secret reason")
    elif text == "steer":
        yield "\\x1b[2Jwiped\\u2028out"
    else:
        yield "you said "
        if text == "for ever":
            await asyncio.Event().wait()
        yield text


def make():
    locked = InvocationsChannel(name="locked", path="/locked", auth=ApiKeyAuth({"ada": "a-key-that-is-long"}))
    return AgentFrameworkHost(parrot, channels=[InvocationsChannel(), locked])
"""


@pytest.fixture(scope="session")
def parrot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A host of the user's, in a file, served by `frontdesk serve`."""
    folder = tmp_path_factory.mktemp("parrot")
    (folder / "parrot.py").write_text(PARROT)
    with Running("serve", "parrot:make", "--port", "0", cwd=folder) as server:
        server.url()
        yield server


@pytest.fixture(scope="session")
def demo() -> Iterator[Running]:
    """The demo, served by `frontdesk demo`."""
    with Running("demo", "--port", "0") as server:
        server.url()
        yield server


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
