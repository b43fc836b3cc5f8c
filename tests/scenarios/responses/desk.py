"""A host with a Responses door behind a real server, and real clients of the API for it."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import httpx2
import uvicorn
from openai import AsyncOpenAI, OpenAI

from frontdesk import AgentFrameworkHost, Channel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.models.run import RunRecord
from frontdesk_testing.internals import active_runs
from tests.scenarios.desk import DEADLINE, serve_host
from tests.scenarios.ledger import Ledger
from tests.scenarios.responses.tap import Tap
from tests.scenarios.stores import new_store

ANYONE = "any key will do"


class ResponsesHost:
    """A started host: clients for it, what it said to them, and what its store has kept."""

    def __init__(self, host: AgentFrameworkHost, ledger: Ledger, tap: Tap, server: uvicorn.Server) -> None:
        self.host = host
        self.ledger = ledger
        self.tap = tap
        self.server = server
        self.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        self.exits = AsyncExitStack()
        self.http: httpx.AsyncClient

    def client(self, key: str = ANYONE, *, base: str = "/v1") -> AsyncOpenAI:
        """A client of the API; each has a connection of its own."""
        http = httpx2.AsyncClient(trust_env=False, verify=False)
        self.exits.push_async_callback(http.aclose)
        return AsyncOpenAI(api_key=key, base_url=self.url + base, max_retries=0, timeout=DEADLINE, http_client=http)

    def sync_client(self, key: str = ANYONE) -> OpenAI:
        """The same for a thread."""
        http = httpx2.Client(trust_env=False, verify=False)
        self.exits.callback(http.close)
        url = f"{self.url}/v1"
        return OpenAI(api_key=key, base_url=url, max_retries=0, timeout=DEADLINE, http_client=http)

    async def post(self, body: Any, **options: Any) -> httpx.Response:
        """Posts a body as it is."""
        return await self.http.post("/v1/responses", json=body, **options)

    async def raw(self, data: bytes) -> bytes:
        """Sends bytes as they are, and returns all that comes back until the server closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.url.rpartition(":")[2]))
        writer.write(data)
        try:
            return await asyncio.wait_for(reader.read(), DEADLINE)
        finally:
            writer.close()

    def runs(self) -> list[RunRecord]:
        """Every run that is stored."""
        return list(self.ledger.kept_runs.values())

    def untouched(self) -> bool:
        """Whether nothing at all was written, and nothing runs."""
        return not self.ledger.writes and not self.active

    @property
    def active(self) -> int:
        """How many runs are in progress."""
        return len(active_runs(self.host))


@asynccontextmanager
async def open_client(
    target: Any,
    *,
    tapped: bool = True,
    beside: Sequence[Channel] = (),
    store: Any = None,
    host_settings: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[ResponsesHost]:
    """A started host with one Responses channel; at the end everything that it said is looked at."""
    ledger: Any = Ledger(store or new_store())
    channels = [ResponsesChannel(**settings), *beside]
    of_host: dict[str, Any] = dict(host_settings or {})
    host = AgentFrameworkHost(target, channels=channels, store=ledger, **of_host)
    tap = Tap(host.app)
    app: Any = SimpleNamespace(app=tap)
    async with serve_host(app) as server:
        desk = ResponsesHost(host, ledger, tap, server)
        async with desk.exits, httpx.AsyncClient(base_url=desk.url, timeout=DEADLINE, trust_env=False) as desk.http:
            yield desk
            await asyncio.sleep(0)
            if tapped:
                await tap.kept(desk.http)
    assert not tap.wrong, "\n".join(tap.wrong)


async def answers(desk: ResponsesHost, key: str, calls: list[tuple[str, str, Any]]) -> list[tuple[int, str]]:
    """What somebody is answered to each of some calls."""
    found: list[tuple[int, str]] = []
    for method, path, body in calls:
        response = await desk.http.request(method, path, json=body, headers={"authorization": f"Bearer {key}"})
        found.append((response.status_code, response.text))
    return found
