"""`frontdesk move-state`: what an operator sees of it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from frontdesk.cli import main
from frontdesk.clock import SystemClock
from frontdesk.errors.base import install_hint
from frontdesk.state_dir.lock import lock_directory
from tests.cli.processes import Running, environment, frontdesk
from tests.stores.sql.moving import SESSIONS, Place, fill, read_picture

SECRET = "hunter2-and-more"


@pytest.fixture
async def state(tmp_path: Path) -> Path:
    """A state directory with everything in it."""
    directory = tmp_path / "state"
    directory.mkdir()
    await fill(Place(str(directory / "frontdesk.db")))
    return directory


def of(directory: Path) -> Place:
    return Place(str(directory / "frontdesk.db"))


def test_the_command_is_among_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    # Until Python 3.13 what is told of it is on a line of its own.
    assert re.search(r"^    move-state\s+move all state into another database$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    ("line", "named"),
    [("", "--from"), ("--from a", "--to"), ("--from a --from-env A --to b", "--from-env"), ("--to-env B", "--from")],
)
def test_wrong_usage_is_2(line: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["move-state", *line.split()])
    assert left.value.code == 2
    assert named in capsys.readouterr().err.splitlines()[-1]


async def test_a_state_directory_moves_into_postgres_and_back(state: Path, postgres: str, tmp_path: Path) -> None:
    there = frontdesk("move-state", "--from", str(state), "--to", postgres)
    assert (there.returncode, there.stderr) == (0, "")
    assert f"  sessions: {SESSIONS} of {SESSIONS}\n" in there.stdout
    assert "rows are moved. The source is as it was" in there.stdout
    assert await read_picture(Place(postgres)) == await read_picture(of(state))
    back = frontdesk("move-state", "--from", postgres, "--to", str(tmp_path / "back"))
    assert (back.returncode, back.stderr) == (0, "")
    assert await read_picture(of(tmp_path / "back")) == await read_picture(of(state))
    assert [oct((tmp_path / one).stat().st_mode)[-3:] for one in ("back", "back/frontdesk.db")] == ["700", "600"]


async def test_a_file_moves_within_its_directory(state: Path) -> None:
    ended = frontdesk("move-state", "--from", "state/frontdesk.db", "--to", "state/new.db", cwd=state.parent)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert await read_picture(Place(str(state / "new.db"))) == await read_picture(of(state))


async def test_an_address_can_come_from_the_environment(state: Path, postgres: str) -> None:
    address = make_conninfo(postgres, password=SECRET)
    ended = frontdesk("move-state", "--from", str(state), "--to-env", "STATE_URL", env={"STATE_URL": address})
    assert ended.returncode == 0, ended.stderr
    again = frontdesk("move-state", "--from", str(state), "--to-env", "STATE_URL", env={"STATE_URL": address})
    assert again.returncode == 1
    assert "is not empty: it has rows in sessions" in again.stderr
    assert SECRET not in ended.stdout + ended.stderr + again.stdout + again.stderr


@pytest.mark.parametrize(
    ("address", "told"),
    [
        (f"postgresql://ada:{SECRET}%zz@localhost/state", "not a valid libpq connection string"),
        (f"host=localhost password={SECRET} {SECRET}", "not a valid libpq connection string"),
        (f"mysql://ada:{SECRET}@localhost/state", "--to: an address of a Postgres database begins with postgresql://"),
        (f"postgresql://ada:{SECRET}@127.0.0.1:1/state", "the database state: "),
        ("", "--to-env: STATE_URL is not set"),
    ],
)
def test_a_wrong_address_is_told_without_its_password(state: Path, address: str, told: str) -> None:
    ended = frontdesk("move-state", "--from", str(state), "--to-env", "STATE_URL", env={"STATE_URL": address})
    assert ended.returncode == 1
    assert told in ended.stderr
    assert SECRET not in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("directory", ["state", "back"])
def test_a_directory_that_a_host_owns_is_refused(state: Path, directory: str) -> None:
    with lock_directory(state.parent / directory, SystemClock()):
        ended = frontdesk("move-state", "--from", "state", "--to", "back", cwd=state.parent)
    assert ended.returncode == 1
    assert f"another host uses it, process {os.getpid()} on" in ended.stderr
    assert not (state.parent / "back/frontdesk.db").exists()


HOST = """
from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel


async def echo(text: str) -> str:
    return text


def make(state_dir):
    return AgentFrameworkHost(echo, channels=[InvocationsChannel()], state_dir=state_dir)
"""


def test_the_state_of_a_host_that_runs_is_refused(state: Path) -> None:
    (state.parent / "host.py").write_text(HOST)
    with Running("serve", "host.py:make", "--state-dir", "state", "--port", "0", cwd=state.parent) as server:
        server.url()
        ended = frontdesk("move-state", "--from", "state", "--to", "new", cwd=state.parent)
        assert ended.returncode == 1
        assert f"another host uses it, process {server.process.pid} on" in ended.stderr
        assert server.stop() == 0
    assert frontdesk("move-state", "--from", "state", "--to", "new", cwd=state.parent).returncode == 0


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        ("nowhere", "new", f"--from: file {Path('nowhere/frontdesk.db')} not found"),
        ("state", "state", "--to: state/frontdesk.db is the current state"),
        ("state", "", "--to: a place is needed"),
        ("state", "state/frontdesk.lock/new", "can't be used: "),
    ],
)
def test_a_wrong_place_is_told(state: Path, source: str, target: str, told: str) -> None:
    (state / "frontdesk.lock").touch()
    ended = frontdesk("move-state", "--from", source, "--to", target, cwd=state.parent)
    assert (ended.returncode, "Traceback" in ended.stderr) == (1, False)
    assert told in ended.stderr
    assert not (state.parent / "nowhere").exists()


@pytest.mark.parametrize("kept", ["in files", "in the store", ""])
def test_where_the_checkpoints_are_is_told(state: Path, kept: str) -> None:
    if kept != "in the store":
        of(state).execute("DELETE FROM checkpoints")
    if kept == "in files":
        (state / "checkpoints").mkdir()
    ended = frontdesk("move-state", "--from", "state", "--to", "new", cwd=state.parent)
    told = {
        "in files": "The checkpoints of workflows stay in state/checkpoints: name it with checkpoint_location=.",
        "in the store": "The checkpoints of workflows are in the database: open it with store=SqliteStateStore(...).",
    }
    assert [line for line in ended.stdout.splitlines() if line.startswith("The ")] == ([told[kept]] if kept else [])


def test_without_psycopg_it_says_what_to_install(state: Path) -> None:
    code = "import sys; sys.modules['psycopg'] = None; from frontdesk.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "move-state", "--from", str(state), "--to"]
    ended = subprocess.run([*command, "postgresql:///x"], capture_output=True, text=True, env=environment())
    assert (ended.returncode, ended.stderr) == (
        1,
        f"frontdesk: Postgres needs psycopg: {install_hint('postgres')}\n",
    )
    assert subprocess.run([*command, str(state / "b.db")], env=environment(), capture_output=True).returncode == 0
