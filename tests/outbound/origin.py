"""Servers that answer with the very bytes a test gives them, and a network that leads to them."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from frontdesk.errors import InvalidRequestError
from frontdesk.outbound.client import GuardedClient

SECRET = "sig-5f1d0c"
"""What no error and no log may show."""

Answer = bytes | Callable[["Origin", asyncio.StreamWriter], Awaitable[None]]


class Origin:
    """A server on loopback: its answers by path, and what it heard."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.heads: list[str] = []
        self.names: list[str | None] = []
        """What the clients called it in TLS."""
        self.asked = asyncio.Event()
        self.left = asyncio.Event()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.heads.append(head)
            self.asked.set()
            answer = self.answers[head.split(" ")[1].partition("?")[0]]
            if callable(answer):
                await answer(self, writer)
            else:
                writer.write(answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.left.set()
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


@asynccontextmanager
async def serve_origin(host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> AsyncIterator[Origin]:
    """An origin on a free port."""
    origin = Origin()
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: origin.names.append(name)
    server = await asyncio.start_server(origin.serve, host, 0, ssl=tls)
    origin.port = server.sockets[0].getsockname()[1]
    try:
        yield origin
    finally:
        server.close()


def ok(body: bytes = b"hello", *headers: str, status: str = "200 OK") -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def build_redirect(location: str, status: str = "302 Found", *headers: str) -> bytes:
    """A redirect."""
    return ok(b"not this", f"Location: {location}", *headers, status=status)


async def until_gone(origin: Origin, writer: asyncio.StreamWriter, piece: bytes) -> None:
    """Sends a piece again and again, until the client has left."""
    while not writer.is_closing():
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.001)


class Certificate:
    """A self-made certificate for `files.example` and one address."""

    def __init__(self, folder: Path) -> None:
        self.file, key = folder / "cert.pem", folder / "key.pem"
        names = "subjectAltName=DNS:files.example,IP:93.184.216.34"
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-days", "2", "-subj", "/CN=files.example", "-addext", names, "-keyout", key, "-out", self.file]
        subprocess.run(command, check=True, capture_output=True)
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(self.file, key)

    def build_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.file))


class Names:
    """A name server: one answer a question, the last one for ever; it counts the questions."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(some) for name, some in answers.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self._answers:
            raise OSError("not known")
        answers = self._answers[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Internet:
    """Leads connections to public addresses to servers on loopback, and writes down where they were meant to go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.dialled: list[tuple[str, int]] = []
        self.places: dict[str, int] = {}
        loop = asyncio.get_running_loop()
        self._connect = loop.create_connection
        monkeypatch.setattr(loop, "create_connection", self._dial)

    async def _dial(self, protocol: Any, host: str, port: int, **options: Any) -> Any:
        self.dialled.append((host, port))
        if host not in self.places:
            raise ConnectionRefusedError(f"nobody at {host}")
        return await self._connect(protocol, "127.0.0.1", self.places[host], **options)


def client_for(*origins: Origin, **settings: Any) -> GuardedClient:
    """A client that may go to these servers."""
    hosts = [f"127.0.0.1:{one.port}" for one in origins]
    return GuardedClient(allowed_hosts=hosts, allow_http=True, **settings)


def at(origin: Origin, path: str = "/") -> str:
    """A URL of this server."""
    return f"http://127.0.0.1:{origin.port}{path}"


async def refusal(client: GuardedClient, url: str) -> tuple[str, str]:
    """The code and the text of the error; the text shows nothing of the URL."""
    with pytest.raises(InvalidRequestError) as caught:
        await client.fetch(url, caller="ann")
    assert (caught.value.status, caught.value.message) == (400, str(caught.value))
    assert SECRET not in repr(caught.value)
    return caught.value.code, caught.value.message
