"""A host with the page in a process of its own, made to be killed in mid-answer."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
from agent_framework import AgentResponseUpdate

from frontdesk import AgentFrameworkHost
from frontdesk.channels.web import WebChatChannel
from frontdesk_testing import EchoAgent
from tests.scenarios.desk import until


class Waiter(EchoAgent):
    """Says its first word at once, and the others when a file is there."""

    def __init__(self, go: Path) -> None:
        super().__init__()
        self._go = go

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        first, *others = [update async for update in super().speak(words)]
        yield first
        await until(self._go.exists, within=60)
        for update in others:
            yield update


def serve(state_dir: str, go: str, port: str) -> None:
    """Serves the host on a port, or on any; says which on the output."""
    host = AgentFrameworkHost(Waiter(Path(go)), channels=[WebChatChannel()], state_dir=state_dir)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(port)))
    # From here on a client that comes too early waits.
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    server = uvicorn.Server(uvicorn.Config(host.app, lifespan="on", log_config=None, access_log=False))
    asyncio.run(server.serve(sockets=[listener]))
