"""What a stranger sends before they are known is bounded: bytes, parts, time and connections."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from frontdesk import AgentFrameworkHost, ChannelConfigurationError, ServerLimits
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.http.server_limits import count_allowed_connections
from frontdesk.server.uvicorn_server import Server
from tests.scenarios.cast import parrot
from tests.scenarios.desk import DEADLINE, until

GET = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n"
POST = b"POST /app HTTP/1.1\r\nhost: 127.0.0.1\r\n"
SHORT = ServerLimits(head_seconds=0.05)
KIB = 1024


@dataclass
class Wire:
    """A raw connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def rest(self) -> bytes:
        """All that comes until the server closes."""
        received = b""
        try:
            async with asyncio.timeout(DEADLINE):
                while piece := await self.reader.read(65536):
                    received += piece
        except ConnectionError:
            pass
        return received

    async def answer(self) -> tuple[int, bytes]:
        """One answer, with its body."""
        async with asyncio.timeout(DEADLINE):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            return int(head.split()[1]), await self.reader.readexactly(length)

    async def until_closed(self, piece: bytes, most: int) -> int:
        """Sends a piece over and over until the server closes; returns how many bytes were taken."""
        sent = 0
        try:
            async with asyncio.timeout(DEADLINE):
                while sent < most and not self.reader.at_eof():
                    await self.send(piece)
                    sent += len(piece)
                    # A writer that has room does not let others run.
                    await asyncio.sleep(0)
        except ConnectionError:
            pass
        return sent


@dataclass
class Served:
    """A started server."""

    server: Server
    port: int

    @asynccontextmanager
    async def wire(self, first: bytes = b"") -> AsyncIterator[Wire]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            wire = Wire(reader, writer)
            await wire.send(first)
            yield wire
        finally:
            writer.close()

    async def ask(self, data: bytes) -> bytes:
        async with self.wire(data) as wire:
            return await wire.rest()

    @property
    def open(self) -> int:
        return len(self.server.server_state.connections)


App = Callable[[Scope, Receive, Send], Awaitable[None]]


