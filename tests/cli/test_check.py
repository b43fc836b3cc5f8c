"""`frontdesk check`: finds the host, and all that is wrong with it."""

import os
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from frontdesk.cli import main
from tests.cli.processes import frontdesk

GOOD = """
from functools import partial

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel


async def echo(text: str) -> str:
    return text


host = AgentFrameworkHost(
    echo,
    channels=[
        InvocationsChannel(),
        InvocationsChannel(name="locked", path="", auth=ApiKeyAuth({"ada": "a-key-that-is-long"})),
    ],
)
nothing = None


def make():
    return host


def make_one_of(kind):
    return host


def make_in(state_dir):
    return AgentFrameworkHost(echo, channels=[InvocationsChannel()], state_dir={"links": state_dir})


def make_text():
    return "host"


def make_none_of_it():
    raise RuntimeError("no\\nluck")


half_made = partial(make_one_of, "this")
"""

BROKEN = """
from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel

host = AgentFrameworkHost(
    42,
    channels=[InvocationsChannel(), InvocationsChannel(max_body_bytes=0, path="no-slash")],
    session_wait_seconds=-1,
)
"""

FINDINGS = ["session_wait_seconds", "'invocations'; give each", "'no-slash'", "max_body_bytes", "target: int"]

WARNED = """
from itertools import count

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler
from typing_extensions import Never

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel


class Upper(Executor):
    @handler
    async def go(self, text: str, context: WorkflowContext[Never, str]) -> None:
        await context.yield_output(text.upper())


def build():
    return WorkflowBuilder(name="upper", start_executor=Upper(id=f"upper-{next(numbers)}"), output_from="all").build()


numbers = count()
host = AgentFrameworkHost(build, channels=[InvocationsChannel()])
"""


FOREIGN = """
from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.interfaces.context import ChecksOnline
from pluggy import HookimplMarker


class Foreign(InvocationsChannel, ChecksOnline):
    async def check_online(self):
        return ["the key is not valid"] if self.path == "/wrong" else []


class Packaged(Foreign):
    __module__ = HookimplMarker.__module__


async def echo(text: str) -> str:
    return text


def made(path):
    return AgentFrameworkHost(echo, channels=[Foreign(path=path), Packaged(name="packaged", path="/packaged")])


good, wrong = made("/good"), made("/wrong")
"""


REMEMBERS = """
from agent_framework import Agent, HistoryProvider

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.scripted import ScriptedChatClient


class Diary(HistoryProvider):
    async def get_messages(self, session_id, **_):
        return []

    async def save_messages(self, session_id, messages, **_):
        pass


agent = Agent(ScriptedChatClient([]), name="clerk", context_providers=[Diary("diary")])
host = AgentFrameworkHost(agent, channels=[InvocationsChannel()])
"""


@pytest.fixture(autouse=True)
def own_modules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test imports is gone after it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    (folder / "good.py").write_text(GOOD)
    yield
    for name in set(sys.modules) - known:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(folder):
            del sys.modules[name]


@pytest.mark.parametrize("reference", ["good:host", "good:make", "good:half_made", "good.py:host", "./good.py:make"])
def test_a_good_host_is_all_good(reference: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", reference]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{reference}: all good",
        "target: echo (function)",
        "channels:",
        "  invocations  /invocations  no auth: it answers this machine only",
        "  locked       /             auth: api_key",
        "runtime mode: long_running",
    ]


def test_a_file_elsewhere_finds_its_neighbours(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "neighbour.py").write_text("from good import make")
    (folder / "deep" / "json.py").write_text("from neighbour import make")
    assert main(["check", "deep/json.py:make"]) == 0
    assert "all good" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("gone:host", "module 'gone' not found, neither in {folder} nor installed"),
        ("good.gone:host", "module 'good.gone' not found"),
        ("gone/app.py:host", "file 'gone/app.py' not found"),
        ("good:hots", "good has no 'hots'; it has host"),
        ("good:nothing", "good:nothing is an object of type NoneType, not a host"),
        ("good:AgentFrameworkHost", "is the class AgentFrameworkHost, not a host"),
        ("good:echo", "good:echo is an async function"),
        ("good:make_one_of", "cannot call good:make_one_of() without arguments: missing a required argument"),
        ("good:make_text", "good:make_text() returned an object of type str, not a host"),
        ("good:make_none_of_it", "good.py:39: RuntimeError: no luck"),
    ],
)
def test_a_wrong_name_is_told_in_one_line(
    reference: str, told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", reference]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("frontdesk: ")
    assert told.format(folder=folder) in line


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import good\nimport not_there\n", "bad.py:2: ModuleNotFoundError: No module named 'not_there'"),
        ("from good import not_there\n", "bad.py:1: ImportError: cannot import name 'not_there' from 'good'"),
        ("x = (\n", "bad.py:1: SyntaxError: '(' was never closed"),
        ("import ast\n\nast.parse('x = (')\n", "bad.py:3: SyntaxError: '(' was never closed"),
        ("import sys\n\nsys.exit('not today')\n", "bad.py:3: SystemExit: not today"),
        ("\n\nassert False\n", "bad.py:3: AssertionError"),
        (
            "from frontdesk import ApiKeyAuth\n\nkeys = ApiKeyAuth({'ada': 'short'})\n",
            "bad.py:3: ValueError: ApiKeyAuth: a key of principal 1 of 1 is shorter than 16 characters",
        ),
    ],
)
@pytest.mark.parametrize("reference", ["bad:host", "bad.py:host"])
def test_a_module_that_fails_is_told_with_file_and_line(
    reference: str, source: str, told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.py").write_text(source)
    assert main(["check", reference]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"frontdesk: {reference}: {told}")


def test_every_finding_is_told_and_serve_tells_the_same(folder: Path) -> None:
    (folder / "broken.py").write_text(BROKEN)
    checked = frontdesk("check", "broken:host", cwd=folder)
    served = frontdesk("serve", "broken:host", cwd=folder)
    assert (checked.returncode, checked.stderr) == (1, "")
    assert (served.returncode, served.stdout) == (1, "")
    head, *findings = checked.stdout.splitlines()
    assert head == f"broken:host: {len(FINDINGS)} findings"
    assert all(any(word in finding for finding in findings) for word in FINDINGS)
    assert served.stderr.removeprefix("frontdesk: ") == checked.stdout


def test_a_warning_is_told_and_is_no_failure(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "warned.py").write_text(WARNED)
    assert main(["check", "warned:host"]) == 0
    warnings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 1


HISTORY = """
from agent_framework import Agent

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent

agent = AgentFrameworkHost(Agent(ScriptedChatClient([]), name="clerk"), channels=[InvocationsChannel()])
duck = AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel()])
let = AgentFrameworkHost(EchoAgent(), history="agent", channels=[InvocationsChannel()])
"""


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("agent", "history: the host keeps it, by a context provider inside the agent"),
        ("duck", "history: the host keeps it, and sends all of it with each turn"),
        ("let", "history: the agent keeps it in its session, and is sent only what is new"),
    ],
)
def test_who_keeps_the_history_is_told(name: str, told: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "keeping.py").write_text(HISTORY)
    assert main(["check", f"keeping:{name}"]) == 0
    assert told in capsys.readouterr().out.splitlines()


def test_the_demo_is_all_good() -> None:
    ended = frontdesk("check", "frontdesk.demo:build_host")
    assert ended.returncode == 0
    assert "target: Concierge (agent)" in ended.stdout


