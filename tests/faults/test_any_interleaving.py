"""Whatever happens in whatever order: every run ends, and every reader has read the beginning of the truth."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import AgentFrameworkHost
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing.sse import read_sse
from tests.examples import examples
from tests.scenarios.desk import serve_host, until
from tests.scenarios.responses.sequence import LAST, wrong_sequence

ENDS = ("completed", "failed", "cancelled", "incomplete")


class Tellers:
    """The target of every host: `3 7` says seven words, and waits after the third until it is let go."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}

    def gate(self, text: str) -> asyncio.Event:
        return self.gates.setdefault(text, asyncio.Event())

    async def tell(self, text: str) -> AsyncIterator[str]:
        stop, count = (int(one) for one in text.split()[:2])
        for number in range(count):
            if number == stop:
                await self.gate(text).wait()
            await asyncio.sleep(0)
            yield f"w{number} "


@dataclass
class Reader:
    """Reads one run, with breaks."""

    run_id: str
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    task: "asyncio.Task[None] | None" = None

    async def hang_up(self) -> None:
        task, self.task = self.task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def read(self, client: httpx.AsyncClient) -> None:
        after = f"&starting_after={len(self.events) - 1}" if self.events else ""
        with suppress(httpx.TransportError, ValueError):
            async with client.stream("GET", f"/responses/{self.run_id}?stream=true{after}") as response:
                assert response.status_code == 200, await response.aread()
                async for event in read_sse(response.aiter_bytes()):
                    self.events.append(event.json())


class InterleavedHosts:
    """A store that lasts, hosts that come and go over it, and people who read."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.tellers = Tellers()
        self.texts: list[str] = []
        self.runs: list[str] = []
        self.readers: list[Reader] = []
        self.client: httpx.AsyncClient
        self._open = AsyncExitStack()

    async def start(self) -> None:
        host = AgentFrameworkHost(
            self.tellers.tell,
            channels=[ResponsesChannel()],
            store=self._store,
            max_background_runs=2,
            shutdown_grace_seconds=0,
        )
        server = await self._open.enter_async_context(serve_host(host))
        url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        client = httpx.AsyncClient(base_url=url, timeout=60, trust_env=False)
        self.client = await self._open.enter_async_context(client)

    async def stop(self) -> None:
        for reader in self.readers:
            await reader.hang_up()
        await self._open.aclose()
        self._open = AsyncExitStack()

    async def do(self, what: str, which: int, stop: int, count: int) -> None:
        if what == "restart":
            await self.stop()
            await self.start()
        elif what == "create":
            await self._create(f"{stop} {count} {len(self.texts)}")
        elif self.runs:
            await self._do(what, self.runs[which % len(self.runs)], which)

    async def _create(self, text: str) -> None:
        body = {"model": "m", "input": text, "background": True, "stream": True}
        async with self.client.stream("POST", "/responses", json=body) as response:
            async for event in read_sse(response.aiter_bytes()):
                self.texts.append(text)
                self.runs.append(event.json()["response"]["id"])
                break

    async def _do(self, what: str, run_id: str, which: int) -> None:
        if what == "cancel":
            assert (await self.client.post(f"/responses/{run_id}/cancel")).json()["status"] in ENDS
        elif what == "let go":
            self.tellers.gate(self.texts[self.runs.index(run_id)]).set()
        elif what == "read":
            reader = Reader(run_id)
            reader.task = asyncio.create_task(reader.read(self.client))
            self.readers.append(reader)
        elif self.readers:
            reader = self.readers[which % len(self.readers)]
            await reader.hang_up()
            if what == "resume":
                reader.task = asyncio.create_task(reader.read(self.client))

    async def judge(self) -> None:
        """Lets everything go, and looks at how it has ended."""
        for text in self.texts:
            self.tellers.gate(text).set()
        for run_id, text in zip(self.runs, self.texts, strict=True):
            await until(lambda run_id=run_id: self._ended(run_id))
            truth = Reader(run_id)
            await truth.read(self.client)
            assert not wrong_sequence(truth.events)
            said = "".join(one["delta"] for one in truth.events if one["type"].endswith("text.delta"))
            whole = "".join(f"w{number} " for number in range(int(text.split()[1])))
            assert whole.startswith(said)
            assert said == whole or truth.events[-1]["type"] != "response.completed"
            for reader in self.readers:
                if reader.run_id == run_id:
                    assert reader.events == truth.events[: len(reader.events)]
                    if reader.task is not None:
                        await reader.task
                        assert reader.events == truth.events
            assert truth.events[-1]["type"] in LAST

    async def _ended(self, run_id: str) -> bool:
        return (await self.client.get(f"/responses/{run_id}")).json()["status"] in ENDS


steps = st.tuples(
    st.sampled_from(["create", "create", "read", "read", "hang up", "resume", "cancel", "let go", "let go", "restart"]),
    st.integers(0, 5),
    st.integers(0, 4),
    st.integers(0, 6),
)


@pytest.mark.timeout(300)
@examples(40)
@given(kind=st.sampled_from(["memory", "sqlite"]), story=st.lists(steps, max_size=14))
def test_any_interleaving_ends_well(kind: str, story: list[tuple[str, int, int, int]]) -> None:
    async def play(store: Any) -> None:
        world = InterleavedHosts(store)
        await world.start()
        try:
            for step in story:
                await world.do(*step)
            await world.judge()
        finally:
            await world.stop()

    with TemporaryDirectory() as place:
        store = InMemoryStateStore() if kind == "memory" else SqliteStateStore(Path(place) / "frontdesk.db")
        asyncio.run(play(store))
