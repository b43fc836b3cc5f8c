"""The file of the admin socket: where it may be, and how it is created."""

import asyncio
import os
import socket
import stat
import sys
from pathlib import Path

from frontdesk.errors import AdminSocketError

SOCKET = "frontdesk.sock"
MAX_PATH_BYTES = 103 if sys.platform == "darwin" else 107
"""The largest size of the path of a socket, set by the system."""
MAX_BODY_BYTES = 64 * 1024
"""The largest size of the body of a request."""
_PROBE_SECONDS = 1.0


def is_supported() -> bool:
    return hasattr(socket, "AF_UNIX") and hasattr(asyncio, "start_unix_server")


def path_findings(path: Path) -> list[str]:
    length = len(os.fsencode(path))
    return [f"the path has {length} bytes, and a socket can have {MAX_PATH_BYTES}"] if length > MAX_PATH_BYTES else []


def bind(path: Path) -> socket.socket:
    """Return a socket bound to a path that only this user can open."""
    for finding in path_findings(path):
        raise AdminSocketError(path, finding)
    _remove_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        # Nobody is let in before the server listens.
        path.chmod(0o600)
    except OSError as error:
        listener.close()
        raise AdminSocketError(path, error.strerror or str(error)) from error
    return listener


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise AdminSocketError(path, error.strerror or str(error)) from error
    if not stat.S_ISSOCK(mode):
        raise AdminSocketError(path, "the path exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_SECONDS)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise AdminSocketError(path, error.strerror or str(error)) from error
    raise AdminSocketError(path, "another process listens on it")


def file_identity(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino
