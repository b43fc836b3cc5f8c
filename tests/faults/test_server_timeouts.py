"""Every timeout of the server ends the connections that it is for, a thousand at once, with the default ratios."""

import asyncio
import resource
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import fields
from functools import partial
from inspect import signature
from itertools import cycle, islice
from typing import Any

import httpx
import pytest
import uvicorn

from frontdesk import AgentFrameworkHost, ApiKeyAuth, HttpLimits, ServerLimits
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.invocations.config import InvocationsConfig
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.concurrency.timeouts import TimeoutWheel
from frontdesk.http.server_limits import SEND_SECONDS
from frontdesk.server import http_protocol
from frontdesk.server.http_protocol import ConnectionGate
from tests.faults.test_connections_that_stay import CHUNKED, HOST, KINDS, UPGRADE
from tests.faults.test_request_heads import serve
from tests.scenarios.desk import DEADLINE, until

FACTOR = 5
"""All timeouts are divided by this: with equal ones instead, a timeout that ends the wrong connections is not seen."""
CONNECTIONS = 1_000
KEY = "a-key-of-sixteen-characters"
POST = (
    b"POST /invocations HTTP/1.1\r\n" + HOST + b"content-type: application/json\r\nx-api-key: " + KEY.encode() + b"\r\n"
)
UVICORN = {
    name: signature(uvicorn.Config).parameters[name].default
    for name in ("timeout_keep_alive", "ws_ping_interval", "ws_ping_timeout")
}
PIECE = 64 * 1024 * "x"


def whole(body: bytes) -> bytes:
    return POST + b"content-length: %d\r\n\r\n" % len(body) + body


REFUSED = b"POST /invocations HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n"
LONG_CHUNK = b"a000\r\n" + 0xA000 * b" " + b"\r\n"
HANDSHAKE = b"GET /v1/responses HTTP/1.1\r\n" + HOST + UPGRADE
SENT: dict[str, tuple[bytes, bytes]] = {
    **KINDS,
    "a long body behind a 401": (REFUSED, LONG_CHUNK),
    "half an authorized body": (POST + b"content-length: 100\r\n\r\n{", b""),
    "a dripped authorized body": (POST + b"content-length: 100000\r\n\r\n{", b" "),
    "a WebSocket that answers no ping": (
        HANDSHAKE + b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nx-api-key: " + KEY.encode() + b"\r\n\r\n",
        b"",
    ),
}
"""What a connection sends first, and what it goes on sending; it reads all that comes."""
UNREAD = {
    "an answer that nobody reads": whole(b'{"message": "much"}'),
    "a stream that nobody reads": whole(b'{"message": "without end", "stream": true}'),
}
TIMEOUTS = {
    "head_seconds": [kind for kind in KINDS if kind != "idle after an answer"],
    "timeout_keep_alive": ["idle after an answer"],
    "linger_seconds": ["a long body behind a 401"],
    "body_timeout": ["half an authorized body", "a dripped authorized body"],
    "ws_ping_timeout": ["a WebSocket that answers no ping"],
    "send_seconds": list(UNREAD),
}
STATUS = {
    "half a head": b"408",
    "a long body behind a 401": b"401",
    "half an authorized body": b"408",
    "a WebSocket that answers no ping": b"101",
}
"""The status that shows that a connection was not refused earlier."""
WHEELS = {"heads": "head_seconds", "idle": "timeout_keep_alive", "lingering": "linger_seconds"}


class Pourer:
    """Answers with more than the system buffers, and counts its runs."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()

    async def pour(self, text: str) -> AsyncIterator[str]:
        self.runs[text] += 1
        count = 0
        while text == "without end" or count < 32:
            count += 1
            yield PIECE


@pytest.fixture
def _many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * CONNECTIONS
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"the system allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def app(pourer: Pourer) -> Any:
    auth, limits = ApiKeyAuth({"ada": KEY}), HttpLimits(per_caller=None)
    invocations = InvocationsChannel(
        auth=auth,
        limits=limits,
        body_timeout=InvocationsConfig.body_timeout / FACTOR,
        send_seconds=SEND_SECONDS / FACTOR,
    )
    channels = [invocations, ResponsesChannel(auth=auth, limits=limits), WebChatChannel()]
    return AgentFrameworkHost(pourer.pour, channels=channels).app


async def stay(port: int, first: bytes, drip: bytes) -> bytes:
    """Connect, send until the server closes the connection, and return what came first."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(first)
        heard = asyncio.create_task(reader.read(64))
        await asyncio.wait([heard], timeout=None if not drip else 0.2)
        ended = asyncio.create_task(_end(reader, heard))
        while not ended.done():
            await asyncio.wait([ended], timeout=0.2 if drip else None)
            if not writer.transport.get_write_buffer_size():
                writer.write(drip)
        return await ended
    finally:
        writer.close()


async def _end(reader: asyncio.StreamReader, heard: "asyncio.Task[bytes]") -> bytes:
    """Read to the end; a connection that the server has closed while bytes came is reset."""
    try:
        await heard
        await reader.read(-1)
    except ConnectionError:
        pass
    return b"" if heard.exception() else heard.result()


async def stay_unread(port: int, first: bytes, held: ExitStack) -> None:
    """Send a request whose answer is never read."""
    line = held.enter_context(socket.socket())
    line.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(line, ("127.0.0.1", port))
    await loop.sock_sendall(line, first)


def test_every_timeout_of_the_server_has_connections_that_it_ends() -> None:
    gate = ConnectionGate(ServerLimits(), 1)
    assert {name for name, value in vars(gate).items() if isinstance(value, TimeoutWheel)} == set(WHEELS)
    limits = {field.name for field in fields(ServerLimits) if field.name.endswith("_seconds")}
    assert {*limits, *WHEELS.values(), "body_timeout", "ws_ping_timeout"} == set(TIMEOUTS)
    assert sorted(kind for kinds in TIMEOUTS.values() for kind in kinds) == sorted({**SENT, **UNREAD})


@pytest.mark.usefixtures("_many_files")
async def test_a_thousand_connections_outlived_the_timeouts_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "_LINGER_SECONDS", http_protocol._LINGER_SECONDS / FACTOR)
    defaults = ServerLimits()
    limits = ServerLimits(
        head_seconds=defaults.head_seconds / FACTOR,
        send_seconds=defaults.send_seconds / FACTOR,
    )
    times = {name: seconds / FACTOR for name, seconds in UVICORN.items()}
    pourer = Pourer()
    async with serve(limits, app=app(pourer), **times) as wire:
        with ExitStack() as held:
            make: dict[str, Callable[[], Any]] = {
                **{kind: partial(stay, wire.port, *sent) for kind, sent in SENT.items()},
                **{kind: partial(stay_unread, wire.port, first, held) for kind, first in UNREAD.items()},
            }
            kinds = list(islice(cycle(make), CONNECTIONS))
            tasks = {asyncio.create_task(make[kind]()): kind for kind in kinds}
            _, still_open = await asyncio.wait(tasks, timeout=DEADLINE)
            assert {tasks[task] for task in still_open} == set()
            await until(lambda: not wire.server.server_state.connections)
        # Each connection has reached what it is about.
        answers, streams = (kinds.count(kind) for kind in UNREAD)
        assert pourer.runs == {"much": answers, "without end": streams}
        for kind, status in STATUS.items():
            assert {task.result().split()[1] for task in tasks if tasks[task] == kind} == {status}, kind
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(f"http://127.0.0.1:{wire.port}/healthz")).status_code == 200
