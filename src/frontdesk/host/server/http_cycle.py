"""One request and its answer on a connection: the usual ones by a short way, all others by uvicorn's own.

Uvicorn writes the head of an answer before its body is known, checks each header by itself, and makes an event for each
request. Here the head of an answer with a length is written together with its body, a piece of a stream in one step,
and an event is made when something waits for it.
"""

import asyncio
import re
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

RawHeaders = Iterable[tuple[bytes, bytes]]

_BAD_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# Capitals are left to uvicorn, which turns them into lower case.
_BAD_NAME = re.compile(rb'[\x00-\x20\x7f()<>@,;:\[\]={}\\"A-Z]')
_LENGTH = b"content-length: "
_starts = {b"content-length": _LENGTH}
"""The beginnings of lines, by the names of their headers, which are few and always the same."""
_MOST_STARTS = 1024
_SMALL_CHUNK = 1024
_CHUNKS = tuple(b"%x\r\n" % size for size in range(_SMALL_CHUNK))
"""The lines before small pieces of a stream."""
# Called for every request: `super()` would look them up each time.
_send = RequestResponseCycle.send
_receive = RequestResponseCycle.receive


class CommonHeaders:
    """The headers that every answer has, as they are sent; uvicorn makes a new list of them each second."""

    __slots__ = ("_headers", "_lines")

    def __init__(self) -> None:
        self._headers: RawHeaders = ()
        self._lines: bytes | None = b""

    def lines(self, headers: RawHeaders) -> bytes | None:
        """Return the lines of a list, which are made once for each list; `None` as `plain_head` does."""
        if headers is not self._headers:
            lines, length = plain_head(b"", headers) or (None, None)
            self._headers, self._lines = headers, lines if length is None else None
        return self._lines


class HttpCycle(RequestResponseCycle):
    """Uvicorn's own, with a shortcut for what most requests and answers are."""

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

    @property
    def message_event(self) -> asyncio.Event:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Return the event for uvicorn's own methods, as it would be if there had always been one."""
        if self.event is None:
            self.event = asyncio.Event()
            ended = not self.more_body and not self._read
            if self.body or ended or self.disconnected or self.response_complete:
                self.event.set()
        return self.event

    def add_body(self, data: bytes) -> None:
        """Keep one more part of the body until the app receives it."""
        if isinstance(self.body, bytes):
            self.body = bytearray(self.body)
        self.body += data

    async def send(self, message: Any) -> None:
        if self._streams and message.get("more_body") and not self.flow.write_paused and not self.disconnected:
            body = message.get("body")
            if body and message["type"] == "http.response.body":
                size = len(body)
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
        """Keep the head of an answer with a length until its body comes, unless something about it is unusual."""
        if self.response_started or self.access_log or self.scope["method"] == "HEAD":
            return False
        common = self._common.lines(self.default_headers)
        plain = None if common is None else plain_head(STATUS_LINE[head["status"]] + common, head.get("headers", ()))
        if plain is None or plain[1] is None or not plain[1].isdigit():
            return False
        self._lines, self._length = plain[0], plain[1]
        return True

    def _send_whole(self, message: Any) -> bool:
        """Send an answer, if the message has all of its body and nothing about it is unusual."""
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
    """Return headers as they are sent, after `start`, and the length that they tell, if they do.

    `None` if uvicorn would do more than to send them as they are.
    """
    lines = [start]
    length: bytes | None = None
    values: list[bytes] = []
    for name, value in headers:
        before = _starts.get(name) or _start_of(name)
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


def _start_of(name: bytes) -> bytes | None:
    if _BAD_NAME.search(name) or name in (b"connection", b"transfer-encoding"):
        return None
    start = name + b": "
    if len(_starts) < _MOST_STARTS:
        _starts[name] = start
    return start
