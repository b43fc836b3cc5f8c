"""Traffic on a host whose store fails: what was acknowledged must be there in the end, once and in order."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.stores.sql.store import SqlStateStore
from frontdesk_testing import HostClient, serving
from tests.scenarios.cast import echo
from tests.scenarios.desk import until


class Traffic:
    """Callers who each go on with their own session, and try again when they are told to."""

    def __init__(self, client: httpx.AsyncClient, callers: int = 6) -> None:
        self._client = client
        self._going = True
        self.sessions = [f"session-{number}" for number in range(callers)]
        self.acknowledged: dict[str, list[str]] = {name: [] for name in self.sessions}
        self.refused: Counter[str] = Counter()
        self.wrong: list[str] = []

    async def _call(self, name: str) -> None:
        number = 0
        while self._going:
            number += 1
            text = f"{name}: {number}"
            response = await self._client.post("/invocations", json={"message": text, "session_id": name})
            if is_unavailable(response):
                self.refused[name] += 1
            elif response.status_code == 200 and response.json()["status"] == "completed":
                self.acknowledged[name].append(text)
            else:
                self.wrong.append(f"{response.status_code}: {response.text}")

    @asynccontextmanager
    async def run_calls(self) -> AsyncIterator["Traffic"]:
        """Callers call, until the block is left."""
        calls = [asyncio.create_task(self._call(name)) for name in self.sessions]
        try:
            yield self
        finally:
            self._going = False
            await asyncio.gather(*calls)

    async def goes_well(self, more: int = 3) -> None:
        """Returns when every caller was answered some more times."""
        wanted = {name: number + more for name, number in self._count_answered().items()}
        await until(lambda: self._met(self._count_answered(), wanted), within=40)

    def _count_answered(self) -> dict[str, int]:
        return {name: len(texts) for name, texts in self.acknowledged.items()}

    async def is_refused(self) -> None:
        """Returns when every caller was told to come again."""
        wanted = {name: self.refused[name] + 1 for name in self.sessions}
        await until(lambda: self._met(self.refused, wanted), within=40)

    def _met(self, found: Mapping[str, int], wanted: Mapping[str, int]) -> bool:
        assert self.wrong == []
        return all(found[name] >= wanted[name] for name in self.sessions)

    async def check(self, store: SqlStateStore) -> None:
        """Looks for every answer in the histories."""
        assert self.wrong == []
        kept = await histories(store)
        for name, texts in self.acknowledged.items():
            assert texts
            asked = [text for text in kept[name] if not text.startswith("you said ")]
            assert len(asked) == len(set(asked)), f"{name} has something twice"
            assert [text for text in asked if text in set(texts)] == texts
            for text in texts:
                # Each question has its answer, right behind it.
                assert kept[name][kept[name].index(text) + 1] == f"you said {text}"


def is_unavailable(response: httpx.Response) -> bool:
    """Whether it is the error of a store that can't be reached, in the shape of its channel.

    If the target has run by then, it is no error that clients repeat.
    """
    if response.headers["content-type"] != "application/json":
        return False
    error = response.json()["error"]
    if response.status_code == 503:
        assert response.headers["retry-after"] == "1"
        assert error["code"] == "store_unavailable"
    elif response.status_code != 200 or response.json()["status"] != "failed":
        return False
    else:
        assert response.headers["x-should-retry"] == "false"
        assert error["code"] in ("store_unavailable", "invalid_prompt")
    assert "confirmed is lost" in error["message"]
    return True


async def histories(store: SqlStateStore) -> dict[str, list[str]]:
    """What was said in each session, by its key."""
    found: dict[str, list[str]] = {}
    for session_id, owner in await store._engine.read("SELECT session_id, owner FROM sessions"):
        record = await store.sessions.get(owner, session_id)
        assert record is not None
        found[record.key] = [one.text for one in await store.sessions.history(owner, session_id)]
    return found


@asynccontextmanager
async def serve(store: Any, **options: Any) -> AsyncIterator[HostClient]:
    """A host with both doors over a store."""
    host = AgentFrameworkHost(echo, channels=[InvocationsChannel(), ResponsesChannel()], store=store, **options)
    async with serving(host) as client:
        yield client


async def ask_both(client: HostClient, text: str, *, stream: bool = False) -> list[httpx.Response]:
    """The same question at both doors."""
    return [
        await client.http.post("/invocations", json={"message": text, "session_id": "asked", "stream": stream}),
        await client.http.post("/v1/responses", json={"model": "any", "input": text, "stream": stream}),
    ]
