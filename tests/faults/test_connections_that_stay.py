"""Connections of strangers end in time, with the default ratio of the timeouts, for a thousand of them at once."""

import asyncio
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from inspect import signature
from typing import Any

import httpx
import pytest
import uvicorn
from websockets import Origin
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from frontdesk import AgentFrameworkHost, ApiKeyAuth, ServerLimits
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.server.uvicorn_server import Server
from tests.faults.test_request_heads import report, serve
from tests.scenarios.cast import parrot
from tests.scenarios.desk import DEADLINE, until

FACTOR = 5
"""All timeouts are divided by this. Their ratio is that of the defaults: an equal ratio hid a bug."""
HEAD_SECONDS = ServerLimits().head_seconds / FACTOR
UVICORN_KEEP_ALIVE = signature(uvicorn.Config).parameters["timeout_keep_alive"].default
KEEP_ALIVE = UVICORN_KEEP_ALIVE // FACTOR
HOST = b"host: 127.0.0.1\r\n"
UPGRADE = b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
LENGTH = b"content-length: 100000\r\ncontent-type: application/json\r\n"
CHUNKED = b"transfer-encoding: chunked\r\ncontent-type: application/json\r\n"
KINDS: dict[str, tuple[bytes, bytes]] = {
    "silent": (b"", b""),
    "half a head": (b"GET /healthz HTTP/1.1\r\n" + HOST, b""),
    "a dripped head": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"x: ", b"a"),
    "dripped line ends": (b"", b"\r\n"),
    "half a handshake": (b"GET /healthz HTTP/1.1\r\n" + HOST + UPGRADE, b""),
    "a dripped handshake": (b"GET /healthz HTTP/1.1\r\n" + HOST + UPGRADE + b"x: ", b"a"),
    "idle after an answer": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n", b""),
    "a head after an answer": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\nGET", b""),
    "half a body behind a 401": (b"POST /invocations HTTP/1.1\r\n" + HOST + LENGTH + b"\r\n{", b""),
    "a dripped body behind a 401": (b"POST /invocations HTTP/1.1\r\n" + HOST + LENGTH + b"\r\n{", b" "),
    "dripped chunks behind a 401": (b"POST /invocations HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n", b"1\r\n \r\n"),
    "a dripped body behind a 404": (b"POST /nothing HTTP/1.1\r\n" + HOST + LENGTH + b"\r\n{", b" "),
    "half a body behind a 404": (b"POST /nothing HTTP/1.1\r\n" + HOST + LENGTH + b"\r\n{", b""),
    "a dripped body behind /healthz": (b"GET /healthz HTTP/1.1\r\n" + HOST + LENGTH + b"\r\n", b" "),
    "a dripped body behind a page": (b"GET /chat HTTP/1.1\r\n" + HOST + LENGTH + b"\r\n", b" "),
}
"""What a connection sends first, and what it goes on sending."""
CONNECTIONS = 1_000


@pytest.fixture
def _many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * CONNECTIONS
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"the system allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def build_guarded_app() -> Any:
    channels = [InvocationsChannel(auth=ApiKeyAuth({"ada": "a-key-of-sixteen-characters"})), WebChatChannel()]
    return AgentFrameworkHost(parrot(), channels=channels).app


@asynccontextmanager
async def serve_defaults(app: Any = None) -> AsyncIterator[tuple[Server, int]]:
    limits = ServerLimits(head_seconds=HEAD_SECONDS)
    async with serve(limits, app=app or build_guarded_app(), timeout_keep_alive=KEEP_ALIVE) as wire:
        yield wire.server, wire.port


