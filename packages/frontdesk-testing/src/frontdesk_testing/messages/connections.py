"""Persistent HTTP connections to one server.

A call of a general client costs most of a millisecond, and more when many run at once: a benchmark of deliveries would
measure that. A channel for a real platform uses `PlatformHttp` of `outbound/platform.py`.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import httptools  # pyright: ignore[reportMissingTypeStubs]

_MAX_ANSWER_BYTES = 16 * 1024 * 1024
_CONNECT_SECONDS = 5.0


class UnreachableError(Exception):
    """The request was not sent."""


class NoAnswerError(Exception):
    """The request was sent at least in part, and no complete response was received."""


class Connections:
    """A pool of connections, each with one request at a time."""

    def __init__(self, url: str, headers: Mapping[str, str], *, most: int = 64) -> None:
        parts = urlsplit(url)
        self._secure = parts.scheme == "https"
        self._address = (parts.hostname or "", parts.port or (443 if self._secure else 80))
        self._prefix = parts.path.rstrip("/")
        self._headers = _lines({"host": parts.netloc, "content-type": "application/json", **headers})
        self._idle: list[_Connection] = []
        self._slots = asyncio.Semaphore(most)

    async def request(
        self, method: str, path: str, body: bytes = b"", *, seconds: float, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Send a request. Return the status and the body of the answer."""
        status, content, _ = await self.exchange(method, path, body, seconds=seconds, headers=headers)
        return status, content

    async def exchange(
        self, method: str, path: str, body: bytes = b"", *, seconds: float, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes, dict[bytes, bytes]]:
        """Send a request. Return the status, the body and the headers of the answer, with their names in lower case."""
        more = _lines(headers) if headers else ""
        start = f"{method} {self._prefix}{path} HTTP/1.1\r\n"
        head = f"{start}{self._headers}{more}content-length: {len(body)}\r\n\r\n"
        async with self._slots:
            connection = await self._take_connection()
            try:
                async with asyncio.timeout(seconds):
                    answer = await connection.ask(head.encode("latin-1") + body)
            except TimeoutError:
                raise NoAnswerError("it took too long") from None
            finally:
                # A late answer would be taken for the answer to the next request.
                if connection.reusable:
                    self._idle.append(connection)
                else:
                    connection.close()
            return *answer, connection.headers

    async def _take_connection(self) -> "_Connection":
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                return connection
        loop = asyncio.get_running_loop()
        try:
            # Not `wait_for`: until Python 3.12 it forgets a cancellation that comes with the error.
            async with asyncio.timeout(_CONNECT_SECONDS):
                secure = True if self._secure else None
                _, made = await loop.create_connection(_Connection, *self._address, ssl=secure)
        except (OSError, TimeoutError) as error:
            raise UnreachableError(type(error).__name__) from None
        return made

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()


def _lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._transport: Any = None
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self.reusable = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.reusable = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.reusable = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(NoAnswerError("the connection was cut"))

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        self.reusable = False
        self._parser: Any = cast(Any, httptools).HttpResponseParser(self)
        self._body = bytearray()
        self.headers: dict[bytes, bytes] = {}
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            return self.close()
        try:
            self._parser.feed_data(data)
        except cast(Any, httptools).HttpParserError:
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) > _MAX_ANSWER_BYTES:
            self.close()

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._answer is not None and not self._answer.done() and status >= 200:
            self.reusable = bool(self._parser.should_keep_alive())
            self._answer.set_result((status, bytes(self._body)))

    def close(self) -> None:
        self.reusable = False
        self._transport.close()
