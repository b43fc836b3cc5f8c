"""Servers in processes of their own: where they listen, and whether they do."""

import socket

import httpx


def free_port() -> int:
    """A port of the loopback address that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


async def is_ready(client: httpx.AsyncClient) -> bool:
    """Whether the server answers, and is ready to work."""
    try:
        return (await client.get("/readyz")).status_code == 200
    except httpx.TransportError:
        return False