def test_a_state_directory_is_handed_to_a_function_that_takes_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "good:make_in", "--state-dir", "there"]) == 0
    assert "warning: state_dir: links has no effect" in capsys.readouterr().out
    assert not (folder / "there").exists()


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("good:host", "--state-dir: good:host is an already configured host"),
        ("good:make", "cannot call good:make() with nothing but state_dir, for --state-dir: "),
        ("good:make_one_of", "cannot call good:make_one_of() with nothing but state_dir, for --state-dir: "),
    ],
)
@pytest.mark.parametrize("command", ["check", "serve"])
def test_a_state_directory_that_nobody_takes_is_a_mistake(
    command: str, reference: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, reference, "--state-dir", "there"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"frontdesk: {told}")


def test_a_history_of_the_users_own_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "remembers.py").write_text(REMEMBERS)
    assert main(["check", "remembers:host"]) == 0
    [warning] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
    assert "not committed with the rest of a turn" in warning


@pytest.mark.parametrize("how", ["raise ValueError(SAID)", "raise ChannelConfigurationError([SAID])"])
def test_what_is_told_of_a_broken_host_holds_no_secret(how: str, tmp_path: Path) -> None:
    said = "postgresql://ada:hunter2-and-more@db/x is not there; Authorization: Bearer abcdefghijklmnopqrst"
    lines = ["from frontdesk import ChannelConfigurationError", f"SAID = {said!r}", how, "host = None"]
    (tmp_path / "broken.py").write_text("\n".join(lines))
    ended = frontdesk("check", "broken.py:host", cwd=tmp_path)
    told = ended.stdout + ended.stderr
    assert ended.returncode == 1
    assert "@db/x is not there" in told
    assert "hunter2" not in told
    assert "abcdefghij" not in told


def test_channels_of_others_are_named_with_their_package(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "foreign.py").write_text(FOREIGN)
    assert main(["check", "foreign:good"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index("channels of other packages:") + 1 :] == [
        "  invocations  Foreign of foreign, which is of no installed package",
        f"  packaged  Packaged of pluggy {version('pluggy')}",
    ]


@pytest.mark.parametrize(
    ("name", "code", "shown"),
    [
        ("good", 0, ["  invocations  ok", "  packaged  ok"]),
        (
            "wrong",
            1,
            ["  invocations  wrong", "  packaged  ok", "wrong: channel 'invocations': the key is not valid"],
        ),
    ],
)
def test_platforms_are_asked_only_if_that_is_wanted(
    name: str, code: int, shown: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "foreign.py").write_text(FOREIGN)
    assert main(["check", f"foreign:{name}"]) == 0
    assert "platforms:" not in capsys.readouterr().out
    assert main(["check", f"foreign:{name}", "--online"]) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index("platforms:") + 1 :] == shown


IN_PLACE = """
from agent_framework import Agent

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.scripted import ScriptedChatClient


def make(state_dir):
    return AgentFrameworkHost(Agent(ScriptedChatClient([])), channels=[InvocationsChannel()], state_dir=state_dir)
"""


def test_a_place_that_can_not_be_written_is_told_and_nothing_is_made(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "placed.py").write_text(IN_PLACE)
    (folder / "file").write_text("")
    assert main(["check", "placed:make", "--state-dir", "file/state"]) == 1
    told = f"state: {folder}/file/state can't be written: {folder}/file is not a directory"
    assert told in capsys.readouterr().out
    (folder / "closed").mkdir()
    # The superuser, whom most test machines run as, may write anywhere.
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place).name != "closed")
    assert main(["check", "placed:make", "--state-dir", "closed/state"]) == 1
    told = f"state: {folder}/closed/state can't be written: this process may not write in {folder}/closed"
    assert told in capsys.readouterr().out
    assert main(["check", "placed:make", "--state-dir", "new/state"]) == 0
    assert not (folder / "new").exists()


def test_an_agent_without_a_name_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "placed.py").write_text(IN_PLACE)
    assert main(["check", "placed:make", "--state-dir", "new"]) == 0
    assert "warning: target: the agent has no name" in capsys.readouterr().out
