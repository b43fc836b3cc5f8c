"""HTTP/1.1 connections to platform servers, and a connection pool.

For a small request, a client on the server's own HTTP parser costs a tenth of httpx, which took half of the time of a
chat message. It supports keep-alive, TLS, chunked bodies and bodies that end with the connection, informational
responses, and limits on head and body. Does not support redirects, cookies, proxies and decompression: platform calls
do not need them.
"""

import asyncio
import select
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import httptools

from frontdesk.concurrency.timeouts import Timed, TimeoutWheel

if TYPE_CHECKING:
    import ssl

MAX_HEAD_BYTES = 64 * 1024
"""The size of the status line and the headers of a response, and of its trailers."""
KEEP_ALIVE_SECONDS = 30.0
"""The time for which an idle connection is kept open, or up to half as long again."""
_WRITE_BYTES = 256 * 1024
"""The bytes of a large request that the transport receives at once."""


class BrokenResponseError(Exception):
    """Raised if the connection ends before the response, or the response is not HTTP.

    Its message has no content of either.
    """


class RawResponse:
    """A response as received, with header names in lower case."""

    __slots__ = ("body", "headers", "status")

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body: bytes | None = None
        """The body. None if it is compressed or too large."""


class HttpConnection(asyncio.Protocol, Timed):
    """A connection that carries one request at a time."""

    def __init__(self, pool: "ConnectionPool", address: str) -> None:
        self.address = address
        self.is_reusable = False
        """Whether another request can follow the last one."""
        self._pool, self._loop = pool, pool.loop
        self._parser = httptools.HttpResponseParser(self)
        self._transport: Any = None
        self._waiter: asyncio.Future[RawResponse] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._poll: Any = None
        """What shows whether anything has arrived, once that was asked."""
        self._begin(0, without_body=False)

    def _begin(self, max_bytes: int, *, without_body: bool) -> None:
        self._response = RawResponse()
        self._body: bytes | bytearray = b""
        self._size, self._max_bytes, self._head_bytes, self._bytes_without_body = 0, max_bytes, 0, 0
        self._in_head, self._without_body = True, without_body

    async def exchange(self, head: bytes, content: bytes, max_bytes: int, *, without_body: bool = False) -> RawResponse:
        """Send a request and return its response.

        `without_body` means that the response has no body whatever its headers say, as for HEAD. Raise
        `BrokenResponseError` if there is no response. A connection that is not reusable afterwards is closed.
        """
        self._begin(max_bytes, without_body=without_body)
        self.is_reusable = False
        waiter = self._waiter = self._loop.create_future()
        try:
            if len(content) <= _WRITE_BYTES:
                self._transport.write(head + content)
            else:
                self._transport.write(head)
                await self._write(content, waiter)
            return await waiter
        finally:
            self._waiter = None
            if not self.is_reusable:
                self.abort()

    async def _write(self, content: bytes, waiter: "asyncio.Future[RawResponse]") -> None:
        """Write a large body at the server's read speed. Stop once the server has responded."""
        view = memoryview(content)
        for start in range(0, len(view), _WRITE_BYTES):
            if self._writable is not None:
                await asyncio.wait((self._writable, waiter), return_when=asyncio.FIRST_COMPLETED)
            if waiter.done():
                # The server would take the rest for another request.
                self.is_reusable = False
                return
            self._transport.write(view[start : start + _WRITE_BYTES])

    def is_stale(self) -> bool:
        """Return True if the server has sent something on an idle connection, such as its end."""
        if not self.is_reusable:
            return True
        if self._poll is None:
            if not hasattr(select, "poll"):
                # On Windows, the next request finds out.
                return False
            self._poll = select.poll()
            self._poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(self._poll.poll(0))

    def abort(self) -> None:
        self.is_reusable = False
        if self._transport is not None:
            self._transport.abort()

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.is_reusable = True
        self._pool.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_reusable = False
        self._pool.remove(self)
        self.resume_writing()
        if exc is None and self._ends_with_connection():
            self._finish()
        else:
            self._fail("connection closed" if exc is None else type(exc).__name__)

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._waiter.done():
            # No request was sent for it.
            self.abort()
            return
        was_in_head, size = self._in_head, self._size
        if was_in_head:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(type(error).__name__)
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES:
            self._fail("head too large")
        # Trailers and extensions of chunks are not part of the body. They may be as long as a head.
        self._bytes_without_body = 0 if was_in_head or self._size > size else self._bytes_without_body + len(data)
        if self._bytes_without_body > MAX_HEAD_BYTES:
            self._fail("trailers too large")

    # Called by the parser

    def on_message_begin(self) -> None:
        if self._waiter is None or self._waiter.done():
            # A second response to one request.
            self.is_reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers are not headers.
        if self._in_head:
            headers, key, text = self._response.headers, name.decode("latin-1").lower(), value.decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            return
        self._in_head = False
        self._response.status = status
        headers = self._response.headers
        length = headers.get("content-length", "")
        if self._without_body:
            self._finish()
        elif _is_compressed(headers) or (length.isascii() and length.isdigit() and int(length) > self._max_bytes):
            self._answer()

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > self._max_bytes:
            self._answer()
        elif self._body:
            # One buffer: a list of very small chunks takes many times their bytes.
            if isinstance(self._body, bytes):
                self._body = bytearray(self._body)
            self._body += body
        else:
            self._body = body

    def on_message_complete(self) -> None:
        if self._in_head:
            # An informational response, which precedes the response.
            self._response.headers.clear()
        elif self._waiter is not None and not self._waiter.done():
            self.is_reusable = self._parser.should_keep_alive() and not self._transport.is_closing()
            self._finish()

    def _ends_with_connection(self) -> bool:
        headers = self._response.headers
        return not self._in_head and "content-length" not in headers and "transfer-encoding" not in headers

    def _finish(self) -> None:
        self._response.body = bytes(self._body)
        self._answer()

    def _answer(self) -> None:
        """Return the response to the caller. The rest of its body is not read."""
        response, self._response, self._body = self._response, RawResponse(), b""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(response)

    def _fail(self, why: str) -> None:
        self.is_reusable = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(BrokenResponseError(why))


