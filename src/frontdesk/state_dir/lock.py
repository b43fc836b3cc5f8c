"""The exclusive lock of a state directory, which the operating system releases when the process ends."""

import os
import socket
import stat
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from frontdesk.clock import Clock
from frontdesk.errors import StateDirectoryError, StateDirectoryInUseError
from frontdesk.loggers import host as log

_WRITABLE_BY_ALL, _WRITABLE_BY_GROUP = stat.S_IWOTH, stat.S_IWGRP


class Unsafe(NamedTuple):
    reason: str
    advice: str


if sys.platform == "win32":

    def find_unsafe(path: Path) -> Unsafe | None:
        """Return None. Windows has no owners and mode bits."""
        return None

    def is_readable_by_others(path: Path) -> bool:
        """Return False. Windows has no mode bits."""
        return False

else:
    import grp
    import pwd

    def find_unsafe(path: Path) -> Unsafe | None:
        """Return how another user than this one and root could change a path, or None. A missing path is safe."""
        try:
            status = path.stat()
        except OSError:
            # A missing path is made by us; one that can't be read can't be used either, and fails by itself.
            return None
        user = os.geteuid()
        if status.st_uid not in (user, 0):
            return Unsafe(
                f"belongs to the user {status.st_uid}, who can change it, and this process runs as {user}",
                "give it to this user, or run as that one",
            )
        by_group = status.st_mode & _WRITABLE_BY_GROUP and not _is_own_group(status.st_gid, user)
        if not status.st_mode & _WRITABLE_BY_ALL and not by_group:
            return None
        others = "every user" if status.st_mode & _WRITABLE_BY_ALL else f"the group {status.st_gid}"
        advice = f"chmod go-w {path}"
        if stat.S_ISDIR(status.st_mode):
            advice += ", or name a directory in it that is not there yet"
        return Unsafe(f"can be changed by {others} (mode {stat.S_IMODE(status.st_mode):04o})", advice)

    def is_readable_by_others(path: Path) -> bool:
        """Return True if other users can reach and read a path."""
        try:
            mode, above = path.stat().st_mode, path.parent.stat().st_mode
        except OSError:
            return False
        return bool(mode & (stat.S_IRGRP | stat.S_IROTH)) and bool(above & (stat.S_IXGRP | stat.S_IXOTH))

    def _is_own_group(group: int, user: int) -> bool:
        """Return True if a group is the private one of a user, which many systems create for each user."""
        try:
            name, entry = pwd.getpwuid(user).pw_name, grp.getgrgid(group)
        except KeyError:
            return False
        return entry.gr_name == name and set(entry.gr_mem) <= {name}


LOCK = "frontdesk.lock"


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    machine: str
    since: str


@contextmanager
def lock_directory(
    directory: Path, clock: Clock, *, files: Sequence[Path] = (), allow_unsafe: bool = False
) -> Generator[None]:
    """Lock a directory for the duration of the block, creating it if it is missing.

    Reject it, and `files` in it, if another user could change them. With `allow_unsafe` that is only logged.
    """
    make_private(directory, allow_unsafe=allow_unsafe)
    for file in (directory / LOCK, *files):
        require_private(file, directory, allow_unsafe=allow_unsafe)
    file = _take(directory, clock.now())
    try:
        yield
    finally:
        # A process that was forked meanwhile has the file too; unlocked, it is free for all of them. It is not removed:
        # another process could have just locked it.
        _unlock(file)
        os.close(file)


def make_private(directory: Path, *, allow_unsafe: bool = False) -> None:
    """Create a directory that only this user can enter. Reject an existing one that others can change."""
    try:
        # Those above it as open as usual, but not writable for others, whatever the umask is.
        for parent in [parent for parent in reversed(directory.parents) if not parent.exists()]:
            parent.mkdir(mode=0o755, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StateDirectoryError(directory, _reason(error)) from error
    require_private(directory, directory, allow_unsafe=allow_unsafe)


def warn_readable(*paths: Path) -> None:
    """Log which of the paths other users can read."""
    for path in paths:
        if is_readable_by_others(path):
            log.warning("%s holds what people said, and other users of this machine can read it: chmod go-rx it", path)


def require_private(path: Path, directory: Path, *, allow_unsafe: bool = False) -> None:
    """Reject an existing path in a state directory if another user could change it."""
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
