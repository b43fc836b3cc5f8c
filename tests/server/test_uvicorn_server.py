"""The server's end, whatever its clients do."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from websockets.asyncio.client import connect

from frontdesk import AgentFrameworkHost
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.server.uvicorn_server import Server, run
from tests.scenarios.desk import until


async def _chatter(text: str) -> AsyncIterator[str]:
    while True:
        await asyncio.sleep(0)
        yield "x" * 100_000


class _Goodbye:
    """A server with one WebSocket, whose client has said goodbye while much is still to be sent, and does not read."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        host = AgentFrameworkHost(_chatter, channels=[ResponsesChannel()], on_shutdown=[self._end])
        self.server = Server(uvicorn.Config(host.app, port=0, log_config=None, timeout_graceful_shutdown=5))
        self._serving: asyncio.Task[None] | None = None

    async def _end(self) -> None:
        self.ended.append("ended")

    async def __aenter__(self) -> Any:
        server = self.server
        self._serving = asyncio.create_task(server.serve())
        await until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        self._client = client = await connect(
            f"ws://127.0.0.1:{port}/responses", compression=None, max_queue=1, proxy=None
        )
        client.transport.pause_reading()
        await client.send('{"type": "response.create", "input": "go"}')
        found: list[Any] = list(server.server_state.connections)
        (connection,) = found
        await until(lambda: not connection.writable.is_set())
        client.protocol.send_close(1000)
        client.transport.write(b"".join(client.protocol.data_to_send()))
        await until(lambda: connection.transport.is_closing() and not server.server_state.tasks)
        assert connection in server.server_state.connections
        return connection

    async def __aexit__(self, *_: object) -> None:
        self.server.should_exit = True
        if self._serving is not None:
            await self._serving
        self._client.transport.abort()


async def test_a_client_that_says_goodbye_and_does_not_read_on_does_not_spoil_the_end() -> None:
    world = _Goodbye()
    async with world:
        pass
    assert world.ended == ["ended"]


async def test_a_goodbye_that_comes_while_the_server_ends_does_not_spoil_the_end() -> None:
    world = _Goodbye()
    async with world as connection:
        # The step of the server's end in which uvicorn's own protocol failed.
        connection.shutdown()
        await until(lambda: connection not in world.server.server_state.connections)
    assert world.ended == ["ended"]


def test_a_server_that_did_not_start_says_so_to_the_shell() -> None:
    async def fail() -> None:
        raise RuntimeError("no database")

    host = AgentFrameworkHost(_chatter, channels=[ResponsesChannel()], on_startup=[fail])
    with pytest.raises(SystemExit) as caught:
        run(host.app, port=0, log_config=None)
    assert caught.value.code == 3
