"""A client of the operators' socket, for scripts beside a running host."""

import getpass
import socket
from collections.abc import Mapping
from math import ceil
from pathlib import Path
from threading import Event
from typing import Any, Self

import msgspec

from frontdesk.admin.socket_server import SOCKET, path_findings
from frontdesk.data.identity import ChannelIdentity
from frontdesk.errors import OperatorError
from frontdesk.host.state.file_modes import find_unsafe

TIMEOUT = 60.0
_PAUSE = 0.2
_ENDED = ("completed", "failed", "cancelled", "incomplete")


class OperatorClient:
    """Speaks to people, runs the target and asks for rows, through the socket of a running host.

    `place` is the state directory of the host, or its socket. `by` is the name in the audit log: the user's, if it is
    not given. A program that runs as the user of the host may use it, and nobody else.
    """

    def __init__(self, place: str | Path, *, by: str | None = None, timeout: float = TIMEOUT) -> None:
        path = Path(place).absolute()
        self.path = path / SOCKET if path.is_dir() else path
        self._by = by or user_name()
        self._connection = _connect(self.path, timeout)
        self._lines = self._connection.makefile("rb")

    def deliver(
        self, to: str | ChannelIdentity, text: str, *, idempotency_key: str | None = None, by: str | None = None
    ) -> dict[str, Any]:
        """Send a text to a person, named by isolation key or identity; return `person`, `channel` and `deliveries`."""
        named = {"person": to} if isinstance(to, str) else _address(to)
        return self.call("deliver", self._given(named, text, idempotency_key, by))

    def run(
        self, to: ChannelIdentity, text: str, *, idempotency_key: str | None = None, by: str | None = None
    ) -> dict[str, Any]:
        """Run the target for a person in the background; return `run_id`, `person` and whether it `existed`."""
        return self.call("run", self._given(_address(to), text, idempotency_key, by))

    def wait(self, run_id: str, *, person: str | None = None, seconds: float = 600.0) -> dict[str, Any]:
        """Return a run with its result when it has ended; raise `OperatorError` if it takes longer."""
        name = {"id": run_id} if person is None else {"id": run_id, "person": person}
        pause = Event()
        for _ in range(ceil(seconds / _PAUSE) + 1):
            row = self.call("show", {"kind": "runs", "name": name})
            if row["status"] in _ENDED:
                return self.call("show", {"kind": "runs", "name": name, "content": True})
            pause.wait(_PAUSE)
        raise OperatorError(f"The run {run_id} has not ended within {seconds:g} seconds.", code="timeout")

    def call(self, name: str, given: Mapping[str, Any]) -> Any:
        """Send any request of the socket; raise `OperatorError` if it is refused, or if no answer comes."""
        try:
            self._connection.sendall(msgspec.json.encode({"call": name, "given": given}) + b"\n")
            line = self._lines.readline()
        except OSError as error:
            raise OperatorError(f"the host does not answer: {error.strerror or error}") from None
        if not line.endswith(b"\n"):
            raise OperatorError("the host has ended, or could not answer; its log says why")
        answer: dict[str, Any] = msgspec.json.decode(line)
        if "error" in answer:
            raise OperatorError(str(answer["error"]["message"]), code=str(answer["error"]["code"]))
        return answer["answer"]

    def close(self) -> None:
        """Close the connection."""
        self._lines.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _given(self, to: Mapping[str, str], text: str, key: str | None, by: str | None) -> dict[str, Any]:
        return {"to": to, "text": text, "idempotency_key": key, "by": by or self._by}


def user_name() -> str:
    """Return the name of the user who runs this program."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def _address(to: ChannelIdentity) -> dict[str, str]:
    return {"channel": to.channel, "id": to.native_id}


def _connect(path: Path, timeout: float) -> socket.socket:
    if path_findings(path) or not hasattr(socket, "AF_UNIX") or not path.exists():
        raise OperatorError(f"no host answers at {path}", code="no_host")
    # Whoever can change the directory can answer in place of the host.
    if (unsafe := find_unsafe(path.parent)) is not None:
        raise OperatorError(f"the socket {path} is not used: its directory {unsafe.reason}; {unsafe.advice}")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout)
    try:
        connection.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        connection.close()
        raise OperatorError(f"no host answers at {path}", code="no_host") from None
    except OSError as error:
        connection.close()
        raise OperatorError(f"the socket {path} can't be used: {error.strerror or error}") from None
    return connection
