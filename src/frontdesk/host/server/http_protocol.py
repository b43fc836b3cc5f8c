"""Uvicorn's HTTP protocol, with limits on request heads and one timer for all idle connections.

Uvicorn's own reads a head of any length, for any time. Here bytes and time are counted while a head is incomplete, and
a request whose head arrives in one piece pays for a few comparisons.
"""

from http import HTTPStatus
from typing import Any, NoReturn

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from frontdesk.host.server.http_cycle import HttpCycle
from frontdesk.host.server.unread import bytes_taken
from frontdesk.kit.aio.timeouts import Timed, TimeoutWheel
from frontdesk.kit.http.asgi import CONNECTION
from frontdesk.kit.http.server_limits import ServerLimits
from frontdesk.loggers import http as log

# Called for every request: `super()` would look them up each time.
_data_received = HttpToolsProtocol.data_received
_on_headers_complete = HttpToolsProtocol.on_headers_complete
_on_body = HttpToolsProtocol.on_body
_on_response_complete = HttpToolsProtocol.on_response_complete

_KEEP_ALIVE = 5.0
"""The time for which a connection may be idle between two requests, as uvicorn has it."""
_LEAST_KEEP_ALIVE = 1.0
"""The shortest such time that is obeyed: with less, the timer would run all the time."""


class ConnectionGate:
    """The limits, the number and the timeouts that the connections of one server share."""

    def __init__(self, limits: ServerLimits, max_connections: int, keep_alive: float = _KEEP_ALIVE) -> None:
        self.limits = limits
        self.max_connections = max_connections
        self.heads: TimeoutWheel[BoundedHttpProtocol] = TimeoutWheel(limits.head_seconds, BoundedHttpProtocol.run_late)
        idle = BoundedHttpProtocol.timeout_keep_alive_handler
        self.idle: TimeoutWheel[BoundedHttpProtocol] = TimeoutWheel(max(keep_alive, _LEAST_KEEP_ALIVE), idle)
        self._full = False

    def admits(self, count: int) -> bool:
        """Tell whether there is room for the newest of so many connections; log only when that changes."""
        if count > self.max_connections:
            if not self._full:
                log.warning("all %d connections are taken; more are refused with 503", self.max_connections)
            self._full = True
            return False
        if self._full and count * 10 < self.max_connections * 9:
            self._full = False
            log.warning("connections are free again")
        return True

    def protocol(self, **options: Any) -> "BoundedHttpProtocol":
        """Make the protocol of a new connection, as uvicorn asks for it."""
        return BoundedHttpProtocol(self, **options)


class _HeadRefused(Exception):
    """Stops the parser; the connection is closing already."""


