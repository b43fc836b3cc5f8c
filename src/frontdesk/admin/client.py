"""A client of the operators' socket, for scripts on the machine of a running host."""

import getpass
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from math import ceil
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import msgspec

from frontdesk.admin.socket_file import SOCKET, path_findings
from frontdesk.errors import OperatorError
from frontdesk.models.identity import ChannelIdentity
from frontdesk.state_dir.lock import find_unsafe

TIMEOUT_SECONDS = 60.0
_BASE_URL = "http://frontdesk"
_HTTP = b"HTTP/"
_NO_ANSWER = "the host has ended or failed. See its log for the reason"
_RETRY_INTERVAL_SECONDS = 0.2
_ENDED = ("completed", "failed", "cancelled", "incomplete")


class OperatorClient:
    """Sends messages, runs the target and queries rows through the socket of a running host.

    `place` is the state directory of the host, or its socket. `by` is the name in the audit log, by default the user
    name. Only programs that run as the user of the host can connect.
    """

    def __init__(self, place: str | Path, *, by: str | None = None, timeout: float = TIMEOUT_SECONDS) -> None:
        path = Path(place).absolute()
        self.path = path / SOCKET if path.is_dir() else path
        self._by = by or user_name()
        _probe(self.path, timeout)
        import httpx

        # No TLS: without a context of its own, httpx reads every authority that the machine trusts.
        transport = httpx.HTTPTransport(uds=str(self.path), verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        self._http = httpx.Client(transport=transport, base_url=_BASE_URL, timeout=timeout, trust_env=False)

    def deliver(
        self, to: str | ChannelIdentity, text: str, *, idempotency_key: str | None = None, by: str | None = None
    ) -> dict[str, Any]:
        """Send a text to a person, by isolation key or identity. Return `person`, `channel` and `deliveries`."""
        named = {"person": to} if isinstance(to, str) else _address(to)
        return self.call("deliver", self._build_message(named, text, idempotency_key, by))

    def run(
        self, to: ChannelIdentity, text: str, *, idempotency_key: str | None = None, by: str | None = None
    ) -> dict[str, Any]:
        """Run the target for a person in the background. Return `run_id`, `person` and `existed`."""
        return self.call("run", self._build_message(_address(to), text, idempotency_key, by))

    def wait(self, run_id: str, *, person: str | None = None, seconds: float = 600.0) -> dict[str, Any]:
        """Wait for a run and return it with its result. Raise `OperatorError` on timeout."""
        name = {"id": run_id} if person is None else {"id": run_id, "person": person}
        pause = Event()
        for _ in range(ceil(seconds / _RETRY_INTERVAL_SECONDS) + 1):
            row = self.call("show", {"kind": "runs", "name": name})
            if row["status"] in _ENDED:
                return self.call("show", {"kind": "runs", "name": name, "content": True})
            pause.wait(_RETRY_INTERVAL_SECONDS)
        raise OperatorError(f"The run {run_id} did not end within {seconds:g} seconds.", code="timeout")

    def call(self, name: str, given: Mapping[str, Any]) -> Any:
        """Make a call of `docs/reference/cli.md`. Raise `OperatorError` if it is rejected or not answered."""
        import httpx

        call = _http_call(name, given)
        query = {key: _query_value(value) for key, value in call.query.items() if value is not None}
        body = None if call.body is None else msgspec.json.encode(call.body)
        try:
            response = self._http.request(call.method, call.path, params=query, content=body)
        except httpx.RemoteProtocolError:
            raise OperatorError(_NO_ANSWER) from None
        except httpx.TransportError as error:
            raise OperatorError(f"no response from the host: {error}") from None
        try:
            answer: Any = msgspec.json.decode(response.content)
            if response.is_success:
                return answer
            message, code = str(answer["error"]["message"]), str(answer["error"]["code"])
        except (msgspec.DecodeError, LookupError, TypeError):
            raise OperatorError(_NO_ANSWER) from None
        raise OperatorError(message, code=code)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _build_message(self, to: Mapping[str, str], text: str, key: str | None, by: str | None) -> dict[str, Any]:
        return {"to": to, "text": text, "idempotency_key": key, "by": by or self._by}


def user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def _address(to: ChannelIdentity) -> dict[str, str]:
    return {"channel": to.channel, "id": to.native_id}


class _HttpCall(NamedTuple):
    method: str
    path: str
    query: Mapping[str, Any] = {}
    body: Mapping[str, Any] | None = None


def _http_call(name: str, given: Mapping[str, Any]) -> _HttpCall:
    kind, action = _segment(given.get("kind")), _segment(given.get("action"))
    match name:
        case "state":
            return _HttpCall("GET", "/state")
        case "counts":
            return _HttpCall("GET", "/deliveries/counts")
        case "page":
            paging = {"after": given.get("after"), "limit": given.get("limit")}
            return _HttpCall("GET", f"/{kind}", {**given.get("filters", {}), **paging})
        case "show" | "act":
            named = dict(given.get("name", {}))
            path = f"/{kind}/{_segment(named.pop('id', ''))}"
            rest = {key: value for key, value in given.items() if key not in ("kind", "name", "action")}
            if name == "show":
                return _HttpCall("GET", path, {**named, **rest})
            return _HttpCall("POST", f"{path}/{action}", named, rest)
        case "principals" if action == "list":
            return _HttpCall("GET", "/principals", {key: given[key] for key in given if key != "action"})
        case "principals":
            return _HttpCall("POST", f"/principals/{action}", body=given)
        case "deliver" | "run":
            return _HttpCall("POST", "/messages" if name == "deliver" else "/runs", body=given)
        case _:
            raise OperatorError(f"Unknown call {name!r}.", code="invalid_request")


def _segment(value: Any) -> str:
    # A segment of dots would be resolved as a relative path.
    return quote(str(value), safe="").replace(".", "%2E")


def _query_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _probe(path: Path, timeout: float) -> None:
    """Raise unless a host answers HTTP at the path. httpx would wait for the end of a line of an earlier version."""
    if path_findings(path) or not hasattr(socket, "AF_UNIX") or not path.exists():
        raise OperatorError(f"no host listens on {path}", code="no_host")
    # Whoever can change the directory can answer in place of the host.
    if (unsafe := find_unsafe(path.parent)) is not None:
        raise OperatorError(f"the socket {path} is not used: its directory {unsafe.reason}; {unsafe.advice}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            raise OperatorError(f"no host listens on {path}", code="no_host") from None
        except OSError as error:
            raise OperatorError(f"the socket {path} can't be used: {error.strerror or error}") from None
        try:
            # A host with too many connections answers and closes before it has read anything.
            with suppress(BrokenPipeError):
                connection.sendall(b"GET /state HTTP/1.0\r\n\r\n")
            with connection.makefile("rb") as stream:
                start = stream.read(len(_HTTP))
        except OSError as error:
            raise OperatorError(f"no response from the host: {error.strerror or error}") from None
    if not start:
        raise OperatorError(_NO_ANSWER)
    if start != _HTTP:
        raise OperatorError(f"the host at {path} has an earlier version without HTTP. Use the command of that version")
