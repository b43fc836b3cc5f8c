"""The connection to a gateway: opened, pinged, bounded, and made anew; against real servers on loopback."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from frontdesk.errors import PushError, PushRefusedError
from frontdesk.outbound.platform_socket import PlatformConnection, PlatformSocket, SocketClosedError
from frontdesk.secret import Secret
from tests.outbound.origin import SECRET, Names

Handler = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def gateway(handler: Handler, **options: Any) -> AsyncIterator[str]:
    async with serve(handler, "127.0.0.1", 0, **options) as server:
        yield f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"


def socket_for(url: str, **settings: Any) -> PlatformSocket:
    return PlatformSocket([url], **{"allow_private": True, "first_pause": 0.001, "longest_pause": 0.004, **settings})


async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message)


async def test_messages_go_both_ways_and_secrets_to_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    heads: list[Any] = []

    async def handler(connection: ServerConnection) -> None:
        heads.append(connection.request)
        await echo(connection)

    async with gateway(handler, logger=logging.Logger("apart")) as url:
        socket = socket_for(url, headers={"Authorization": Secret(f"Bot {SECRET}")})
        async with socket.connect(Secret(f"{url}/?ticket={SECRET}")) as connection:
            await connection.send("hello")
            assert await connection.receive() == "hello"
    (head,) = heads
    assert head.path == f"/?ticket={SECRET}"
    assert (head.headers["Authorization"], head.headers["User-Agent"]) == (f"Bot {SECRET}", "frontdesk")
    assert "Sec-WebSocket-Extensions" not in head.headers
    assert SECRET not in caplog.text


async def test_a_frame_that_is_too_large_ends_the_connection() -> None:
    async def flood(connection: ServerConnection) -> None:
        await connection.send("x" * 65)
        await connection.wait_closed()

    async with gateway(flood) as url, socket_for(url, max_bytes=64).connect(url) as connection:
        with pytest.raises(SocketClosedError):
            await connection.receive()


async def test_a_platform_that_answers_no_ping_is_gone() -> None:
    async def serve_silently(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from websockets.utils import accept_key

        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        key = next(line for line in head.split("\r\n") if line.lower().startswith("sec-websocket-key")).split(": ")[1]
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + f"Sec-WebSocket-Accept: {accept_key(key)}\r\n\r\n".encode()
        )
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve_silently, "127.0.0.1", 0)
    url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with pytest.raises(SocketClosedError) as caught:
        async with socket_for(url, ping_seconds=0.05).connect(url) as connection:
            await connection.receive()
    assert caught.value.close_code is None
    server.close()


async def test_a_connection_is_followed_by_the_next() -> None:
    async def leave(connection: ServerConnection) -> None:
        await connection.send(str(connection.request and connection.request.path))
        await connection.close(4000)

    urls: list[str] = []
    served: list[str | bytes] = []
    enough = asyncio.Event()

    async with gateway(leave) as url:

        async def next_url() -> str:
            urls.append(f"{url}/{len(urls)}")
            return urls[-1]

        async def take(connection: PlatformConnection) -> None:
            served.append(await connection.receive())
            if len(served) == 4:
                enough.set()
            with pytest.raises(SocketClosedError) as caught:
                await connection.receive()
            assert caught.value.close_code == 4000
            raise caught.value

        task = asyncio.ensure_future(socket_for(url).run(next_url, take))
        await enough.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert served[:4] == ["/0", "/1", "/2", "/3"]


async def test_the_pause_grows_and_the_platform_may_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)
        if len(pauses) == 5:
            raise asyncio.CancelledError

    monkeypatch.setattr("frontdesk.outbound.platform_socket.asyncio.sleep", note)

    async def url() -> str:
        if len(pauses) == 3:
            raise PushError(retry_after=17.0)
        return "ws://127.0.0.1:1"

    async def nobody(_: PlatformConnection) -> None:
        raise AssertionError

    with pytest.raises(asyncio.CancelledError):
        await socket_for("ws://127.0.0.1:1", first_pause=1.0, longest_pause=6.0).run(url, nobody)
    assert pauses == [1.0, 2.0, 4.0, 17.0, 6.0]


async def test_a_refusal_for_good_is_not_repeated() -> None:
    def refuse(connection: ServerConnection, _: Any) -> Any:
        return connection.respond(HTTPStatus.UNAUTHORIZED, "no")

    async def never(_: PlatformConnection) -> None:
        raise AssertionError

    async with gateway(echo, process_request=refuse) as url:

        async def same() -> str:
            return url

        with pytest.raises(PushRefusedError) as caught:
            await socket_for(url).run(same, never)
    assert caught.value.code == "status_401"


@pytest.mark.parametrize("status", [301, 302, 307])
async def test_a_redirect_is_not_followed(status: int) -> None:
    paths: list[str] = []

    def move(connection: ServerConnection, request: Any) -> Any:
        paths.append(request.path)
        response = connection.respond(HTTPStatus(status), "")
        response.headers["Location"] = "/elsewhere"
        return response

    async with gateway(echo, process_request=move) as url:
        with pytest.raises(PushRefusedError):
            async with socket_for(url).connect(f"{url}/first"):
                raise AssertionError
    assert paths == ["/first"]


async def test_only_servers_of_the_platform_are_called() -> None:
    names = Names(gateway_discord_gg=[["10.0.0.7"]])
    socket = PlatformSocket(["wss://*.discord.gg"], resolve=names.resolve)
    for url in ("wss://discord.gg.evil.example", "wss://evildiscord.gg", "ws://gateway.discord.gg", "wss://discord.gg"):
        with pytest.raises(PushRefusedError, match="does not belong"):
            async with socket.connect(url):
                raise AssertionError
    with pytest.raises(PushError) as caught:
        async with socket.connect("wss://gateway.discord.gg/?v=10"):
            raise AssertionError
    assert (caught.value.code, names.asked) == ("address_refused", ["gateway.discord.gg"])


async def test_a_block_that_is_left_closes_its_connection() -> None:
    closed = asyncio.Event()

    async def handler(connection: ServerConnection) -> None:
        with pytest.raises(ConnectionClosed):
            await connection.recv()
        closed.set()

    async with gateway(handler) as url:
        with pytest.raises(KeyError):
            async with socket_for(url).connect(url):
                raise KeyError
        await closed.wait()
