"""A raw HTTP/1.1 client: prebuilt bytes out, and just enough parsing to find where a response ends.

A client library would cost more for each request than the servers measured here do.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from time import perf_counter
from typing import cast

HEAD_END = b"\r\n\r\n"
LAST_CHUNK = b"\r\n0\r\n\r\n"
CONTENT_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
LOCALHOST = "127.0.0.1"
ANSWER_TIMEOUT = 10


def build_request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """`headers` by their names, with underscores for dashes."""
    head = f"{method} {path} HTTP/1.1\r\nhost: {LOCALHOST}\r\naccept: */*\r\n"
    head += "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    if body:
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{head}\r\n".encode() + body


def unchunk(body: bytes) -> bytes:
    """The payload of a body in chunked transfer encoding."""
    parts: list[bytes] = []
    at = 0
    while at < len(body):
        line_end = body.index(b"\r\n", at)
        size = int(body[at:line_end].split(b";")[0], 16)
        if size == 0:
            break
        parts.append(body[line_end + 2 : line_end + 2 + size])
        at = line_end + 2 + size + 2
    return b"".join(parts)


class HttpReader(asyncio.Protocol):
    """Finds the ends of responses. What they are good for is up to `on_body` and `on_end`.

    A chunked body is handed over with its framing: taking it off would cost more than it tells.
    """

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.status = b""
        self.chunked = False
        self._in_body = False
        self._left = 0
        self._head = b""
        self._tail = b""

    def on_body(self, data: bytes) -> None:
        raise NotImplementedError

    def on_end(self) -> None:
        raise NotImplementedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's.
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if not self._in_body:
            if self._head:
                data = self._head + data
            end = data.find(HEAD_END)
            if end < 0:
                self._head = data
                return
            self._open_body(data[: end + 2])
            data = data[end + 4 :]
        if self.chunked:
            self._read_chunked(data)
        else:
            self._read_sized(data)

    def _open_body(self, head: bytes) -> None:
        self._head = b""
        self._in_body = True
        self.status = head[9:12]
        length = CONTENT_LENGTH.search(head)
        self.chunked = length is None
        self._left = int(length[1]) if length else 0
        # The last chunk of an empty body follows the head directly.
        self._tail = b"\r\n"

    def _read_sized(self, data: bytes) -> None:
        self._left -= len(data)
        self.on_body(data)
        if self._left <= 0:
            self._in_body = False
            self.on_end()

    def _read_chunked(self, data: bytes) -> None:
        if not data:
            return
        self.on_body(data)
        tail = data[-7:] if len(data) >= 7 else (self._tail + data)[-7:]
        self._tail = tail
        if tail == LAST_CHUNK:
            self._in_body = False
            self.on_end()


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes
    seconds: float


class Caller(HttpReader):
    """One question at a time on one connection, with the whole answer and the time it took."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = False
        self._parts: list[bytes] = []
        self._until = b""
        self._sent_at = 0.0
        self._waiter: asyncio.Future[Reply] | None = None

    async def ask(self, request: bytes, *, until: bytes = b"") -> Reply:
        """Returns at the end of the response, or already when `until` was seen in it."""
        self.ended = False
        self._parts = []
        self._until = until
        self._waiter = asyncio.get_running_loop().create_future()
        self._sent_at = perf_counter()
        self.transport.write(request)
        return await asyncio.wait_for(self._waiter, ANSWER_TIMEOUT)

    def on_body(self, data: bytes) -> None:
        self._parts.append(data)
        if self._until and self._until in b"".join(self._parts):
            self._answer()

    def on_end(self) -> None:
        self.ended = True
        self._answer()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = True
        if self._waiter and not self._waiter.done():
            self._waiter.set_exception(exc or ConnectionResetError("the server closed the connection"))

    def _answer(self) -> None:
        seconds = perf_counter() - self._sent_at
        if self._waiter and not self._waiter.done():
            body = b"".join(self._parts)
            whole = unchunk(body) if self.chunked and not self._until else body
            self._waiter.set_result(Reply(int(self.status), whole, seconds))


async def connect_caller(port: int) -> Caller:
    _, caller = await asyncio.get_running_loop().create_connection(Caller, LOCALHOST, port)
    return caller


async def ask_once(port: int, request: bytes) -> Reply:
    caller = await connect_caller(port)
    try:
        return await caller.ask(request)
    finally:
        caller.transport.close()
