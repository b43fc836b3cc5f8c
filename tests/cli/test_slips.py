"""Slips in the file of a host: the one line that `frontdesk check` prints says what is wrong, where, and what to do."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from frontdesk.cli import main

_HEAD = """\
import os
from agent_framework import Agent
from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.scripted import ScriptedChatClient
async def echo(text: str) -> str: return text
def build(**settings): return AgentFrameworkHost(echo, channels=[InvocationsChannel()], **settings)
async def later(): return build()
"""
_LINE = len(_HEAD.splitlines()) + 1

SLIPS = {
    "host = later()": "slip.py:host is an object of type coroutine, not a host or a function that returns one; "
    "an async function was called without await: let a plain function build the host",
    "host = later": "Move awaits at startup to on_startup= of the host",
    "host = build().app": "it is the app of one: name the host itself",
    "def host(place): return build()": "missing a required argument: 'place'. Give its other parameters defaults",
    "def host(): build()": "host() returned an object of type NoneType, not a host; is a return missing?",
    "def build_host() -> AgentFrameworkHost: return build()": "slip.py has no 'host'; it has build_host",
    'host = build(seal_key=os.environ["NO_SUCH_KEY"])': f"slip.py:{_LINE}: the environment variable NO_SUCH_KEY "
    "is not set: export NO_SUCH_KEY=...",
    "host = build(allow_anonymus=True)": "got an unexpected keyword argument 'allow_anonymus'; "
    "did you mean 'allow_anonymous'?",
    "host = AgentFrameworkHost(echo, chanels=[InvocationsChannel()])": "unexpected keyword argument 'chanels'; "
    "did you mean 'channels'?",
    'InvocationsChannel(allowed_origin=["https://a.example"])': "'allowed_origin'; did you mean 'allowed_origins'?",
    'host = build(store="postgresql://ada:hidden@db/x")': "- store: a text or a path is no store; give state_dir= ",
    "host = AgentFrameworkHost(ScriptedChatClient([]), channels=[InvocationsChannel()])": "- target: "
    "ScriptedChatClient is a chat client. Pass an agent with it: Agent(client=..., name=...)",
    'InvocationsChannel(auth="a-key-of-16-or-more")': "(name, authenticate), such as ApiKeyAuth({...}), nor",
    'ApiKeyAuth(["a-key-of-16-or-more"])': f"slip.py:{_LINE}: TypeError: ApiKeyAuth requires a mapping of",
    "host = AgentFrameworkHost(echo, channels=[InvocationsChannel(), InvocationsChannel(name='b')])": "have the path "
    "'/invocations'; give each its own path=",
    "host = AgentFrameworkHost(echo, channels=[InvocationsChannel(allowed_origins='https://a.example')])": "- channel "
    "'invocations': allowed_origins: got one string, put it into a list: ['https://a.example']",
    "host = AgentFrameworkHost(echo, channels=[InvocationsChannel(allowed_origins=['*'])])": "no wildcard",
    "host = AgentFrameworkHost(echo, channels=[InvocationsChannel(allowlist=['ada'])])": "is not an allowlist, "
    "such as NativeIdAllowlist([...])",
}


@pytest.fixture(autouse=True)
def own_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test imports is gone after it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("slip", None)


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_told_with_what_to_do(slip: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "slip.py").write_text(_HEAD + slip + "\n")
    assert main(["check", "slip.py:host"]) == 1
    told = "".join(capsys.readouterr())
    assert SLIPS[slip] in told
    assert "hidden" not in told


def test_the_base_url_of_clients_is_what_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    channels = 'ResponsesChannel(), ResponsesChannel(name="b", path="/b"), ResponsesChannel(name="c", path="/c/v1")'
    (folder / "slip.py").write_text(f"{_HEAD}host = AgentFrameworkHost(echo, channels=[{channels}])\n")
    assert main(["check", "slip.py:host"]) == 0
    shown = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert shown == ["/v1", "/b/v1", "/c/v1"]