async def stay(port: int, first: bytes, drip: bytes) -> None:
    """Connect, send, and return when the server has closed the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(first)
        ended = asyncio.create_task(reader.read(-1))
        while not ended.done():
            await asyncio.wait([ended], timeout=0.2 if drip else None)
            writer.write(drip)
        await ended
    except ConnectionError:
        pass
    finally:
        writer.close()


def test_the_timeouts_have_the_ratio_of_the_defaults() -> None:
    defaults = ServerLimits()
    assert defaults.head_seconds / HEAD_SECONDS == UVICORN_KEEP_ALIVE / KEEP_ALIVE
    assert KEEP_ALIVE >= 1


async def test_a_connection_that_sends_nothing_whole_was_never_closed() -> None:
    async with serve_defaults() as (_, port):
        tasks = {asyncio.create_task(stay(port, *KINDS[kind])): kind for kind in KINDS}
        _, still_open = await asyncio.wait(tasks, timeout=DEADLINE)
        assert [tasks[task] for task in still_open] == []


@pytest.mark.usefixtures("_many_files")
async def test_a_thousand_connections_of_all_kinds_were_never_closed() -> None:
    kinds = list(KINDS.values())
    async with serve_defaults() as (server, port):
        async with asyncio.timeout(DEADLINE):
            await asyncio.gather(*(stay(port, *kinds[index % len(kinds)]) for index in range(CONNECTIONS)))
        await until(lambda: not server.server_state.connections)
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(f"http://127.0.0.1:{port}/healthz")).status_code == 200


async def test_silent_connections_kept_others_out_for_good() -> None:
    limits = ServerLimits(head_seconds=HEAD_SECONDS, max_connections=20)
    async with serve(limits, app=build_guarded_app(), timeout_keep_alive=KEEP_ALIVE) as wire:
        silent = [asyncio.create_task(stay(wire.port, b"", b"")) for _ in range(20)]
        await until(lambda: wire.open == 20)
        async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(DEADLINE):
            url = f"http://127.0.0.1:{wire.port}/healthz"
            assert (await client.get(url)).status_code == 503
            await asyncio.gather(*silent)
            assert (await client.get(url)).status_code == 200


@pytest.mark.parametrize("piece", [b"1\r\n \r\n" * 2_000, b"2000\r\n" + b" " * 0x2000 + b"\r\n"], ids=["tiny", "large"])
@pytest.mark.parametrize("path", [b"/invocations", b"/nothing", b"/healthz"])
async def test_the_rest_of_a_refused_body_was_read_without_end(path: bytes, piece: bytes) -> None:
    async with serve_defaults() as (_, port), asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST " + path + b" HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.split()[1] in (b"401", b"404", b"200")
        sent = 0
        ended = asyncio.create_task(reader.read(-1))
        try:
            while not ended.done():
                writer.write(piece)
                sent += len(piece)
                # The system buffers some megabytes. After that, the writer waits until the server closes.
                await asyncio.wait([ended, asyncio.create_task(writer.drain())], return_when=asyncio.FIRST_COMPLETED)
                await asyncio.sleep(0)
                assert sent < 64 * 1024 * 1024
            await ended
        except ConnectionError:
            pass
        writer.close()


async def test_a_short_rest_of_a_refused_body_keeps_the_connection() -> None:
    async with serve_defaults() as (_, port), asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            writer.write(b"POST /nothing HTTP/1.1\r\n" + HOST + b"content-length: 60000\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.split()[1] == b"404"
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length[15:]))
            writer.write(b" " * 60_000)
        writer.close()


@pytest.mark.parametrize("behind", [b"", b"5\r\nhello\r\n"])
async def test_a_broken_chunk_was_closed_without_the_400_that_uvicorn_sends(behind: bytes) -> None:
    broken = b"POST /app HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n" + behind + b"zz\r\n"
    async with serve(app=report) as wire:
        answer = await wire.ask(broken)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.endswith(b"Invalid HTTP request received.")


async def test_a_broken_chunk_behind_an_unanswered_request_is_not_answered_in_its_place() -> None:
    go = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            await go.wait()
        await report(scope, receive, send)

    first = b"POST /slow HTTP/1.1\r\n" + HOST + b"content-length: 1\r\n\r\nx"
    async with (
        serve(app=slow) as wire,
        wire.wire(first + b"POST /app HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\nzz\r\n") as one,
    ):
        answer = await one.rest()
        go.set()
    assert b" 400 " not in answer


async def test_pages_of_anonymous_visitors_kept_all_others_out_for_as_long_as_they_stayed_open() -> None:
    """Feeds have half of the connections, over all visitors: a cookie costs nothing."""
    limits = ServerLimits(max_connections=20)
    async with serve(limits, app=build_guarded_app()) as wire, asyncio.timeout(DEADLINE), AsyncExitStack() as stack:
        url = f"127.0.0.1:{wire.port}"

        async def visit() -> httpx.AsyncClient:
            client = await stack.enter_async_context(httpx.AsyncClient(base_url=f"http://{url}", trust_env=False))
            assert (await client.get("/chat")).status_code == 200
            return client

        async def open_feed(visitor: httpx.AsyncClient) -> Any:
            cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
            headers = {"cookie": cookies}
            return await connect(
                f"ws://{url}/chat/api/feed", origin=Origin(f"http://{url}"), additional_headers=headers, proxy=None
            )

        visitors = [await visit() for _ in range(2)]
        feeds = [await open_feed(visitors[number % 2]) for number in range(9)]
        async with visitors[0].stream("GET", "/chat/api/events") as events:
            assert events.status_code == 200
            for visitor in visitors:
                with pytest.raises(InvalidStatus) as caught:
                    await open_feed(visitor)
                assert caught.value.response.status_code == 503
                for path in ("events", "poll"):
                    assert (await visitor.get(f"/chat/api/{path}")).status_code == 503
            assert (await visitors[1].get("/healthz")).status_code == 200
        for feed in feeds:
            await feed.close()
        await until(lambda: wire.open <= len(visitors))
        await (await open_feed(visitors[0])).close()
