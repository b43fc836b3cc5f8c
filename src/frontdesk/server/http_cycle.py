"""One request and its response on a connection. Common responses take a fast path, others use uvicorn's code.

Uvicorn writes the head of a response before its body is known, checks each header, and creates an event per request.
Here the head of a response with a known length is written together with its body, a piece of a stream takes one write,
and the event is created only when it is awaited.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from frontdesk.server.unread import PIECES_PER_BLOCK, UnreadPieces

RawHeaders = Iterable[tuple[bytes, bytes]]

_BAD_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# Capitals are left to uvicorn, which turns them into lower case.
_BAD_NAME = re.compile(rb'[\x00-\x20\x7f()<>@,;:\[\]={}\\"A-Z]')
_LENGTH = b"content-length: "
_starts = {b"content-length": _LENGTH}
"""The beginnings of lines, by the names of their headers, which are few and always the same."""
_MAX_STARTS = 1024
_SMALL_CHUNK = 1024
_CHUNKS = tuple(b"%x\r\n" % size for size in range(_SMALL_CHUNK))
"""The lines before small pieces of a stream."""
# Called for every request: `super()` would look them up each time.
_send = RequestResponseCycle.send
_receive = RequestResponseCycle.receive


class CommonHeaders:
    """Encoded default response headers. Uvicorn replaces the list every second."""

    __slots__ = ("headers", "made")

    def __init__(self) -> None:
        self.headers: RawHeaders = ()
        self.made: bytes | None = b""

    def lines(self, headers: RawHeaders) -> bytes | None:
        """Return the encoded lines of a header list, cached per list, or `None` like `plain_head`."""
        if headers is not self.headers:
            lines, length = plain_head(b"", headers) or (None, None)
            self.headers, self.made = headers, lines if length is None else None
        return self.made


class HttpCycle(RequestResponseCycle):
    """Uvicorn's cycle, with a fast path for common requests and responses."""

    def __init__(self, protocol: HttpToolsProtocol, scope: Any, common: CommonHeaders, keep_alive: bool) -> None:
        # All that uvicorn's own methods need, beside what the short way needs; `super().__init__` would make an event.
        self.scope = scope
        self.transport = protocol.transport
        self.flow = protocol.flow
        self.logger = protocol.logger
        self.access_logger = protocol.access_logger
        self.access_log = protocol.access_log
        self.default_headers = protocol.server_state.default_headers
        self.on_response = protocol.on_response_complete
        self.disconnected = False
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = protocol.expect_100_continue
        self.body: Any = b""
        self.more_body = True
        self.response_started = False
        self.response_complete = False
        self.chunked_encoding = None
        self.expected_content_length = 0
        self._common = common
        self.event: asyncio.Event | None = None
        """The event by which the app waits for the client, if it has ever waited."""
        self._read = False
        """Whether the app has received the whole body."""
        self._head: Any = None
        """The first message of an answer with a length, until the second comes."""
        self._lines = self._length = b""
        """That message as it is sent, and the length that it tells."""
        self._streams = False
        """Whether the next message may be a piece of a stream."""
        self._unread = UnreadPieces(protocol.transport)
        self._pieces = self._written = 0
        """The number of pieces since the client was last checked, and of all their bytes."""
        self._on_gone: Callable[[], None] | None = None

    @property
    def message_event(self) -> asyncio.Event:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Return the event for uvicorn's own methods, in the state that a permanent event would have."""
        if self.event is None:
            self.event = asyncio.Event()
            ended = not self.more_body and not self._read
            if self.body or ended or self.disconnected or self.response_complete:
                self.event.set()
        return self.event

    def notify_when_gone(self, on_gone: Callable[[], None] | None) -> None:
        """Call `on_gone` when the client disconnects before the end of the response, or now if it already has."""
        self._on_gone = on_gone
        if self.disconnected:
            self.note_gone()

    def note_gone(self) -> None:
        if self.response_complete:
            return
        self.disconnected = True
        if self.event is not None:
            self.event.set()
        if self._on_gone is not None:
            self._on_gone()

    def add_body(self, data: bytes) -> None:
        if isinstance(self.body, bytes):
            self.body = bytearray(self.body)
        self.body += data

    async def send(self, message: Any) -> None:
        if self._streams and message.get("more_body"):
            body = message.get("body")
            size = len(body) if body else 0
            if self._pieces == PIECES_PER_BLOCK:
                # Before the piece is written: what is interrupted here is sent again.
                await self._unread.wait(self._written)
                self._pieces = 0
            self._pieces += 1
            self._written += size
            if (
                size
                and message["type"] == "http.response.body"
                and not self.flow.write_paused
                and not self.disconnected
            ):
                start = _CHUNKS[size] if size < _SMALL_CHUNK else b"%x\r\n" % size
                self.transport.write(b"".join((start, body, b"\r\n")))
                return
        if message["type"] == "http.response.start":
            # If one is held already, the app has failed since, and this one is the error.
            self._head = message if self._hold(message) else None
            if self._head is not None:
                return
        head, self._head = self._head, None
        if head is not None:
            if self._send_whole(message):
                return
            await _send(self, head)
        await _send(self, message)
        self._streams = bool(self.chunked_encoding) and not self.response_complete and self.scope["method"] != "HEAD"

    def _hold(self, head: Any) -> bool:
        """Hold the head of a response with a length until its body arrives, unless it needs uvicorn's handling."""
        if self.response_started or self.access_log or self.scope["method"] == "HEAD":
            return False
        known, headers = self._common, self.default_headers
        common = known.made if headers is known.headers else known.lines(headers)
        plain = None if common is None else plain_head(STATUS_LINE[head["status"]] + common, head.get("headers", ()))
        if plain is None or plain[1] is None or not plain[1].isdigit():
            return False
        self._lines, self._length = plain[0], plain[1]
        return True

    def _send_whole(self, message: Any) -> bool:
        """Send a response if the message has its whole body and needs no handling by uvicorn."""
        body = message.get("body", b"")
        if (
            message.get("more_body")
            or not self.keep_alive
            or self.flow.write_paused
            or self.disconnected
            or int(self._length) != len(body)
        ):
            return False
        self.transport.write(b"".join((self._lines, b"\r\n", body)))
        self.response_started = self.response_complete = True
        if self.event is not None:
            self.event.set()
        self.on_response()
        return True

    async def receive(self) -> Any:
        if self.more_body or self._read or self.waiting_for_100_continue or self.disconnected or self.response_complete:
            return await _receive(self)
        # The whole body is here; after it, the only message is that the client has left.
        self._read = True
        if self.event is not None:
            self.event.clear()
        if self.flow.read_paused:
            self.flow.resume_reading()
        body, self.body = self.body, b""
        return {"type": "http.request", "body": bytes(body), "more_body": False}


def plain_head(start: bytes, headers: RawHeaders) -> tuple[bytes, bytes | None] | None:
    """Return the encoded headers after `start`, and the declared content length, if any.

    `None` if uvicorn would not send them unchanged.
    """
    lines = [start]
    length: bytes | None = None
    values: list[bytes] = []
    for name, value in headers:
        before = _starts.get(name) or _find_start(name)
        if before is None:
            return None
        if before is _LENGTH:
            if length is not None:
                return None
            length = value
        lines += (before, value, b"\r\n")
        values.append(value)
    # Nearly all values are printable, which is known sooner than that none of their bytes is a bad one.
    told = b"".join(values).decode("latin-1")
    return (b"".join(lines), length) if told.isprintable() or not _BAD_VALUE.search(told) else None


def _find_start(name: bytes) -> bytes | None:
    if _BAD_NAME.search(name) or name in (b"connection", b"transfer-encoding"):
        return None
    start = name + b": "
    if len(_starts) < _MAX_STARTS:
        _starts[name] = start
    return start
