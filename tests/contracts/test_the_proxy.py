"""The proxy of the test kit passes on what comes, and fails as it is told to."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontdesk_testing import TcpProxy
from tests.scenarios.desk import until


async def _shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says what it hears, louder; at the end it says so."""
    try:
        while piece := await reader.read(1000):
            writer.write(piece.upper())
        writer.write(b"THE END")
        await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


@pytest.fixture
async def proxy() -> AsyncIterator[TcpProxy]:
    server = await asyncio.start_server(_shout, "127.0.0.1", 0)
    async with TcpProxy(("127.0.0.1", server.sockets[0].getsockname()[1])) as proxy:
        yield proxy
    server.close()


async def _open(proxy: TcpProxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", proxy.port)


async def _say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, words: bytes) -> bytes:
    writer.write(words)
    return await asyncio.wait_for(reader.readexactly(len(words)), 60)


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection ends, however it does."""
    try:
        return await asyncio.wait_for(reader.read(), 60)
    except ConnectionError:
        return b""


async def test_both_directions_are_passed_on_to_their_end(proxy: TcpProxy) -> None:
    reader, writer = await _open(proxy)
    assert await _say(reader, writer, b"hello") == b"HELLO"
    assert await _say(reader, writer, b"x" * 300_000) == b"X" * 300_000
    writer.write_eof()
    assert await asyncio.wait_for(reader.read(), 60) == b"THE END"
    await until(lambda: proxy.connections == 0)


async def test_connections_are_cut(proxy: TcpProxy) -> None:
    connections = [await _open(proxy) for _ in range(3)]
    for reader, writer in connections:
        await _say(reader, writer, b"hello")
    assert proxy.connections == 3
    proxy.cut()
    for reader, _ in connections:
        assert await _rest(reader) == b""
    await until(lambda: proxy.connections == 0)
    assert await _say(*await _open(proxy), b"again") == b"AGAIN"


async def test_new_connections_are_refused_and_old_ones_go_on(proxy: TcpProxy) -> None:
    reader, writer = await _open(proxy)
    await _say(reader, writer, b"hello")
    port = proxy.port
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        await _open(proxy)
    assert await _say(reader, writer, b"still") == b"STILL"
    await proxy.accept()
    assert proxy.port == port
    assert await _say(*await _open(proxy), b"again") == b"AGAIN"


async def test_what_comes_back_can_end_before_what_goes_there(proxy: TcpProxy) -> None:
    reader, writer = await _open(proxy)
    await _say(reader, writer, b"hello")
    proxy.half_close()
    assert await asyncio.wait_for(reader.read(), 60) == b""
    writer.write(b"nobody answers")
    writer.write_eof()
    await until(lambda: proxy.connections == 0)


async def test_what_is_held_back_comes_later(proxy: TcpProxy) -> None:
    reader, writer = await _open(proxy)
    await _say(reader, writer, b"hello")
    proxy.hold()
    answer = asyncio.create_task(_say(reader, writer, b"held"))
    done, _ = await asyncio.wait([answer], timeout=0.05)
    assert not done
    proxy.flow()
    assert await answer == b"HELD"


async def test_every_piece_is_delayed(proxy: TcpProxy) -> None:
    reader, writer = await _open(proxy)
    proxy.delay = 0.02
    began = asyncio.get_running_loop().time()
    assert await _say(reader, writer, b"slow") == b"SLOW"
    assert asyncio.get_running_loop().time() - began >= 0.04


async def test_a_server_that_is_not_there_is_a_cut_connection(tmp_path: Path) -> None:
    async with TcpProxy(str(tmp_path / "missing.sock")) as proxy:
        reader, _ = await _open(proxy)
        assert await _rest(reader) == b""


async def test_it_leads_to_a_socket_of_this_machine_too(tmp_path: Path) -> None:
    server = await asyncio.start_unix_server(_shout, tmp_path / "s")
    async with TcpProxy(str(tmp_path / "s")) as proxy:
        assert await _say(*await _open(proxy), b"hello") == b"HELLO"
    server.close()
