"""A request that asks for an upgrade has a body like any other: the parser took the body for the next request."""

import asyncio

import pytest
import uvicorn

from frontdesk import AgentFrameworkHost, ServerLimits
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.web import WebChatChannel
from tests.faults.test_request_heads import Served, report, serve
from tests.scenarios.cast import parrot
from tests.scenarios.desk import until

HOST = b"host: 127.0.0.1\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\n" + HOST + b"\r\n"
UPGRADES = {
    "h2c": b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n",
    "unknown": b"connection: upgrade\r\nupgrade: foo\r\n",
    "several": b"connection: keep-alive, Upgrade\r\nupgrade: websocket, foo\r\n",
    "twice": b"connection: upgrade\r\nconnection: upgrade\r\nupgrade: foo\r\nupgrade: bar\r\n",
}
BODIES = {
    "length": b"content-length: %d\r\n\r\n%b" % (len(SMUGGLED), SMUGGLED),
    "chunked": b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED),
}
BEHIND = b"POST /next HTTP/1.1\r\n" + HOST + b"content-length: 3\r\n\r\nabc"


@pytest.mark.parametrize("pieces", ["one", "head and body", "bytes"])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("method", [b"POST", b"GET"])
@pytest.mark.parametrize("upgrade", UPGRADES)
async def test_the_body_of_a_request_with_an_upgrade_was_taken_for_the_next_request(
    upgrade: str, method: bytes, body: str, pieces: str
) -> None:
    head = method + b" /app HTTP/1.1\r\n" + HOST + UPGRADES[upgrade]
    whole = head + BODIES[body]
    cuts = {"one": [], "head and body": [whole.index(b"\r\n\r\n") + 4], "bytes": list(range(1, len(whole)))}[pieces]
    async with serve(app=report) as found, found.wire() as wire:
        for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            await wire.send(whole[start:end])
        status, told = await wire.answer()
        assert (status, told.split()[0]) == (200, b"%d" % len(SMUGGLED))
        assert b"upgrade" not in told
        await wire.send(BEHIND)
        assert await wire.answer() == (200, b"3 content-length,host")


async def test_requests_behind_one_with_an_upgrade_were_lost() -> None:
    first = b"GET /app HTTP/1.1\r\n" + HOST + UPGRADES["h2c"] + b"\r\n"
    async with serve(app=report) as found, found.wire(first * 5 + BEHIND) as wire:
        for _ in range(5):
            assert (await wire.answer())[0] == 200
        assert await wire.answer() == (200, b"3 content-length,host")


async def test_the_head_of_a_request_with_an_upgrade_has_the_same_limits() -> None:
    async with serve(ServerLimits(max_headers=5, head_seconds=1.0), app=report) as found:
        assert b" 431 " in await found.ask(b"GET / HTTP/1.1\r\n" + HOST + b"a: b\r\n" * 5 + UPGRADES["h2c"] + b"\r\n")
        assert b" 408 " in await found.ask(b"GET / HTTP/1.1\r\n" + HOST + UPGRADES["h2c"])


@pytest.mark.parametrize("target", [b"/app", b"127.0.0.1:80"])
async def test_what_follows_a_connect_is_no_request(target: bytes) -> None:
    async with serve(app=report) as found:
        answer = await found.ask(b"CONNECT " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n" + SMUGGLED)
        assert answer.startswith(b"HTTP/1.1 405 ")
        assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("path", [b"/invocations", b"/healthz", b"/nothing", b"/chat/api/me"])
async def test_a_server_of_others_served_the_body_as_the_next_request(path: bytes, body: str) -> None:
    """Uvicorn reads it so, and can only be told to close the connection."""
    app = AgentFrameworkHost(parrot(), channels=[InvocationsChannel(), WebChatChannel()]).app
    config = uvicorn.Config(app, port=0, log_config=None, http="httptools", timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started)
        wire = Served(server, server.servers[0].sockets[0].getsockname()[1])  # pyright: ignore[reportArgumentType]
        head = b"POST " + path + b" HTTP/1.1\r\n" + HOST + UPGRADES["h2c"]
        whole = head + BODIES[body]
        async with wire.wire(whole[: whole.index(b"\r\n\r\n") + 4]) as one:
            answer = one.reader.readuntil(b"\r\n\r\n")
            assert b"connection: close" in (await answer).lower()
            await one.send(whole[len(head) :])
            assert b"HTTP/1.1" not in await one.rest()
    finally:
        server.should_exit = True
        await task