def _is_compressed(headers: Mapping[str, str]) -> bool:
    return headers.get("content-encoding", "identity").strip().lower() not in ("identity", "")


class ConnectionPool:
    """The connections to one server, on one event loop."""

    def __init__(self, max_connections: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.slots = asyncio.Semaphore(max_connections)
        """Bounds the requests that are sent at once, and with them the connections."""
        self.users = 0
        """The requests that are sent or wait for a slot."""
        self._open: set[HttpConnection] = set()
        self._idle: list[HttpConnection] = []
        self._timeouts: TimeoutWheel[HttpConnection] = TimeoutWheel(KEEP_ALIVE_SECONDS, HttpConnection.abort)

    async def connect(
        self, address: str, port: int, tls: "ssl.SSLContext | None", server_hostname: str | None
    ) -> HttpConnection:
        _, connection = await self.loop.create_connection(
            lambda: HttpConnection(self, address), address, port, ssl=tls, server_hostname=server_hostname
        )
        return connection

    def take(self, addresses: Sequence[str]) -> HttpConnection | None:
        """Return the most recently used idle connection to one of these addresses."""
        while self._idle:
            connection = self._idle.pop()
            self._timeouts.drop(connection)
            if connection.address in addresses and not connection.is_stale():
                return connection
            connection.abort()
        return None

    def put(self, connection: HttpConnection) -> None:
        """Keep a connection for the next request if it can carry one."""
        if connection.is_reusable:
            self._idle.append(connection)
            self._timeouts.watch(connection, self.loop)

    def add(self, connection: HttpConnection) -> None:
        self._open.add(connection)

    def remove(self, connection: HttpConnection) -> None:
        self._open.discard(connection)
        self._timeouts.drop(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def close(self) -> None:
        for connection in tuple(self._open):
            connection.abort()
