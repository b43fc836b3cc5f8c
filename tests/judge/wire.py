"""HTTP by hand: a connection for each request, which can be cut at any moment."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

TIMEOUT = 60.0


class CutError(Exception):
    """The connection ended before the answer was complete."""


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    status: int
    body: Any

    @property
    def ok(self) -> bool:
        """Tell whether the host has acknowledged the request."""
        return 200 <= self.status < 300

    @property
    def code(self) -> str:
        """The code of an error; empty for anything else."""
        error = self.body.get("error") if isinstance(self.body, dict) else None
        return str(error.get("code") or "") if isinstance(error, dict) else ""


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    name: str
    number: str
    data: Any


class Exchange:
    """One request and its answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._chunked = False
        self._length: int | None = None
        self.cookie = ""
        """What the answer sets, as it is to be sent back."""

    @classmethod
    async def connect(cls, port: int) -> Self:
        """Connect, and say nothing yet."""
        try:
            return cls(*await asyncio.open_connection("127.0.0.1", port, limit=2**24))
        except OSError as error:
            raise CutError(f"no connection: {error}") from None

    @classmethod
    async def begin(cls, port: int, method: str, path: str, body: Any = None, **more: Any) -> Self:
        """Send a request on a connection of its own; what comes back is not awaited."""
        exchange = await cls.connect(port)
        exchange.send(method, path, body, **more)
        return exchange

    def send(
        self, method: str, path: str, body: Any = None, *, key: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Send the request."""
        payload = b"" if body is None else json.dumps(body).encode()
        given = {"host": "judge", "connection": "close", "content-length": str(len(payload)), **(headers or {})}
        if body is not None:
            given["content-type"] = "application/json"
        if key:
            given["x-api-key"] = key
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self._writer.write(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + payload)

    def cut(self) -> None:
        """Hang up, without a word."""
        self._writer.transport.abort()

    async def answer(self, seconds: float = TIMEOUT) -> Answer:
        """Read the whole answer."""
        try:
            async with asyncio.timeout(seconds):
                status = await self._head()
                body = b"".join([part async for part in self._parts()])
        except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError) as error:
            raise CutError(f"{type(error).__name__}: {error}") from None
        finally:
            self.cut()
        try:
            return Answer(status, json.loads(body) if body else None)
        except ValueError:
            raise CutError("half an answer") from None

    async def status(self, seconds: float = TIMEOUT) -> int:
        """Read the beginning of the answer, and hang up."""
        try:
            async with asyncio.timeout(seconds):
                return await self._head()
        except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError) as error:
            raise CutError(f"{type(error).__name__}: {error}") from None
        finally:
            self.cut()

    async def events(self, seconds: float = TIMEOUT) -> AsyncIterator[Event]:
        """Read the events; an answer that is no stream is one event with the name `error`."""
        rest = b""
        try:
            async with asyncio.timeout(seconds):
                status = await self._head()
                async for part in self._parts():
                    *whole, rest = (rest + part).split(b"\n\n")
                    for block in whole:
                        if (event := _event(block)) is not None:
                            yield event
        except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError) as error:
            raise CutError(f"{type(error).__name__}: {error}") from None
        if status != 200:
            with suppress(ValueError):
                yield Event("error", str(status), json.loads(rest))

    async def _head(self) -> int:
        whole = await self._reader.readuntil(b"\r\n\r\n")
        head = whole.lower()
        if (start := head.find(b"\r\nset-cookie: ")) >= 0:
            self.cookie = whole[start + 14 :].split(b";", 1)[0].decode()
        self._chunked = b"transfer-encoding: chunked" in head
        self._length = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), None
        )
        return int(head.split()[1])

    async def _parts(self) -> AsyncIterator[bytes]:
        if not self._chunked:
            yield await self._reader.readexactly(self._length or 0)
            return
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()


def _event(block: bytes) -> Event | None:
    fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line and not line.startswith(b":"))
    if b"data" not in fields:
        return None
    data = json.loads(fields[b"data"])
    return Event(fields.get(b"event", b"").decode(), fields.get(b"id", b"").decode(), data)


def deaf(port: int, path: str, body: Any, *, key: str) -> socket.socket:
    """Ask for something, and never read a byte of it."""
    payload = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: judge\r\nx-api-key: {key}\r\ncontent-length: {len(payload)}\r\n\r\n"
    line = socket.create_connection(("127.0.0.1", port))
    line.sendall(head.encode() + payload)
    return line


async def ask(port: int, method: str, path: str, body: Any = None, *, key: str = "", **more: Any) -> Answer:
    """Send a request and read its answer."""
    async with await Exchange.begin(port, method, path, body, key=key, **more) as exchange:
        return await exchange.answer()
