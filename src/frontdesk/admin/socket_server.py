"""A Unix socket on which a running host answers operators. A request is a line of JSON, and so is its answer."""

import asyncio
import os
import socket
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from frontdesk.admin.desk import AdminDesk
from frontdesk.errors import AdminSocketError, FrontdeskError, InvalidRequestError, RequestError
from frontdesk.loggers import host as log

SOCKET = "frontdesk.sock"
LONGEST_PATH = 103 if sys.platform == "darwin" else 107
"""The bytes that the system allows for the path of a socket."""
LONGEST_REQUEST = 64 * 1024
MOST_CONNECTIONS = 16
IDLE_SECONDS = 60.0
_WITHIN_SECONDS = 1.0


class _Request(msgspec.Struct):
    call: str
    given: dict[str, Any] = {}


class AdminSocket:
    """Answers those who can open the socket: its mode lets only the user of the host do that."""

    def __init__(self, path: Path, desk: AdminDesk) -> None:
        self.path = path
        self._desk = desk
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._made: tuple[int, int] | None = None

    async def start(self) -> None:
        """Listen; replace the socket of a process that is gone, and refuse one that somebody listens on."""
        listener = bind(self.path)
        self._made = _file_of(self.path)
        self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=LONGEST_REQUEST)
        log.info("operators are answered at %s", self.path)

    async def stop(self) -> None:
        """Close the socket and its connections, and remove it unless it is another's by now."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for writer in list(self._writers):
            writer.close()
        with suppress(OSError):
            if _file_of(self.path) == self._made:
                self.path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._writers) >= MOST_CONNECTIONS:
            writer.write(_refusal(RequestError("Too many operators at once.", code="too_many_requests")))
            writer.close()
            return
        self._writers.add(writer)
        # A client that is gone or idle is let go.
        try:
            with suppress(ConnectionError, TimeoutError):
                while line := await self._line(reader, writer):
                    writer.write(await self._answer(line))
                    async with asyncio.timeout(IDLE_SECONDS):
                        await writer.drain()
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _line(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                line = await reader.readline()
        except ValueError:
            writer.write(_refusal(InvalidRequestError("The request is too long.", code="body_too_large")))
            return b""
        # What has no end was cut off, and may be half of what was meant.
        return line if line.endswith(b"\n") else b""

    async def _answer(self, line: bytes) -> bytes:
        try:
            request = msgspec.json.decode(line, type=_Request)
            return _line_of({"answer": await self._desk.call(request.call, request.given)})
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return _refusal(InvalidRequestError(f"The request can't be understood: {error}."))
        except FrontdeskError as error:
            return _refusal(error)


def is_supported() -> bool:
    """Tell whether this system has such sockets."""
    return hasattr(socket, "AF_UNIX") and hasattr(asyncio, "start_unix_server")


def path_findings(path: Path) -> list[str]:
    """Find a path that is too long for a socket."""
    length = len(os.fsencode(path))
    return [f"the path has {length} bytes, and a socket can have {LONGEST_PATH}"] if length > LONGEST_PATH else []


def bind(path: Path) -> socket.socket:
    """Return a socket that is bound to a path, and that only this user can open."""
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
        raise AdminSocketError(path, "there is something else at this place")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_WITHIN_SECONDS)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise AdminSocketError(path, error.strerror or str(error)) from error
    raise AdminSocketError(path, "another process answers there")


def _file_of(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino


def _line_of(value: Any) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def _refusal(error: FrontdeskError) -> bytes:
    code = error.code if isinstance(error, RequestError) else "error"
    return _line_of({"error": {"code": code, "message": str(error)}})
