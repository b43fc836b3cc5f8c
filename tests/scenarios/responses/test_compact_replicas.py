"""A compaction opens wherever its store does: after a restart, and at another host on the same database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from openai import AsyncOpenAI

from frontdesk import AgentFrameworkHost
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing import serving
from tests.scenarios.responses.cast import parrot


@asynccontextmanager
async def _house(target: Any, **options: Any) -> AsyncIterator[Any]:
    host = AgentFrameworkHost(target, channels=[ResponsesChannel(compactor=lambda _: "the summary")], **options)
    async with serving(host) as client, httpx2.AsyncClient(trust_env=False) as http:
        yield AsyncOpenAI(base_url=f"{client.base_url}/v1", api_key="any", max_retries=0, http_client=http)


async def _make(api: AsyncOpenAI) -> list[Any]:
    compacted = await api.responses.compact(model="any", input="one")
    return [item.to_dict(warnings=False) for item in compacted.output]


async def _check_opened(api: AsyncOpenAI, target: Any, items: list[Any]) -> None:
    answer = await api.responses.create(model="any", input=[*items, {"role": "user", "content": "go on"}])
    assert answer.output_text == "you said go on"
    assert "the summary" in target.client.said()[1][1]


async def test_after_a_restart(tmp_path: Path) -> None:
    target = parrot()
    async with _house(target, state_dir=tmp_path) as api:
        items = await _make(api)
    async with _house(target, state_dir=tmp_path) as api:
        await _check_opened(api, target, items)


async def test_at_another_host(postgres: str) -> None:
    here, there = parrot(), parrot()
    async with (
        _house(here, store=PostgresStateStore(postgres)) as one,
        _house(there, store=PostgresStateStore(postgres)) as other,
    ):
        await _check_opened(other, there, await _make(one))
