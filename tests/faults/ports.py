"""Servers in processes of their own: where they listen, and whether they do."""

import socket
from contextlib import suppress
from random import SystemRandom

import httpx

_FIRST, _LAST = 20_000, 32_000
"""The range of ports to choose from: below those that the system itself gives to clients and to servers on port 0."""
_random = SystemRandom()


def free_port() -> int:
    """A port of the loopback address that nobody uses, and that stays free while a server on it is started again."""
    while True:
        port = _random.randrange(_FIRST, _LAST)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


async def is_ready(client: httpx.AsyncClient) -> bool:
    """Whether the server answers, and is ready to work."""
    try:
        return (await client.get("/readyz")).status_code == 200
    except httpx.TransportError:
        return False
