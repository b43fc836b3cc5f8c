"""The connection was cut in and around every part of a stream; what was read before and after is every event, once."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing.proxy import TcpProxy
from tests.scenarios.cast import spell
from tests.scenarios.desk import serve_host

pytestmark = pytest.mark.timeout(300)


class CuttingProxy(TcpProxy):
    """Passes on so many bytes of an answer, and ends the connection in the middle of whatever that is."""

    def __init__(self, upstream: tuple[str, int]) -> None:
        super().__init__(upstream)
        self.most: int | None = None

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        if self.most is None or target not in self._pairs:
            return await super()._pass_on(source, target)
        left = self.most
        with suppress(OSError):
            while left and (piece := await source.read(left)):
                left -= len(piece)
                target.write(piece)
                await target.drain()
            target.close()
        self._pairs[target].transport.abort()


@asynccontextmanager
async def serve_proxied() -> AsyncIterator[CuttingProxy]:
    """A host behind a network that fails."""
    channels = [InvocationsChannel(), ResponsesChannel()]
    host = AgentFrameworkHost(spell, channels=channels, max_background_runs=1000)
    async with serve_host(host) as server:
        port = server.servers[0].sockets[0].getsockname()[1]
        async with CuttingProxy(("127.0.0.1", port)) as proxy:
            yield proxy


async def ask(proxy: CuttingProxy, method: str, path: str, most: int | None = None, **body: Any) -> bytes:
    """Everything that came back before the connection ended."""
    proxy.most = most
    headers = body.pop("headers", "")
    sent = json.dumps(body).encode() if body else b""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n{headers}"
    writer.write(f"{head}content-type: application/json\r\ncontent-length: {len(sent)}\r\n\r\n".encode() + sent)
    said = bytearray()
    with suppress(OSError):
        while piece := await reader.read(65_536):
            said += piece
    writer.close()
    return bytes(said)


def read(said: bytes) -> list[str]:
    """The data of the events that came whole; a chunk's own length is no part of them."""
    _, _, rest = said.partition(b"\r\n\r\n")
    body = b""
    while rest:
        size, found, rest = rest.partition(b"\r\n")
        if not found or not size:
            break
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    blocks = body.split(b"\n\n")[:-1]
    return [block.decode().partition("data: ")[2] for block in blocks if not block.startswith(b":")]


def cuts(said: bytes) -> list[int]:
    """Return where to cut an answer: around the end of each line, chunk and event, and once in the middle of each."""
    ends = [0, *(match.end() for match in re.finditer(rb"(\r\n|\n)+", said))]
    places = {end + step for end in ends for step in (-2, -1, 0, 1)} | {sum(pair) // 2 for pair in pairwise(ends)}
    return sorted(place for place in places if 0 < place < len(said))


async def test_a_reader_of_responses_lost_its_connection_anywhere() -> None:
    async with serve_proxied() as proxy:
        body = {"model": "m", "input": "a b", "background": True, "stream": True}
        told = await ask(proxy, "POST", "/responses", **body)
        events = read(told)
        assert events, told
        path = f"/responses/{json.loads(events[0])['response']['id']}?stream=true"
        whole = await ask(proxy, "GET", path)
        assert read(whole) == events
        resumed: set[int] = set()
        for most in cuts(whole):
            first = read(await ask(proxy, "GET", path, most))
            assert first == events[: len(first)]
            # What follows an event is the same, wherever behind it the cut was.
            if len(first) not in resumed:
                resumed.add(len(first))
                after = f"&starting_after={len(first) - 1}" if first else ""
                assert [*first, *read(await ask(proxy, "GET", path + after))] == events
        assert resumed == set(range(len(events) + 1))


async def test_a_new_invocation_lost_its_connection_anywhere() -> None:
    async with serve_proxied() as proxy:
        body = {"message": "abc", "background": True, "stream": True}
        told = await ask(proxy, "POST", "/invocations", headers="x-agent-invocation-id: whole\r\n", **body)
        for most in cuts(told):
            name = f"run{most}"
            first = read(await ask(proxy, "POST", "/invocations", most, headers=_name_header(name), **body))
            after = f"&starting_after={len(first) - 1}" if first else ""
            rest = read(await ask(proxy, "GET", f"/invocations/{name}?stream=true{after}"))
            pieces = [json.loads(one) for one in (*first, *rest)]
            assert "".join(one["text"] for one in pieces[1:-1]) == pieces[-1]["text"] == "abc"
            assert (pieces[-1]["status"], len(pieces)) == ("completed", 5)


def _name_header(name: str) -> str:
    return f"x-agent-invocation-id: {name}\r\n"
