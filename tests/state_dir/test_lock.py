"""A state directory has one owner at a time, and whoever comes second is told who it is."""

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from frontdesk import StateDirectoryInUseError
from frontdesk.clock import SystemClock
from frontdesk.errors import StateDirectoryError
from frontdesk.state_dir.lock import LOCK, lock_directory, make_private
from frontdesk_testing import FakeClock

HOLD = """
import sys
from pathlib import Path

from frontdesk.clock import SystemClock
from frontdesk.state_dir.lock import lock_directory

with lock_directory(Path(sys.argv[1]), SystemClock()):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Holds a directory until its input ends."""
    command = [sys.executable, "-c", HOLD, str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def take(directory: Path) -> None:
    """Holds a directory for a moment."""
    with lock_directory(directory, SystemClock()):
        pass


def read_refusal(directory: Path) -> StateDirectoryInUseError:
    """The error of whoever comes second."""
    with pytest.raises(StateDirectoryInUseError) as caught:
        take(directory)
    return caught.value


@pytest.fixture
def nobody() -> Iterator[Path]:
    """A directory of a user without rights of their own, and that user for the time of the test."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o711)  # noqa: S103
        home = Path(name, "home")
        home.mkdir()
        if os.geteuid() != 0:
            yield home
            return
        os.chown(home, 65534, 65534)
        os.seteuid(65534)
        try:
            yield home
        finally:
            os.seteuid(0)


def test_another_process_is_named(tmp_path: Path) -> None:
    with another_process(tmp_path) as process:
        error = read_refusal(tmp_path)
        assert (error.path, error.pid, error.machine) == (tmp_path, process.pid, socket.gethostname())
        for part in (
            str(tmp_path),
            f"process {process.pid} on {socket.gethostname()} since {error.since}",
            "stop that one",
        ):
            assert part in str(error)


def test_an_owner_that_leaves_frees_it(tmp_path: Path) -> None:
    with another_process(tmp_path) as process:
        process.communicate()
        assert process.returncode == 0
        take(tmp_path)


def test_an_owner_that_is_killed_frees_it_and_its_name_is_replaced(tmp_path: Path) -> None:
    with another_process(tmp_path) as process:
        process.kill()
        process.wait()
        assert str(process.pid) in (tmp_path / LOCK).read_text()
        with lock_directory(tmp_path, SystemClock()):
            left = (tmp_path / LOCK).read_text()
            assert str(process.pid) not in left
            assert str(os.getpid()) in left


def test_two_of_one_process_are_two(tmp_path: Path) -> None:
    with lock_directory(tmp_path, FakeClock(0)):
        for _ in range(2):
            error = read_refusal(tmp_path)
            assert (error.pid, error.since) == (os.getpid(), "1970-01-01T00:00:00+00:00")
    take(tmp_path)


def test_another_name_of_the_directory_is_the_same_directory(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").symlink_to(tmp_path / "one")
    with lock_directory(tmp_path / "one", SystemClock()):
        assert read_refusal(tmp_path / "two").pid == os.getpid()


def test_a_child_process_does_not_hold_it(tmp_path: Path) -> None:
    with lock_directory(tmp_path, SystemClock()):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    try:
        take(tmp_path)
    finally:
        child.communicate(b"\n")
    assert child.returncode == 0


@pytest.mark.parametrize("left", ["", "{}", "not json", '{"pid": 1', '{"pid": 99, "machine": "x", "since": "y"}' * 9])
def test_a_file_that_was_left_is_taken_over(left: str, tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text(left)
    with lock_directory(tmp_path, SystemClock()):
        assert str(os.getpid()) in (tmp_path / LOCK).read_text()
        # What it says is only a name; the lock is what counts.
        (tmp_path / LOCK).write_text(left)
        error = read_refusal(tmp_path)
        assert "another host uses it;" in str(error)
        assert error.pid is None


def test_what_is_missing_is_made_for_this_user_only(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "state"
    previous = os.umask(0)
    try:
        take(directory)
    finally:
        os.umask(previous)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / LOCK).stat().st_mode) == 0o600
    # And nobody can put another in its place.
    assert stat.S_IMODE(directory.parent.stat().st_mode) == 0o755


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    directory.mkdir(mode=0o755)
    make_private(directory)
    take(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o755


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "file", tmp_path / "file" / "state"):
        with pytest.raises(StateDirectoryError, match="or choose another") as caught:
            take(directory)
        assert caught.value.path == directory
        assert str(directory) in str(caught.value)


@pytest.mark.parametrize("missing", [True, False])
def test_a_directory_that_can_t_be_written_is_named(missing: bool, nobody: Path) -> None:
    nobody.chmod(0o500)
    directory = nobody / "state" if missing else nobody
    with pytest.raises(StateDirectoryError, match="Permission denied") as caught:
        take(directory)
    assert str(directory) in str(caught.value)
    assert not isinstance(caught.value, StateDirectoryInUseError)
    nobody.chmod(0o700)
    take(directory)
