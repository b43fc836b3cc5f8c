"""A host behind a real server on loopback, with a real HTTP client, for one test."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from agent_framework import Message

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.models.run import RunRecord
from frontdesk.models.session import SessionRecord
from frontdesk_testing.internals import active_runs
from tests.scenarios.ledger import Ledger
from tests.scenarios.stores import new_store

PATH = "/invocations"
DEADLINE = 60.0


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    name: str
    number: int
    data: Any


@dataclass
class InvocationsHost:
    """A started host: what a client sees of it, and what its store has kept."""

    host: AgentFrameworkHost
    ledger: Ledger
    client: httpx.AsyncClient
    port: int
    server: uvicorn.Server

    async def ask(self, message: Any = "hello", *, headers: Any = None, **body: Any) -> Any:
        """Posts a message, and returns the response."""
        return await self.client.post(PATH, json={"message": message, **body}, headers=headers)

    async def post(self, body: Any = None, **options: Any) -> httpx.Response:
        """Posts a body as it is."""
        return await self.client.post(PATH, json=body, **options)

    async def get(self, run_id: str, **options: Any) -> httpx.Response:
        return await self.client.get(f"{PATH}/{run_id}", **options)

    async def cancel(self, run_id: str, **options: Any) -> httpx.Response:
        return await self.client.post(f"{PATH}/{run_id}/cancel", **options)

    async def events(self, message: Any = "hello", *, headers: Any = None, **body: Any) -> Any:
        """Posts a message, and returns the events of its stream."""
        async with self.open_stream(message, headers=headers, **body) as (response, events):
            assert response.status_code == 200, await response.aread()
            return [event async for event in events]

    @asynccontextmanager
    async def open_stream(
        self, message: Any = "hello", *, headers: Any = None, **body: Any
    ) -> AsyncIterator[tuple[httpx.Response, AsyncIterator[Event]]]:
        """A stream that is read event by event; leaving the block hangs up."""
        sent = {"message": message, "stream": True, **body}
        async with self.client.stream("POST", PATH, json=sent, headers=headers) as response:
            yield response, parse_events(response.aiter_lines())

    async def wait_for_end(self, run_id: str) -> dict[str, Any]:
        """A background run, when it has ended."""
        found: dict[str, Any] = {}

        async def look() -> bool:
            found.update((await self.get(run_id)).json())
            return found["status"] not in ("queued", "running")

        await until(look)
        return found

    def runs(self) -> list[RunRecord]:
        """Every run that is stored."""
        return list(self.ledger.kept_runs.values())

    def run(self, run_id: str) -> RunRecord:
        (found,) = [one for one in self.runs() if one.run_id == run_id]
        return found

    def sessions(self) -> list[SessionRecord]:
        """Every session that is stored."""
        return list(self.ledger.kept_sessions.values())

    def history(self, key: str) -> list[Message]:
        """The stored messages of the one session that anybody knows by this key."""
        (found,) = [one.session_id for one in self.sessions() if one.key == key]
        return self.ledger.kept_messages[found]

    def list_texts(self, key: str) -> list[str]:
        """The same, their texts only."""
        return [message.text for message in self.history(key)]

    def untouched(self) -> bool:
        """Whether nothing at all was written, and nothing runs."""
        return not self.ledger.writes and not self.active

    @property
    def active(self) -> int:
        """How many runs are in progress."""
        return len(active_runs(self.host))

    @property
    def requests(self) -> int:
        """How many requests the server works on."""
        return len(self.server.server_state.tasks)

    async def raw(self, data: bytes, *, hang_up: bool = False) -> bytes:
        """Sends bytes as they are, and returns all that comes back until the server closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        await writer.drain()
        try:
            return b"" if hang_up else await asyncio.wait_for(reader.read(), DEADLINE)
        finally:
            writer.close()


async def parse_events(lines: AsyncIterator[str]) -> AsyncIterator[Event]:
    """The events in the lines of a stream; comments are skipped."""
    fields: dict[str, str] = {}
    async for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield Event(fields["event"], int(fields["id"]), json.loads(fields["data"]))
            fields = {}


async def until(condition: Callable[[], Any], *, within: float = DEADLINE) -> None:
    """Waits for what nobody announces."""
    async with asyncio.timeout(within):
        while True:
            met = condition()
            if await met if asyncio.iscoroutine(met) else met:
                return
            await asyncio.sleep(0.002)


@asynccontextmanager
async def serve_host(host: AgentFrameworkHost) -> AsyncIterator[uvicorn.Server]:
    """Serves a host on a free port of the loopback address, in the loop of the test."""
    config = uvicorn.Config(host.app, host="127.0.0.1", port=0, log_config=None)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    try:
        yield server
    finally:
        await _stop(server)


async def _stop(server: uvicorn.Server) -> None:
    # What uvicorn does itself at this point, without its pauses of a tenth of a second.
    state = server.server_state
    for listener in server.servers:
        listener.close()
    for connection in list(state.connections):
        connection.shutdown()
    with suppress(TimeoutError):
        await until(lambda: not state.connections and not state.tasks, within=1.0)
    for task in state.tasks:
        task.cancel()
    await server.lifespan.shutdown()


@asynccontextmanager
async def open_client(
    target: Any,
    channel: InvocationsChannel | None = None,
    *,
    channels: Sequence[Any] | None = None,
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> AsyncIterator[InvocationsHost]:
    """A started host with one Invocations channel."""
    ledger = Ledger(options.pop("store", None) or new_store())
    store: Any = ledger
    host = AgentFrameworkHost(target, channels=channels or [channel or InvocationsChannel()], store=store, **options)
    async with serve_host(host) as server:
        port = server.servers[0].sockets[0].getsockname()[1]
        address = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=address, timeout=DEADLINE, headers=headers, trust_env=False) as client:
            yield InvocationsHost(host, ledger, client, port, server)