class BoundedHttpProtocol(HttpToolsProtocol, Timed):
    """One connection, which is closed when a head is too long, has too many parts, or takes too long."""

    url = b""
    _unread = 0
    """The number of bytes since a head was complete or a body went on."""
    _size = 0
    """The number of bytes of the piece that is being parsed."""
    _moved = False
    """Whether a head was completed, or a body that the app reads went on, in that piece."""
    _timed = False
    _upgraded = False

    def __init__(self, gate: ConnectionGate, **options: Any) -> None:
        super().__init__(**options)
        limits = gate.limits
        self._gate = gate
        self._limits = limits
        self._max_piece = limits.max_head_bytes
        self._max_headers = limits.max_headers
        self._harmless = min(limits.max_url_bytes, limits.max_header_bytes)
        """A head that is no longer has neither a long URL nor a long header."""
        self._earlier: list[RequestResponseCycle] = []
        """The requests before the last one, while they are not all answered."""
        self._extensions = {CONNECTION: self}

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self._gate.admits(len(self.connections)):
            self._await_head()
        else:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_here()
        # Uvicorn notifies only the last request that the client has gone.
        for cycle in self._earlier:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if len(data) > self._harmless:
            self._parse_in_pieces(memoryview(data))
        else:
            self._parse(data)

    def _parse_in_pieces(self, data: memoryview) -> None:
        """Parse what one read has brought so that only a little of a head can come after the limit is reached."""
        start = 0
        while start < len(data) and not self._upgraded and not self.transport.is_closing():
            end = start + (self._max_piece if self._is_answering() else self._harmless)
            self._parse(data[start:end])
            start = end

    def _parse(self, data: bytes | memoryview) -> None:
        self._size = len(data)
        self._moved = False
        _data_received(self, data)  # pyright: ignore[reportArgumentType]
        if not self._moved:
            self._stall()

    def _stall(self) -> None:
        """Count what came without completing a head or being read as a body: half a head, trailers, line ends."""
        if self._upgraded:
            return
        self._unread += self._size
        if len(self.url) > self._limits.max_url_bytes:
            self._refuse(HTTPStatus.REQUEST_URI_TOO_LONG)
        elif self._unread > self._limits.max_head_bytes or self._has_too_many_headers():
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif not self._timed and not self._is_answering():
            self._await_head()

    def on_headers_complete(self) -> None:
        # A handshake is not an answer that is being made.
        self._moved = not self.parser.should_upgrade()  # pyright: ignore[reportOptionalMemberAccess]
        if self._timed:
            self._head_is_here()
        if self._unread + self._size > self._harmless or len(self.headers) > self._max_headers:
            self._check_head()
        self._unread = 0
        # The trailers of a chunked body come to the list of the parser, and must not pass for headers.
        self.scope["headers"] = self.headers.copy()
        self.scope["extensions"] = self._extensions  # pyright: ignore[reportGeneralTypeIssues]
        before = self.cycle
        _on_headers_complete(self)
        if self.cycle is not before:
            # Its task has not begun.
            self.cycle.__class__ = HttpCycle
        if self.pipeline:
            self._note_pipelined(before)

    def _check_head(self) -> None:
        limits = self._limits
        if len(self.url) > limits.max_url_bytes:
            self._stop(HTTPStatus.REQUEST_URI_TOO_LONG)
        sizes = [len(name) + len(value) for name, value in self.headers]
        # A colon, a space and a line end belong to each.
        whole = len(self.url) + sum(sizes) + 4 * len(sizes)
        if (
            len(sizes) > limits.max_headers
            or max(sizes, default=0) > limits.max_header_bytes
            or whole > limits.max_head_bytes
        ):
            self._stop(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_response_complete(self) -> None:
        if self.pipeline or self.transport.is_closing():
            _on_response_complete(self)
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        # Uvicorn would set a timer after each request, and cancel it before the next.
        self._gate.idle.watch(self, self.loop)

    def _unset_keepalive_if_required(self) -> None:
        self._gate.idle.drop(self)

    def _note_pipelined(self, before: RequestResponseCycle) -> None:
        if len(self.pipeline) > self._limits.max_pipelined:
            self._stop(HTTPStatus.TOO_MANY_REQUESTS)
        self._earlier = [cycle for cycle in (*self._earlier, before) if not cycle.response_complete]

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        # What comes after the answer is thrown away, and must not keep the connection open.
        cycle = self.cycle
        self._moved = bool(cycle) and not cycle.response_complete
        _on_body(self, body)

    def handle_websocket_upgrade(self) -> None:
        self._upgraded = True
        self._head_is_here()
        super().handle_websocket_upgrade()
        # The WebSocket library reads the head once more, by rules of its own, and is silent about one that it refuses.
        if not getattr(self.transport.get_protocol(), "handshake_initiated", True):
            self._refuse(HTTPStatus.BAD_REQUEST)

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            self._refuse(HTTPStatus.BAD_REQUEST, msg)

    def taken(self) -> int:
        """Return a number that changes whenever the client has read something."""
        return bytes_taken(self.transport)

    def abort(self) -> None:
        """Close the connection at once; the app sees a client that has left."""
        self.transport.abort()

    def run_late(self) -> None:
        """Close the connection, because its head did not come in time."""
        self._timed = False
        if self.scope and "method" not in self.scope:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        elif not self.transport.is_closing():
            self.transport.close()

    def _await_head(self) -> None:
        self._timed = True
        self._gate.heads.watch(self, self.loop)

    def _head_is_here(self) -> None:
        self._timed = False
        self._gate.heads.drop(self)

    def _is_answering(self) -> bool:
        return bool(self.cycle) and not self.cycle.response_complete

    def _has_too_many_headers(self) -> bool:
        return bool(self.headers) and len(self.headers) > self._limits.max_headers

    def _stop(self, status: HTTPStatus) -> NoReturn:
        self._refuse(status)
        raise _HeadRefused

    def _refuse(self, status: HTTPStatus, text: str | None = None) -> None:
        # In the midst of the answer to an earlier request no other can begin.
        if not self.transport.is_closing() and not self._is_answering():
            body = (text or status.phrase).encode("ascii")
            self.transport.write(
                b"HTTP/1.1 %d %b\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n"
                b"connection: close\r\n\r\n%b" % (status, status.phrase.encode("ascii"), len(body), body)
            )
        self.transport.close()
