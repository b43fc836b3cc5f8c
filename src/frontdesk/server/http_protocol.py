"""Uvicorn's HTTP protocol, with limits on request heads and one timer for all idle connections.

Uvicorn itself accepts a head of any length, for any time. Here bytes and time are counted while a head is incomplete,
and a request whose head arrives in one read costs a few comparisons. The parser callbacks are optimized for the common
case: a known path, no proxy, and an immediate response.
"""

import asyncio
from functools import lru_cache
from http import HTTPStatus
from typing import Any, NoReturn
from urllib.parse import unquote

import httptools
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl, service_unavailable
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from frontdesk.asgi.messages import CONNECTION, DirectApp
from frontdesk.concurrency.tasks import spawn_clean
from frontdesk.concurrency.timeouts import Timed, TimeoutWheel
from frontdesk.http.lasting import LASTING, LastingConnections
from frontdesk.http.server_limits import ServerLimits
from frontdesk.loggers import http as log
from frontdesk.server.http_cycle import CommonHeaders, HttpCycle
from frontdesk.server.socket_protocol import BoundedSocketProtocol
from frontdesk.server.unread import bytes_taken

_FORWARDED = frozenset({b"x-forwarded-for", b"x-forwarded-proto"})
"""The headers that uvicorn reads of a proxy that it trusts."""
_NOTED = _FORWARDED | {b"expect"}
_MAX_CACHED_URL_LENGTH = 256
"""The longest URL whose parts are cached."""
_KEEP_ALIVE_SECONDS = 5.0
"""The time for which a connection may be idle between two requests, as uvicorn has it."""
_MIN_KEEP_ALIVE_SECONDS = 1.0
"""The shortest such time that is obeyed: with less, the timer would run all the time."""


_MAX_DISCARDED_BYTES = 64 * 1024
"""The bytes of a body that are read after its request was answered."""
_LINGER_SECONDS = 1.0
"""The time for a client to read the answer before a connection with a longer body is closed."""


