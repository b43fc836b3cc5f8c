"""Uvicorn, with an end that no client can spoil."""

import asyncio
import socket
from contextlib import suppress
from typing import Any

import uvicorn

from frontdesk.kit.redaction import install

_NOT_STARTED = 3


class Server(uvicorn.Server):
    """Serves an app until it is told to stop."""

    def __init__(self, config: uvicorn.Config) -> None:
        # Else a request can see the context variables of the one before it on the same connection, which behind a
        # proxy is somebody else's.
        config.reset_contextvars = True
        super().__init__(config)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # A WebSocket whose client has said goodbye and does not read on makes uvicorn fail here, before it tells the
        # app: nothing would be drained or closed.
        connections: list[Any] = list(self.server_state.connections)
        for connection in connections:
            if getattr(connection, "scheme", "") in ("ws", "wss") and connection.transport.is_closing():
                connection.transport.abort()
        # They are gone in the loop's next turn.
        await asyncio.sleep(0)
        await super().shutdown(sockets)


def run(app: Any, **options: Any) -> None:
    """Runs a server to its end, as `uvicorn.run` does."""
    server = Server(uvicorn.Config(app, **options))
    # After the server has set its handlers up.
    install()
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        raise SystemExit(_NOT_STARTED)
