"""Checks whether another user of this machine could change a file or a directory."""

import os
import stat
import sys
from pathlib import Path
from typing import NamedTuple

_WRITABLE_BY_ALL, _WRITABLE_BY_GROUP = stat.S_IWOTH, stat.S_IWGRP


class Unsafe(NamedTuple):
    """The reason why a path is not safe, and what to do about it."""

    reason: str
    advice: str


if sys.platform == "win32":

    def find_unsafe(path: Path) -> Unsafe | None:
        """Return nothing: owners and modes are not kept here."""
        return None

    def is_readable_by_others(path: Path) -> bool:
        """Return false, as above."""
        return False

else:
    import grp
    import pwd

    def find_unsafe(path: Path) -> Unsafe | None:
        """Say how a user other than this one and root could change what is at a path; a missing one is safe."""
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
        """Tell whether users other than this one can read what is at a path, and reach it."""
        try:
            mode, above = path.stat().st_mode, path.parent.stat().st_mode
        except OSError:
            return False
        return bool(mode & (stat.S_IRGRP | stat.S_IROTH)) and bool(above & (stat.S_IXGRP | stat.S_IXOTH))

    def _is_own_group(group: int, user: int) -> bool:
        """Tell whether a group is the private one of a user; many systems give one to each, with a fitting umask."""
        try:
            name, entry = pwd.getpwuid(user).pw_name, grp.getgrgid(group)
        except KeyError:
            return False
        return entry.gr_name == name and set(entry.gr_mem) <= {name}
