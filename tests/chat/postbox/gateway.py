"""Postbox with a gateway: it sends events over a connection that the bot keeps open, until they are acknowledged."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from frontdesk.chat.abilities import UsesGateway
from frontdesk.outbound.platform_socket import PlatformSocket
from tests.chat.postbox.channel import Made, PostboxChannel
from tests.chat.postbox.platform import SECRET, TOKEN, Postbox


class ConnectedChannel(PostboxChannel, UsesGateway):
    """Listens to Postbox."""

    def __init__(self, *, gateway: str, **settings: Any) -> None:
        super().__init__(transport="connection", **settings)
        self._gateway = gateway
        self._socket = PlatformSocket([gateway], allow_private=True)

    async def listen(self, take: Callable[[bytes], Awaitable[None]]) -> None:
        async with self._socket.connect(self._gateway) as connection:
            while True:
                event = await connection.receive()
                await take(event if isinstance(event, bytes) else event.encode())
                await connection.send(msgspec.json.decode(event, type=Made).id)


class GatewayPostbox(Postbox):
    """Sends all that was not acknowledged to whoever connects."""

    def __init__(self) -> None:
        super().__init__()
        self.gateway = ""
        self.connections: list[ServerConnection] = []
        """Those that are open."""
        self.opened = 0
        self.acknowledged: list[str] = []

    async def deliver_events(self) -> None:
        """Send nothing to a webhook."""

    async def cut(self) -> None:
        """Break the connections off."""
        for connection in self.connections:
            connection.transport.abort()

    async def serve(self, connection: ServerConnection) -> None:
        """Send events to one connection, and take its acknowledgements."""
        self.connections.append(connection)
        self.opened += 1
        self.change()
        sending = asyncio.create_task(self._send_events(connection))
        try:
            async for event_id in connection:
                self.acknowledged.append(str(event_id))
                self.change()
        except ConnectionClosed:
            pass
        finally:
            sending.cancel()
            self.connections.remove(connection)
            self.change()

    async def _send_events(self, connection: ServerConnection) -> None:
        sent = set(self.acknowledged)

        async def is_behind() -> bool:
            return len(self.bodies) > len(sent)

        while True:
            await self.until(is_behind)
            for event_id in [event_id for event_id in self.bodies if event_id not in sent]:
                sent.add(event_id)
                await connection.send(self.bodies[event_id])


@asynccontextmanager
async def gateway_postbox() -> AsyncIterator[GatewayPostbox]:
    """Start the platform with its gateway."""
    async with GatewayPostbox() as platform, serve(platform.serve, "127.0.0.1", 0) as server:
        platform.gateway = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        yield platform


def connect_channel(platform: GatewayPostbox) -> ConnectedChannel:
    """Return a channel that listens to a platform."""
    return ConnectedChannel(
        gateway=platform.gateway, url=platform.url, token=TOKEN, secret=SECRET, allow_private=True, live="off"
    )
