"""One request and its answer on a connection: the usual ones by a short way, all others by uvicorn's own.

Uvicorn writes the head of an answer before its body is known, checks each header by itself, and makes an event for each
request. Here the head of an answer with a length is written together with its body, a piece of a stream in one step,
and an event is made when something waits for it.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

RawHeaders = Iterable[tuple[bytes, bytes]]

_VALUE = bytes({*range(256)} - {*range(32), 0x7F} | {0x09})
"""The bytes that the value of a header may have."""
# Capitals are left to uvicorn, which turns them into lower case.
_NAME = bytes({*_VALUE} - {*b'\t()<>@,;:[]={} \\"'} - {*b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"})
"""The bytes that the name of a header may have."""
_SMALL_CHUNK = 1024
_CHUNKS = tuple(b"%x\r\n" % size for size in range(_SMALL_CHUNK))
"""The lines before small pieces of a stream."""
_LENGTH = b"\r\ncontent-length: "
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
            self._headers, self._lines = headers, plain_head(b"", headers)
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
        self._lines = b""
        """That message as it is sent."""
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
        lines = None if common is None else plain_head(STATUS_LINE[head["status"]] + common, head.get("headers", ()))
        if lines is None or lines.count(_LENGTH) != 1:
            return False
        self._lines = lines
        return True

    def _send_whole(self, message: Any) -> bool:
        """Send an answer, if the message has all of its body and nothing about it is unusual."""
        body = message.get("body", b"")
        if (
            message.get("more_body")
            or not self.keep_alive
            or self.flow.write_paused
            or self.disconnected
            or self._lines.find(b"%b%d\r\n" % (_LENGTH, len(body))) < 0
        ):
            return False
        self.transport.write(b"%b\r\n%b" % (self._lines, body))
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


def plain_head(start: bytes, headers: RawHeaders) -> bytes | None:
    """Return headers as they are sent, after `start`; `None` if uvicorn would do more than to send them as they are."""
    names, parts = b"", [start]
    for name, value in headers:
        names += name
        parts += (name, b": ", value, b"\r\n")
    if names.translate(None, _NAME) or names.find(b"connection") >= 0 or names.find(b"transfer-encoding") >= 0:
        return None
    head = b"".join(parts)
    # What is left are the line ends, and no more than there are lines.
    ends = b"\r\n" * (len(parts) // 4)
    return head if head[len(start) :].translate(None, _VALUE) == ends else None
