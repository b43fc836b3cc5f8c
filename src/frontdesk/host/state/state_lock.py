"""One owner for a state directory: a lock of the operating system, which ends with the process that holds it."""

import os
import socket
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from frontdesk.clock import Clock
from frontdesk.errors import StateDirectoryError, StateDirectoryInUseError
from frontdesk.host.state.file_modes import find_unsafe, is_readable_by_others
from frontdesk.loggers import host as log

LOCK = "frontdesk.lock"


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """The holder of a directory, as the lock file names it."""

    pid: int
    machine: str
    since: str


@contextmanager
def owned(directory: Path, clock: Clock, *, files: Sequence[Path] = (), allow_unsafe: bool = False) -> Generator[None]:
    """Hold a directory for as long as the block lasts; make it if it is missing.

    Refuse it, and `files` in it, if another user could change them; with `allow_unsafe` that is only logged.
    """
    make_private(directory, allow_unsafe=allow_unsafe)
    for file in (directory / LOCK, *files):
        need_private(file, directory, allow_unsafe=allow_unsafe)
    file = _take(directory, clock.now())
    try:
        yield
    finally:
        # A process that was forked meanwhile has the file too; unlocked, it is free for all of them. It is not removed:
        # another process could have just locked it.
        _unlock(file)
        os.close(file)


def make_private(directory: Path, *, allow_unsafe: bool = False) -> None:
    """Make a directory that only this user can enter; refuse one that is there already if others can change it."""
    try:
        # Those above it as open as usual, but not writable for others, whatever the umask is.
        for parent in [parent for parent in reversed(directory.parents) if not parent.exists()]:
            parent.mkdir(mode=0o755, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StateDirectoryError(directory, _reason(error)) from error
    need_private(directory, directory, allow_unsafe=allow_unsafe)


def warn_readable(*paths: Path) -> None:
    """Log which of some paths other users can read."""
    for path in paths:
        if is_readable_by_others(path):
            log.warning("%s holds what people said, and other users of this machine can read it: chmod go-rx it", path)


def need_private(path: Path, directory: Path, *, allow_unsafe: bool = False) -> None:
    """Refuse a path in a state directory, if it exists and another user could change it."""
    unsafe = find_unsafe(path)
    if unsafe is None:
        return
    what = "it" if path == directory else f"its file {path.name}"
    error = StateDirectoryError(directory, f"{what} {unsafe.reason}", unsafe.advice)
    if not allow_unsafe:
        raise error
    log.warning("%s It is used all the same, because the host was told to.", error)


def _take(directory: Path, now: float) -> int:
    try:
        # Not through a link: what it leads to would be overwritten.
        file = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        raise StateDirectoryError(directory, _reason(error)) from error
    try:
        if not _lock(file):
            raise _in_use(directory, file)
        _sign(file, now)
    except OSError as error:
        os.close(file)
        raise StateDirectoryError(directory, _reason(error)) from error
    except BaseException:
        os.close(file)
        raise
    return file


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> bool:
        # Windows lets no process read what is locked, so the lock is far behind the text.
        os.lseek(file, 1 << 30, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _unlock(file: int) -> None:
        os.lseek(file, 1 << 30, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: int) -> bool:
        # `flock` belongs to the open file, so that it also parts two hosts of one process.
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


def _sign(file: int, now: float) -> None:
    since = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
    text = msgspec.json.encode(Owner(pid=os.getpid(), machine=socket.gethostname(), since=since)) + b"\n"
    os.ftruncate(file, 0)
    os.lseek(file, 0, os.SEEK_SET)
    os.write(file, text)


def _in_use(directory: Path, file: int) -> StateDirectoryInUseError:
    os.lseek(file, 0, os.SEEK_SET)
    try:
        owner = msgspec.json.decode(os.read(file, 4096), type=Owner)
    except msgspec.DecodeError:
        # It has the lock, and has not written its name yet.
        return StateDirectoryInUseError(directory)
    return StateDirectoryInUseError(directory, pid=owner.pid, machine=owner.machine, since=owner.since)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
