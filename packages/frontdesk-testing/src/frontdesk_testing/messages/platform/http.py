"""A small HTTP server that can close a connection in the middle of an answer, which other servers do not offer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import parse_qs

import httptools  # pyright: ignore[reportMissingTypeStubs]

_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 409: "Conflict"}
_MAX_BODY_BYTES = 4 * 1024 * 1024


@dataclass(slots=True)
class Call:
    """A request. `gone` is set when its client has disconnected."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[bytes, bytes]
    body: bytes
    gone: asyncio.Event = field(default_factory=asyncio.Event)


Reply = tuple[int, bytes]
Handler = Callable[[Call], Awaitable[Reply | None]]
"""Answers a call; `None` closes the connection without an answer."""


class Connection(asyncio.Protocol):
    """One connection: requests one after the other."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._parser: Any = cast(Any, httptools).HttpRequestParser(self)
        self._transport: Any = None
        self._task: asyncio.Task[None] | None = None
        self._call: Call | None = None
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._call is not None:
            self._call.gone.set()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except cast(Any, httptools).HttpParserError:
            self._transport.close()

    def on_url(self, url: bytes) -> None:
        """Append to the URL."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header."""
        self._headers[name.lower()] = value

    def on_body(self, body: bytes) -> None:
        """Append to the body."""
        self._body.append(body)
        if sum(map(len, self._body)) > _MAX_BODY_BYTES:
            self._transport.close()

    def on_message_complete(self) -> None:
        """Answer the complete request."""
        path, _, query = self._url.decode("latin-1").partition("?")
        asked = {name: values[-1] for name, values in parse_qs(query).items()} if query else {}
        method = self._parser.get_method().decode()
        self._call = Call(method, path, asked, self._headers, b"".join(self._body))
        self._begin()
        self._task = asyncio.get_running_loop().create_task(self._answer(self._call))

    async def _answer(self, call: Call) -> None:
        try:
            reply = await self._handler(call)
        except BaseException:
            self._transport.abort()
            raise
        if self._transport.is_closing():
            return
        if reply is None:
            self._transport.abort()
            return
        status, body = reply
        head = f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}\r\ncontent-type: application/json\r\n"
        self._transport.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
