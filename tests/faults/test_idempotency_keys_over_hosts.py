"""The same request under the same key, at several hosts, and after the host that ran it was killed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing import serving
from frontdesk_testing.internals import get_components
from tests.faults.crash.processes import HostProcess, HostProcesses
from tests.scenarios.desk import until

KEY = {"idempotency-key": "order-17"}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_that_came_to_two_hosts_ran_at_both(postgres: str, stream: bool) -> None:
    heard: list[str] = []
    go_on = asyncio.Event()

    async def slow(text: str) -> str:
        heard.append(text)
        await go_on.wait()
        return f"done {len(heard)}"

    hosts = [
        AgentFrameworkHost(slow, channels=[ResponsesChannel()], store=PostgresStateStore(postgres)) for _ in range(2)
    ]
    async with serving(hosts[0]) as one, serving(hosts[1]) as other:
        body = {"input": "hello", "stream": stream}
        asked = [
            asyncio.create_task(client.http.post("/v1/responses", json=body, headers=KEY))
            for client in (one, other, one, other)
        ]
        await until(lambda: bool(heard))
        go_on.set()
        answers = [(await request).text for request in asked]
        assert (heard, len(set(answers))) == (["hello"], 1)
        assert "done 1" in answers[0]
        refused = await other.http.post("/v1/responses", json={"input": "good bye"}, headers=KEY)
        assert refused.status_code == 422


async def test_a_run_under_a_key_is_cancelled_at_another_host(postgres: str) -> None:
    begun = asyncio.Event()

    async def endless(text: str) -> str:
        begun.set()
        await asyncio.Event().wait()
        return text

    hosts = [
        AgentFrameworkHost(endless, channels=[InvocationsChannel()], store=PostgresStateStore(postgres))
        for _ in range(2)
    ]
    async with serving(hosts[0]) as one, serving(hosts[1]) as other:
        asked = asyncio.create_task(one.http.post("/invocations", json={"message": "x"}, headers=KEY))
        await begun.wait()
        again = asyncio.create_task(other.http.post("/invocations", json={"message": "x"}, headers=KEY))
        run_id = next(iter(get_components(hosts[0]).background._held))[1]
        cancelled = await other.http.post(f"/invocations/{run_id}/cancel")
        assert [one.json()["status"] for one in (cancelled, await asked, await again)] == ["cancelled"] * 3


@pytest.fixture(params=["sqlite", "postgres"])
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[HostProcesses]:
    place = str(tmp_path / "state") if request.param == "sqlite" else request.getfixturevalue("postgres")
    async with HostProcesses(request.param, place, tmp_path / "signs", lease=1.0, server="storyteller") as house:
        yield house


async def _ask(host: HostProcess, path: str, **body: Any) -> httpx.Response:
    return await host.client.post(path, json=body, headers=KEY)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_whose_host_was_killed_was_run_again(house: HostProcesses, stream: bool) -> None:
    first = await house.start()
    # It stops in the middle for a sign that nobody gives: told again, it would stop again.
    asked = asyncio.create_task(_ask(first, "/v1/responses", input="10 stop", stream=stream))
    await until(lambda: house.sign("stop-reached").exists())
    first.kill()
    with pytest.raises(httpx.TransportError):
        await asked
    second = await house.start()
    answers = [await _ask(second, "/v1/responses", input="10 stop", stream=stream) for _ in range(2)]
    assert answers[0].text == answers[1].text
    assert '"status":"failed"' in answers[0].text
    assert "interrupted" in answers[0].text
    # What it was asked is kept, once, and says how it ended.
    found = (await second.client.get("/v1/responses/" + _run_id(answers[0]))).json()
    assert (found["status"], found["error"]["code"]) == ("failed", "invalid_prompt")


def _run_id(answer: httpx.Response) -> str:
    return answer.text.partition('"id":"')[2].partition('"')[0]