@asynccontextmanager
async def serve(limits: ServerLimits | None = None, *, app: Any = None, **options: Any) -> AsyncIterator[Served]:
    host = AgentFrameworkHost(parrot(), channels=[InvocationsChannel(), ResponsesChannel()])
    config = uvicorn.Config(app or host.app, port=0, log_config=None, timeout_graceful_shutdown=5, **options)
    server = Server(config) if limits is None else Server(config, limits)
    task = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    try:
        yield Served(server, server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        await task


async def report(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that reads the whole body, then says how long it was and which headers it was called with."""
    if scope["type"] != "http":
        return
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    names = ",".join(sorted(name.decode() for name, _ in scope["headers"]))
    body = f"{size} {names}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize(
    ("head", "piece", "status"),
    [
        (b"GET /", b"a" * KIB, 414),
        (b"GET /?", b"%41" * KIB, 414),
        (GET + b"x-endless: ", b"a" * KIB, 431),
        (GET + b"x-endless", b"a" * KIB, 431),
        (GET, b"a: b\r\n" * 200, 431),
        (GET + b"x-folded: a\r\n", b" " * KIB, 400),
        (b"", b"\r\n" * KIB, 431),
        (b"GET", b" " * KIB, 431),
    ],
    ids=["path", "query", "value", "name", "many", "folded", "line-ends", "method"],
)
async def test_a_head_without_end_was_read_for_ever(head: bytes, piece: bytes, status: int) -> None:
    async with serve() as found:
        async with found.wire(head) as wire:
            sent = await wire.until_closed(piece, 64 * KIB * KIB)
            # What the sockets of both sides hold was sent too, and never read.
            assert sent < 16 * KIB * KIB
        await until(lambda: not found.open)
        # Once more with little, so that the answer is not lost with the connection.
        many = 2 * 32 * KIB // len(piece)
        assert (await found.ask(head + piece * many)).split()[1] == b"%d" % status


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /healthz?" + b"a" * 8 * KIB + b" HTTP/1.1\r\nhost: a\r\n", 414),
        (GET + b"x: " + b"a" * 16 * KIB + b"\r\n", 431),
        (GET + b"".join(b"x%d: a\r\n" % number for number in range(100)), 431),
        (GET + b"".join(b"x%d: %b\r\n" % (number, b"a" * 8 * KIB) for number in range(4)), 431),
    ],
    ids=["url", "header", "headers", "head"],
)
@pytest.mark.parametrize("pieces", [1, 3])
async def test_a_whole_head_that_is_too_large_is_refused(head: bytes, status: int, pieces: int) -> None:
    async with serve() as found, found.wire() as wire:
        size = len(head) // pieces + 1
        for start in range(0, len(head), size):
            await wire.send(head[start : start + size])
        await wire.send(b"\r\n")
        assert (await wire.rest()).startswith(b"HTTP/1.1 %d " % status)


async def test_a_head_within_the_limits_is_welcome() -> None:
    async with serve() as found, found.wire() as wire:
        await wire.send(b"GET /healthz?" + b"a" * (8 * KIB - 20) + b" HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        await wire.send(b"x: " + b"a" * (15 * KIB) + b"\r\n")
        await wire.send(b"".join(b"x%d: a\r\n" % number for number in range(90)) + b"\r\n")
        assert (await wire.answer())[0] == 200


@pytest.mark.parametrize("sent", [b"", b"GET", GET, GET + b"x", b"\r\n"], ids=["nothing", "3", "line", "name", "end"])
async def test_half_sent_heads_were_held_open(sent: bytes) -> None:
    async with serve(SHORT) as found, found.wire(sent) as wire:
        received = await wire.rest()
        assert received.startswith(b"HTTP/1.1 408 ") if sent.strip() else received == b""
        await until(lambda: not found.open)


async def test_two_hundred_half_sent_heads_were_held_open() -> None:
    async with serve(SHORT) as found:
        received = await asyncio.gather(*(found.ask(GET) for _ in range(200)))
        assert {one[:13] for one in received} == {b"HTTP/1.1 408 "}
        await until(lambda: not found.open)


async def test_a_head_that_trickles_in_does_not_renew_its_time() -> None:
    limits = ServerLimits(head_seconds=0.05, max_head_bytes=2**30)
    async with serve(limits) as found, found.wire(GET) as wire:
        # It ends only because the server closes.
        assert await wire.until_closed(b"x", 2**30) > 0
        await until(lambda: not found.open)


async def test_half_a_head_behind_a_request_was_held_open() -> None:
    async with serve(SHORT) as found, found.wire(GET + b"\r\n") as wire:
        assert (await wire.answer())[0] == 200
        await wire.send(b"GET /heal")
        assert (await wire.rest()).startswith(b"HTTP/1.1 408 ")


async def test_the_rest_of_a_body_kept_a_connection_open_after_its_refusal() -> None:
    async with serve(SHORT) as found:
        head = b"POST /nowhere HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000000\r\n\r\n"
        async with found.wire(head) as wire:
            assert (await wire.answer())[0] == 404
            # One byte was enough: it ended the time of the idle connection, and none came after it.
            await wire.send(b"a")
            assert await wire.rest() == b""
        await until(lambda: not found.open)


async def test_a_connection_that_waits_for_its_answer_is_not_late() -> None:
    go_on = asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await go_on.wait()
            await report(scope, receive, send)

    async with serve(SHORT, app=slow) as found, found.wire(GET + b"\r\n") as wire, found.wire(GET) as late:
        # The one whose head is half has come later, and is gone.
        await late.rest()
        assert found.open == 1
        go_on.set()
        assert (await wire.answer())[0] == 200


async def test_a_connection_that_asks_for_nothing_more_is_closed() -> None:
    async with serve(timeout_keep_alive=1) as found, found.wire(GET + b"\r\n") as wire:
        assert (await wire.answer())[0] == 200
        assert found.open == 1
        assert await wire.rest() == b""
        await until(lambda: not found.open)


async def test_an_answer_that_takes_longer_than_a_connection_may_be_idle_arrives() -> None:
    gone = asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/slow":
            await gone.wait()
        await report(scope, receive, send)

    async with serve(app=slow, timeout_keep_alive=1) as found, found.wire(GET + b"\r\n") as idle, found.wire() as busy:
        assert (await idle.answer())[0] == 200
        await busy.send(POST + b"content-length: 0\r\n\r\n")
        assert (await busy.answer())[0] == 200
        await busy.send(b"GET /slow HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        # By the time that the other one was closed, this one would have been too.
        assert await idle.rest() == b""
        gone.set()
        assert (await busy.answer())[0] == 200


@pytest.mark.parametrize("end", [b"x-forwarded-for: 127.0.0.1\r\nauthorization: a\r\n\r\n", b"\r\n"])
async def test_trailers_were_taken_for_headers(end: bytes) -> None:
    request = POST + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n" + end
    async with serve(app=report) as found, found.wire(request) as wire:
        assert await wire.answer() == (200, b"3 host,transfer-encoding")


@pytest.mark.parametrize(
    ("begin", "piece"),
    [(b"0\r\nx: ", b"a" * KIB), (b"0\r\n", b"x: y\r\n" * 200), (b"1;", b"a" * KIB)],
    ids=["trailer", "trailers", "extension"],
)
async def test_trailers_without_end_were_kept(begin: bytes, piece: bytes) -> None:
    async with serve(app=report) as found:
        async with found.wire(POST + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n" + begin) as wire:
            assert await wire.until_closed(piece, 64 * KIB * KIB) < 16 * KIB * KIB
        await until(lambda: not found.open)


async def test_a_flood_of_pipelined_requests_was_kept() -> None:
    begun: list[Scope] = []

    async def stuck(scope: Scope, receive: Receive, send: Send) -> None:
        begun.append(scope)
        while scope["type"] == "http" and (await receive())["type"] != "http.disconnect":
            pass

    async with serve(app=stuck) as found, found.wire((GET + b"\r\n") * 5000) as wire:
        assert await wire.rest() == b""
        await until(lambda: not found.open)
        assert sum(scope["type"] == "http" for scope in begun) <= 1


async def test_a_request_with_others_behind_it_was_not_told_that_its_client_had_left() -> None:
    began, told = asyncio.Event(), asyncio.Event()

    async def waits(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            began.set()
            while (await receive())["type"] != "http.disconnect":
                pass
            told.set()

    async with serve(app=waits) as found:
        async with found.wire((GET + b"\r\n") * 3):
            await began.wait()
        async with asyncio.timeout(DEADLINE):
            await told.wait()


async def test_pipelined_requests_are_answered_in_their_order() -> None:
    async with serve(app=report) as found, found.wire() as wire:
        request = b"POST /app HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n%b"
        await wire.send(b"".join(request % (size, b"a" * size) for size in range(16)))
        answers = [await wire.answer() for _ in range(16)]
        assert answers == [(200, b"%d content-length,host" % size) for size in range(16)]
        await wire.send(request % (3, b"abc"))
        assert await wire.answer() == (200, b"3 content-length,host")


@pytest.mark.parametrize("chunked", [False, True])
async def test_large_bodies_arrive_whole(chunked: bool) -> None:
    size = 5_000_000

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b"a" * (size // 5)

    async with serve(app=report) as found, httpx.AsyncClient(trust_env=False, timeout=DEADLINE) as client:
        for _ in range(2):
            content = pieces() if chunked else b"a" * size
            response = await client.post(f"http://127.0.0.1:{found.port}/app", content=content)
            assert response.text.split()[0] == str(size)


async def test_bad_bytes_behind_a_request_did_not_garble_its_answer() -> None:
    go_on = asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await go_on.wait()

    async with serve(app=slow) as found, found.wire(GET + b"\r\n" + b"\x00\x01\r\n\r\n") as wire:
        assert await wire.rest() == b""
        go_on.set()


class TestConnections:
    async def test_more_connections_than_allowed_were_kept(self) -> None:
        async with serve(ServerLimits(max_connections=3)) as found, found.wire() as one, found.wire(), found.wire():
            await until(lambda: found.open == 3)
            for _ in range(5):
                assert (await found.ask(b"")).startswith(b"HTTP/1.1 503 ")
            await one.send(GET + b"\r\n")
            assert (await one.answer())[0] == 200

    async def test_a_place_that_is_free_again_is_given_away(self) -> None:
        async with serve(ServerLimits(max_connections=1)) as found:
            async with found.wire(GET + b"\r\n") as wire:
                assert (await wire.answer())[0] == 200
                assert (await found.ask(b"")).startswith(b"HTTP/1.1 503 ")
            await until(lambda: not found.open)
            async with found.wire(GET + b"\r\n") as wire:
                assert (await wire.answer())[0] == 200

    async def test_a_flood_of_connections_is_one_line_of_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        async with serve(ServerLimits(max_connections=1)) as found, found.wire():
            await until(lambda: found.open == 1)
            await asyncio.gather(*(found.ask(b"") for _ in range(50)))
        assert len([one for one in caplog.records if "connection limit reached" in one.getMessage()]) == 1

    @pytest.mark.parametrize(
        ("wanted", "files", "allowed"),
        [(4096, None, 4096), (4096, 20_000, 4096), (4096, 1024, 896), (100, 1024, 100), (4096, 128, 64), (9, 8, 1)],
    )
    def test_files_are_left_for_the_host_itself(self, wanted: int, files: int | None, allowed: int) -> None:
        assert count_allowed_connections(wanted, files) == allowed


class TestWebSockets:
    async def test_a_handshake_is_welcome_and_outlives_the_time_of_heads(self) -> None:
        async with serve(SHORT) as found:
            url = f"ws://127.0.0.1:{found.port}/responses"
            async with connect(url, proxy=None) as client, found.wire(GET) as late:
                await late.rest()
                await client.send('{"type": "response.create", "input": "hi"}')
                assert "response.created" in str(await client.recv())

    @pytest.mark.parametrize(
        ("path", "headers", "status"),
        [
            ("/responses?" + "a" * 9 * KIB, {}, 414),
            ("/responses", {"x": "a" * 20 * KIB}, 431),
            ("/responses", {f"x{number}": "a" for number in range(101)}, 431),
        ],
        ids=["url", "header", "headers"],
    )
    async def test_the_head_of_a_handshake_has_the_same_limits(self, path: str, headers: Any, status: int) -> None:
        async with serve() as found:
            with pytest.raises(InvalidStatus) as caught:
                await connect(f"ws://127.0.0.1:{found.port}{path}", additional_headers=headers, proxy=None)
            assert caught.value.response.status_code == status

    @pytest.mark.parametrize("pause", [False, True])
    async def test_a_request_before_a_handshake_was_never_told_that_its_client_had_left(self, pause: bool) -> None:
        began, told = asyncio.Event(), asyncio.Event()

        async def waits(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                began.set()
                while (await receive())["type"] != "http.disconnect":
                    pass
                told.set()

        handshake = (
            GET + b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
            b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        async with serve(app=waits) as found, found.wire(GET + b"\r\n" + (b"" if pause else handshake)) as wire:
            await began.wait()
            if pause:
                await wire.send(handshake)
            assert await wire.rest() == b""
            async with asyncio.timeout(DEADLINE):
                await told.wait()

    @pytest.mark.parametrize(
        "header",
        [b"content-length: 100", b"transfer-encoding: chunked", b"x: " + b"a" * 9 * KIB],
        ids=["length", "chunks", "header"],
    )
    async def test_a_handshake_that_could_not_be_read_was_held_open(self, header: bytes) -> None:
        head = b"GET /responses HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        async with serve() as found, found.wire(head + header + b"\r\n\r\n") as wire:
            assert (await wire.rest()).startswith(b"HTTP/1.1 400 ")
            await until(lambda: not found.open)


@pytest.mark.parametrize(
    ("limits", "options", "told"),
    [
        (ServerLimits(max_headers=0), {}, "max_headers must be positive"),
        (ServerLimits(head_seconds=-1), {}, "head_seconds must be positive"),
        (ServerLimits(max_head_bytes=100), {}, "max_url_bytes is larger than max_head_bytes"),
        (ServerLimits(), {"http": "h11"}, "http='h11'"),
    ],
)
def test_limits_that_would_not_hold_are_refused(limits: ServerLimits, options: Any, told: str) -> None:
    with pytest.raises(ChannelConfigurationError, match=told):
        Server(uvicorn.Config(report, log_config=None, **options), limits)


def test_another_protocol_is_served_without_limits_only_if_that_is_said() -> None:
    config = uvicorn.Config(report, log_config=None, http="h11")
    Server(config, None)
    assert config.http == "h11"
