"""The attacks that `make figures` runs. Each has a bounded load, and is measured on a host of its own."""

import asyncio
import json
import socket
from time import perf_counter
from typing import Any

from websockets.asyncio.client import connect
from websockets.frames import Frame, Opcode

from tests.figures.child import HOLD_SECONDS, KEY, MIB
from tests.figures.measuring import CLOSED, LONGEST, OPEN, Host, post

KIB = 1024
HEAD = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n"
CONNECTIONS = 200
SOCKETS, MAX_FILES = 1_000, 1_024
REFUSED = 8
PIPELINED = 5_000
LOG_REQUESTS, LOG_PATH = 100, 8_000
REFERENCES = 400
EMPTY_LISTS = 8 * MIB
KEYS = 400_000
BODIES, BODY = 40, 8 * MIB
WIDE_BODIES, PARTS = 12, 30_000
FRAMES = 200_000
TOOLS = 8_000
READERS = 40
HISTORY = 2 * PARTS


async def long_heads(host: Host) -> None:
    """Send heads of twice the allowed size."""
    async with host.measure():
        await host.send_all([HEAD + b"x: " + b"a" * 64 * KIB] * CONNECTIONS)


async def silent_connections(host: Host) -> None:
    """Connect and send nothing."""
    async with host.measure():
        await host.send_all([b""] * CONNECTIONS)


async def half_heads(host: Host) -> None:
    """Send nearly as much of a head as is allowed, and not its end."""
    async with host.measure():
        await host.send_all([HEAD + b"a: b\r\n" * 50 + b"x: " + b"a" * 15 * KIB] * CONNECTIONS)


async def silent_sockets(host: Host) -> None:
    """Take all connections of a host with few files."""
    async with host.measure():
        await host.send_all([b""] * SOCKETS)


async def refused_bodies(host: Host) -> None:
    """Go on sending the smallest chunks after a 401, as fast as possible."""
    lines = ["POST /v1/responses HTTP/1.1", "host: a", "content-type: application/json", "transfer-encoding: chunked"]
    head = "\r\n".join([*lines, "", ""]).encode()
    chunks = b"1\r\na\r\n" * 10_000
    async with host.measure():
        await asyncio.gather(*(host.send(head, then=chunks, until_closed=True) for _ in range(REFUSED)))


async def long_trailers(host: Host) -> None:
    """Send trailers without end behind a body."""
    head = HEAD.replace(b"GET", b"POST") + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: "
    async with host.measure():
        await host.send_all([head + b"a" * 64 * KIB] * CONNECTIONS, until_closed=True)


async def pipelined_requests(host: Host) -> None:
    """Send requests without waiting for their answers."""
    async with host.measure():
        await host.send(post("/v1/responses", b'{"input": "hold"}') + (HEAD + b"\r\n") * PIPELINED, until_closed=True)


async def paths_of_tokens(host: Host) -> None:
    """Request paths that many patterns of the redaction begin to match."""
    path = ("-eyJaaaaa." * (LOG_PATH // 10)).encode()
    async with host.measure():
        for _ in range(LOG_REQUESTS):
            await host.send(b"GET /%b HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n" % path)


async def references(host: Host) -> None:
    """Refer to one large item many times."""
    made = await host.ask("/v1/responses", {"input": "large"})
    item = {"type": "item_reference", "id": made["output"][0]["id"]}
    async with host.measure():
        await _send(host, {"input": [item] * REFERENCES + [{"role": "user", "content": "hi"}]})


async def empty_lists(host: Host) -> None:
    """Send very many values in an unknown field."""
    async with host.measure():
        await _send(host, b'{"input": "hi", "x": [%b[]]}' % (b"[]," * (EMPTY_LISTS // 3)))


async def many_keys(host: Host) -> None:
    """Send an object with very many keys."""
    body = json.dumps({"input": "hi", "x": {str(number): 0 for number in range(KEYS)}}).encode()
    async with host.measure():
        await _send(host, body)


async def large_bodies(host: Host) -> None:
    """Send large bodies at once, for runs that take some seconds."""
    await _send_bodies(host, BODIES, {"input": "x" * BODY + "hold"})


async def wide_bodies(host: Host) -> None:
    """Send bodies of very many parts at once, for runs that take some seconds."""
    await _send_bodies(host, WIDE_BODIES, {"input": [_wide(), {"role": "user", "content": "hold"}]})


async def tiny_frames(host: Host) -> None:
    """Send pings on a WebSocket as fast as possible."""
    flood = Frame(Opcode.PING, b"").serialize(mask=True) * FRAMES
    address, headers = f"ws://127.0.0.1:{host.port}/v1/responses", {"x-api-key": KEY}
    async with host.measure(), connect(address, additional_headers=headers, proxy=None) as client:
        began = perf_counter()
        client.transport.write(flood)
        await client.wait_closed()
        host.note(str(client.close_code), perf_counter() - began)


async def many_tools(host: Host) -> None:
    """Bring very many tools."""
    tools = [{"type": "function", "name": f"tool_{number}", "parameters": {}} for number in range(TOOLS)]
    async with host.measure():
        await _send(host, {"input": "hi", "tools": tools})


async def unread_streams(host: Host) -> None:
    """Ask for endless streams, and read nothing."""
    await _read_nothing(host, {"message": "endless", "stream": True})


async def unread_answers(host: Host) -> None:
    """Ask for large answers, and read nothing."""
    await _read_nothing(host, {"message": "large"})


async def wide_history(host: Host) -> None:
    """Send a small turn to a conversation of very many parts."""
    items = [{"type": "message", **_wide()}]
    conversation = await host.ask("/v1/conversations", {"items": items})
    for _ in range(HISTORY // PARTS - 1):
        await host.ask(f"/v1/conversations/{conversation['id']}/items", {"items": items})
    async with host.measure():
        await _send(host, {"input": "hi", "conversation": conversation["id"]})


def _wide() -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "input_text", "text": "x"}] * PARTS}


async def _send(host: Host, body: Any) -> None:
    await host.send(post("/v1/responses", body if isinstance(body, bytes) else json.dumps(body).encode()))


async def _send_bodies(host: Host, count: int, body: Any) -> None:
    request = post("/v1/responses", json.dumps(body).encode())
    async with host.measure():
        await host.send_all([request] * count)


async def _read_nothing(host: Host, body: Any) -> None:
    request, before = post("/invocations", json.dumps(body).encode()), host.open_files
    async with host.measure():
        began = perf_counter()
        sockets = [socket.create_connection(("127.0.0.1", host.port)) for _ in range(READERS)]
        for one in sockets:
            one.sendall(request)
        await asyncio.sleep(HOLD_SECONDS)
        # A client that reads nothing is not notified: the kernel still has data for it. A few files are the probe's.
        while (is_open := host.open_files > before + 5) and perf_counter() - began < LONGEST:  # noqa: ASYNC110
            await asyncio.sleep(0.25)
        status = OPEN if is_open else CLOSED
        for one in sockets:
            host.note(status, perf_counter() - began)
            one.close()