class ConnectionGate:
    """Limits, connection count and timeouts shared by the connections of one server."""

    def __init__(self, limits: ServerLimits, max_connections: int, keep_alive: float = _KEEP_ALIVE_SECONDS) -> None:
        self.limits = limits
        self.max_connections = max_connections
        self.heads: TimeoutWheel[BoundedHttpProtocol] = TimeoutWheel(limits.head_seconds, BoundedHttpProtocol.run_late)
        seconds = max(keep_alive, _MIN_KEEP_ALIVE_SECONDS)
        self.idle: TimeoutWheel[BoundedHttpProtocol] = TimeoutWheel(seconds, BoundedHttpProtocol.close_if_idle)
        """All connections; each waits since its last answer."""
        self.lingering: TimeoutWheel[BoundedHttpProtocol] = TimeoutWheel(_LINGER_SECONDS, BoundedHttpProtocol.abort)
        self.lasting = LastingConnections(max(1, max_connections // 2))
        self.common = CommonHeaders()
        self._full = False

    def admits(self, count: int) -> bool:
        """Return True if the limit admits the newest of `count` connections. Log only changes."""
        if count > self.max_connections:
            if not self._full:
                log.warning(
                    "connection limit reached, rejecting new connections with 503: limit=%d", self.max_connections
                )
            self._full = True
            return False
        if self._full and count * 10 < self.max_connections * 9:
            self._full = False
            log.warning("connection limit no longer reached")
        return True

    def protocol(self, **options: Any) -> "BoundedHttpProtocol":
        return BoundedHttpProtocol(self, **options)


class WriteFlow(FlowControl):
    """Uvicorn's flow control, with an event only while a write is pending."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.read_paused = self.write_paused = False
        self._event: asyncio.Event | None = None

    @property
    def _is_writable_event(self) -> asyncio.Event:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self._event is None:
            self._event = asyncio.Event()
            if not self.write_paused:
                self._event.set()
        return self._event

    def resume_writing(self) -> None:
        super().resume_writing()
        self._event = None


class Pipeline(list[Any]):
    """Pipelined requests. There are nearly always none, and an empty deque takes 600 bytes."""

    def appendleft(self, item: Any) -> None:
        self.insert(0, item)


class _HeadRefused(Exception):
    """Stops the parser. The connection is already closing."""


class BoundedHttpProtocol(HttpToolsProtocol, Timed):
    """A connection that is closed if a head is too long, has too many parts, or takes too long."""

    # As many attributes as uvicorn has, and these beside them, would be looked up by the slow way.
    __slots__ = (
        "_direct_app",
        "_earlier",
        "_forwarded",
        "_gate",
        "_handshake",
        "_harmless",
        "_ignores_upgrade",
        "_in_body",
        "_in_head",
        "_limits",
        "_lingers",
        "_max_headers",
        "_max_piece",
        "_moved",
        "_proxied_app",
        "_size",
        "_template",
        "_timed",
        "_unread",
        "_upgraded",
    )
    cycle: HttpCycle  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, gate: ConnectionGate, **options: Any) -> None:
        super().__init__(**options)
        limits = gate.limits
        self._gate = gate
        self._limits = limits
        self._max_piece = limits.max_head_bytes
        self._max_headers = limits.max_headers
        self._harmless = min(limits.max_url_bytes, limits.max_header_bytes)
        """A head that is no longer has neither a long URL nor a long header."""
        self._earlier: list[HttpCycle] = []
        """The requests before the last one, while they are not all answered."""
        self.pipeline = Pipeline()  # pyright: ignore[reportAttributeAccessIssue, reportIncompatibleVariableOverride]
        self._proxied_app, self._direct_app = _apps(self.app)  # pyright: ignore[reportUnknownMemberType]
        """The app for requests that no proxy has passed on."""
        self.url = b""
        self._in_head = self._in_body = False
        self._lingers = False
        """Whether the connection is only kept open for the client to read the last answer."""
        self._forwarded = False
        self._unread = 0
        """The number of bytes since a head was complete or a body went on."""
        self._size = 0
        """The number of bytes of the piece that is being parsed."""
        self._moved = False
        """Whether a head was completed, or a body that the app reads went on, in that piece."""
        self._timed = False
        self._handshake = False
        """Whether the last head begins a WebSocket."""
        self._upgraded = False
        self._ignores_upgrade = False
        """Whether the last head asks for an upgrade that is not made, and is parsed again without it."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.flow = WriteFlow(transport)
        self._template = dict[str, Any](
            type="http",
            asgi={"version": self.asgi_version, "spec_version": "2.3"},
            http_version="1.1",
            server=self.server,
            client=self.client,
            scheme=self.scheme,
            method="",
            root_path=self.root_path,
            path="",
            raw_path=b"",
            query_string=b"",
            headers=(),
            state={},
            extensions={CONNECTION: self, LASTING: self._gate.lasting},
        )
        if self._gate.admits(len(self.connections)):
            self._await_head()
            self._gate.idle.watch(self, self.loop)
        else:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_here()
        self._gate.idle.drop(self)
        self._gate.lingering.drop(self)
        # Uvicorn notifies only the last request that the client has gone, and none that has a callback.
        for cycle in self._earlier:
            cycle.note_gone()
        if self.cycle:
            self.cycle.note_gone()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._lingers:
            return
        if len(data) > self._harmless:
            self._parse_in_pieces(memoryview(data))
        else:
            self._parse(data)

    def _parse_in_pieces(self, data: memoryview) -> None:
        """Parse received data in pieces, so that little of a head is parsed after the limit is reached."""
        start = 0
        while start < len(data) and not self._upgraded and not self._lingers and not self.transport.is_closing():
            end = start + (self._max_piece if self._is_answering() else self._harmless)
            self._parse(data[start:end])
            start = end

    def _parse(self, data: bytes | memoryview) -> None:
        self._size = len(data)
        self._moved = False
        try:
            self.parser.feed_data(data)  # pyright: ignore[reportOptionalMemberAccess]
        except httptools.HttpParserUpgrade as upgrade:
            self._upgrade(data, upgrade)
        except httptools.HttpParserError:
            self._refuse_invalid()
        if not self._moved:
            self._stall()

    def _upgrade(self, data: bytes | memoryview, upgrade: httptools.HttpParserUpgrade) -> None:
        """Begin a WebSocket, or read the request as one without an upgrade."""
        try:
            while not self._handshake and not self.transport.is_closing():
                rest = data[upgrade.args[0] :]
                try:
                    self._read_head_again()
                    return self.parser.feed_data(rest)  # pyright: ignore[reportOptionalMemberAccess]
                except httptools.HttpParserUpgrade as another:
                    data, upgrade = rest, another
        except httptools.HttpParserError:
            return self._refuse_invalid()
        if self._handshake:
            self.handle_websocket_upgrade()

    def _read_head_again(self) -> None:
        """Parse a head again without its upgrade.

        The parser assumes that a request with an upgrade has no body, and would read the body as the next request.
        Behind a proxy, that request could receive the response to somebody else's.
        """
        before: Any = self.parser
        method, version = before.get_method(), before.get_http_version().encode("ascii")
        lines = [b"%b %b HTTP/%b" % (method, self.url, version)]
        for name, value in self.headers:
            if name == b"connection":
                value = b",".join(part for part in value.split(b",") if part.strip().lower() != b"upgrade")
            if name != b"upgrade":
                lines.append(b"%b: %b" % (name, value))
        self._ignores_upgrade = False
        self.parser = parser = httptools.HttpRequestParser(self)
        # As uvicorn has it.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        parser.feed_data(b"\r\n".join((*lines, b"\r\n")))

    def _refuse_invalid(self) -> None:
        self.logger.warning("Invalid HTTP request received.")
        self.send_400_response("Invalid HTTP request received.")

    def _stall(self) -> None:
        """Count bytes that neither complete a head nor are read as a body: half a head, trailers, line ends."""
        if self._upgraded:
            return
        self._unread += self._size
        if self._in_body and not self._is_answering():
            if self._unread > _MAX_DISCARDED_BYTES:
                self._linger()
            elif not self._timed:
                self._await_head()
        elif len(self.url) > self._limits.max_url_bytes:
            self._refuse(HTTPStatus.REQUEST_URI_TOO_LONG)
        elif self._unread > self._limits.max_head_bytes or self._has_too_many_headers():
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif not self._timed and not self._is_answering():
            self._await_head()

    def _linger(self) -> None:
        """Stop reading, and close the connection after the client has had time to read the response."""
        self._lingers = True
        self.flow.pause_reading()
        self._head_is_here()
        self._gate.idle.drop(self)
        self._gate.lingering.watch(self, self.loop)

    def on_message_begin(self) -> None:
        self.url = b""
        self.headers = []
        self.expect_100_continue = self._forwarded = False
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in _NOTED:
            if name in _FORWARDED:
                self._forwarded = True
            elif value.lower() == b"100-continue":
                self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        parser: Any = self.parser
        upgrades = parser.should_upgrade()
        self._handshake = upgrades and self._should_upgrade()
        if upgrades and not self._handshake:
            if parser.get_method() == b"CONNECT":
                # The parser reads what follows as another protocol.
                self._stop(HTTPStatus.METHOD_NOT_ALLOWED)
            self._ignores_upgrade = True
            return
        self._in_head = False
        if self._timed:
            self._head_is_here()
        if self._unread + self._size > self._harmless or len(self.headers) > self._max_headers:
            self._check_head()
        self._unread = 0
        version = parser.get_http_version()
        # A handshake is not an answer that is being made.
        self._moved = not upgrades
        if self._handshake and self._is_answering():
            # From then on nobody would notify the requests before it that their client has gone.
            self._stop(HTTPStatus.BAD_REQUEST)
        self._in_body = not self._handshake
        # The scope of a request is a copy with all its places, which costs less than to make it anew.
        scope: Any = self._template.copy()
        scope["http_version"] = version
        scope["method"] = parser.get_method().decode("ascii")
        url = self.url
        parts = _known_parts(url, self.root_path) if len(url) <= _MAX_CACHED_URL_LENGTH else _parts(url, self.root_path)
        scope["path"], scope["raw_path"], scope["query_string"] = parts
        # The trailers of a chunked body come to the list of the parser, and must not pass for headers.
        scope["headers"] = self.headers.copy()
        scope["state"] = self.app_state.copy()
        self.scope = scope
        if not self._handshake:
            keep_alive = version != "1.0" and parser.should_keep_alive()
            self._begin(HttpCycle(self, scope, self._gate.common, keep_alive))

    def _begin(self, cycle: HttpCycle) -> None:
        """Start a request, or queue it behind the current one."""
        before = self.cycle
        self.cycle = cycle  # pyright: ignore[reportIncompatibleVariableOverride]
        app = self._proxied_app if self._forwarded else self._direct_app
        if self.limit_concurrency is not None and max(len(self.connections), len(self.tasks)) >= self.limit_concurrency:
            self.logger.warning("Exceeded concurrency limit.")
            app = service_unavailable
        if not before or before.response_complete:
            # As `_start_asgi_task` does.
            task = spawn_clean(cycle.run_asgi(app), loop=self.loop)
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, app))
            self._note_pipelined(before)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        # Otherwise a request could see the context variables of the one before it on the same connection.
        task = spawn_clean(cycle.run_asgi(app), loop=self.loop)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

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
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        if self.flow.read_paused:
            self.flow.resume_reading()
        # Uvicorn would set a timer after each request, and cancel it before the next.
        self._gate.idle.renew(self)

    def close_if_idle(self) -> None:
        """Close the connection, unless a head is expected or a response is in progress."""
        if self._timed or self._is_answering():
            self._gate.idle.watch(self, self.loop)
        else:
            self.timeout_keep_alive_handler()

    def _note_pipelined(self, before: HttpCycle) -> None:
        if len(self.pipeline) > self._limits.max_pipelined:
            self._stop(HTTPStatus.TOO_MANY_REQUESTS)
        self._earlier = [cycle for cycle in (*self._earlier, before) if not cycle.response_complete]

    def on_body(self, body: bytes) -> None:
        cycle = self.cycle
        # What comes after the answer is thrown away, and must not keep the connection open.
        self._moved = not self._handshake and not cycle.response_complete
        if not self._moved:
            return
        self._unread = 0
        if cycle.body:
            cycle.add_body(body)
        else:
            cycle.body = body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        if cycle.event is not None:
            cycle.event.set()

    def on_message_complete(self) -> None:
        if self._ignores_upgrade:
            return
        self._in_body = False
        self._unread = 0
        cycle = self.cycle
        if not self._handshake and not cycle.response_complete:
            cycle.more_body = False
            if cycle.event is not None:
                cycle.event.set()

    def handle_websocket_upgrade(self) -> None:
        self._upgraded = True
        self._head_is_here()
        self._gate.idle.drop(self)
        super().handle_websocket_upgrade()
        protocol: Any = self.transport.get_protocol()
        if isinstance(protocol, BoundedSocketProtocol):
            protocol.offer(LASTING, self._gate.lasting)
        # The WebSocket library reads the head once more, by rules of its own, and is silent about one that it refuses.
        if not getattr(protocol, "handshake_initiated", True):
            self._refuse(HTTPStatus.BAD_REQUEST)

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            self._refuse(HTTPStatus.BAD_REQUEST, msg)

    def count_received(self) -> int:
        """Return a number that changes whenever the client has read something."""
        return bytes_taken(self.transport)

    def abort(self) -> None:
        """Close the connection immediately. The app sees a disconnected client."""
        self.transport.abort()

    def run_late(self) -> None:
        """Close the connection, because its head timed out."""
        self._timed = False
        if self._in_head:
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

    def _can_refuse(self) -> bool:
        """Return True if an error response would be read as the response to the message being parsed."""
        if not self._is_answering():
            return True
        # The app waits for the rest of a broken body. Earlier requests of a pipeline are answered first.
        return (
            self._in_body
            and not self.cycle.response_started
            and all(earlier.response_complete for earlier in self._earlier)
        )

    def _refuse(self, status: HTTPStatus, text: str | None = None) -> None:
        if not self.transport.is_closing() and self._can_refuse():
            if self._is_answering():
                self.cycle.note_gone()
            media_type, body = self.refusal(status, text or status.phrase)
            self.transport.write(
                b"HTTP/1.1 %d %b\r\ncontent-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
                % (status, status.phrase.encode("ascii"), media_type, len(body), body)
            )
        self.transport.close()

    def refusal(self, status: HTTPStatus, text: str) -> tuple[bytes, bytes]:
        """Return the media type and the body of an error response."""
        return b"text/plain; charset=utf-8", text.encode("ascii")


def _apps(app: Any) -> tuple[Any, Any]:
    direct = app.app if type(app) is ProxyHeadersMiddleware else app
    if isinstance(direct, DirectApp) and type(direct).__call__ is DirectApp.__call__:
        return app, direct.answer
    return app, direct.__call__


def _parts(url: bytes, root_path: str) -> tuple[str, bytes, bytes]:
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    return (
        root_path + (unquote(path) if "%" in path else path),
        root_path.encode("ascii") + parsed.path,
        parsed.query or b"",
    )


# Nearly all requests are for a few paths.
_known_parts = lru_cache(maxsize=256)(_parts)
