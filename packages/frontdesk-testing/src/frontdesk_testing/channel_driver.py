"""The driver of a channel, for the contract of HTTP channels."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec

from frontdesk.host.host import AgentFrameworkHost
from frontdesk.interfaces.auth import HttpAuth
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.hooks import RunHook
from frontdesk_testing.agents import EchoAgent
from frontdesk_testing.ids import FakeIds
from frontdesk_testing.server import serving

TIMEOUT_SECONDS = 60.0


class ChannelDriver:
    """The channel-specific part of the contract. A subclass defines it."""

    path: str
    """The path to which a message is posted."""

    def channel(
        self,
        *,
        auth: HttpAuth | None = None,
        run_hook: RunHook | None = None,
        max_body_bytes: int | None = None,
        body_timeout: float | None = None,
    ) -> Channel:
        """Create a channel with these settings and defaults for the others."""
        raise NotImplementedError("implement `channel` of the driver")

    def message(self, text: str) -> Any:
        """Return the JSON body of a message."""
        raise NotImplementedError("implement `message` of the driver")

    def run_id(self, answer: httpx.Response) -> str:
        """Return the id of the run in the answer to a message."""
        raise NotImplementedError("implement `run_id` of the driver")

    def calls_about(self, run_id: str) -> Sequence[tuple[str, str]]:
        """Return every method and path that names a run. None if the protocol has none."""
        return ()

    def error_text(self, response: httpx.Response) -> str:
        """Return the text of an error. Raise an `AssertionError` if its shape is wrong."""
        raise NotImplementedError("implement `error_text` of the driver")

    def failure_text(self, response: httpx.Response) -> str:
        """Return the reason why a run failed, from the answer that has it."""
        return str(response.json()["error"]["message"])

    def body(self, text: str) -> bytes:
        """Return the encoded body of a message."""
        return msgspec.json.encode(self.message(text))

    async def post(self, http: httpx.AsyncClient, text: str = "hello", **headers: str) -> httpx.Response:
        """Post a message, with extra headers (`x_api_key` for `x-api-key`)."""
        extra = {name.replace("_", "-"): value for name, value in headers.items()}
        return await http.post(self.path, json=self.message(text), headers=extra)

    @asynccontextmanager
    async def serve(self, channel: Channel, target: Any = None, **settings: Any) -> AsyncGenerator["ServedChannel"]:
        """Serve a host with one channel."""
        ids, agent = FakeIds(), EchoAgent()
        host = AgentFrameworkHost(target or agent, channels=[channel], ids=ids, **settings)
        async with serving(host, path=self.path) as client:
            yield ServedChannel(client.http, client.base_url, ids, agent)


class ServedChannel:
    """A served host, with access to its store."""

    def __init__(self, http: httpx.AsyncClient, base_url: str, ids: FakeIds, agent: EchoAgent) -> None:
        self.http = http
        self.base_url = base_url
        self.ids = ids
        self.agent = agent
        self._made_at_start = ids.made.copy()

    def untouched(self) -> bool:
        """Return True if nothing was run, and nothing was stored since the host started."""
        return not self.agent.seen and self.ids.made == self._made_at_start

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a TCP connection, for bytes that HTTP clients do not send."""
        where = urlsplit(self.base_url)
        return await asyncio.open_connection(where.hostname, where.port)

    async def send_raw(self, head: Sequence[str], body: bytes) -> httpx.Response:
        """Send some bytes and read one answer, without ever finishing the request."""
        reader, writer = await self.connect()
        try:
            writer.write("\r\n".join([*head, f"host: {urlsplit(self.base_url).netloc}", "", ""]).encode() + body)
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await _read_answer(reader)
        finally:
            writer.close()


async def _read_answer(reader: asyncio.StreamReader) -> httpx.Response:
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
    headers = dict(line.lower().split(": ", 1) for line in lines if line)
    content = await reader.readexactly(int(headers.get("content-length", "0")))
    return httpx.Response(int(status.split(" ")[1]), headers=headers, content=content)
