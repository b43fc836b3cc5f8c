"""The id of a new session was told before the session was there, and whoever used it made a second one of that name."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest
from agent_framework import Message

from frontdesk import AgentFrameworkHost, InMemoryStateStore
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing import serving
from tests.scenarios.desk import until


class Remembering:
    """Tells the words of the user's that it heard; the word `wait` makes it wait."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.go_on = asyncio.Event()

    async def answer(self, messages: list[Message]) -> AsyncIterator[str]:
        heard = [message.text for message in messages if message.role == "user"]
        if heard[-1] == "wait":
            self.waiting.set()
            await self.go_on.wait()
        yield " ".join(heard)


async def test_a_session_was_told_in_started_and_another_host_made_a_second_one(postgres: str) -> None:
    agent = Remembering()
    async with AsyncExitStack() as scope:
        one, other = [
            await scope.enter_async_context(
                serving(
                    AgentFrameworkHost(
                        target=agent.answer,
                        channels=[InvocationsChannel()],
                        store=PostgresStateStore(postgres, pool_size=2),
                        session_wait_seconds=0,
                    )
                )
            )
            for _ in range(2)
        ]
        events = await scope.enter_async_context(aclosing(one.stream("wait")))
        session_id = json.loads((await anext(events)).data)["session_id"]
        await agent.waiting.wait()
        early = await other.http.post("/invocations", json={"message": "early", "session_id": session_id})
        assert (early.status_code, early.json()["error"]["code"]) == (409, "session_busy")
        agent.go_on.set()
        assert [event async for event in events][-1].event == "completed"
        assert (await other.invoke("then", session_id=session_id))["text"] == "wait then"


@pytest.mark.parametrize("kind", ["memory", "postgres"])
async def test_a_session_was_told_with_a_queued_run_and_the_next_turn_made_a_second_one(
    request: pytest.FixtureRequest, kind: str
) -> None:
    agent = Remembering()
    store: Any = (
        InMemoryStateStore()
        if kind == "memory"
        else PostgresStateStore(request.getfixturevalue("postgres"), pool_size=2)
    )
    host = AgentFrameworkHost(target=agent.answer, channels=[InvocationsChannel()], store=store, max_background_runs=1)
    async with serving(host) as client:
        # One is at work, so that the other waits.
        await client.invoke("wait", background=True)
        await agent.waiting.wait()
        queued = await client.invoke("queued", background=True)
        assert (await client.invoke("first", session_id=queued["session_id"]))["text"] == "first"
        agent.go_on.set()

        async def ended() -> bool:
            return (await client.http.get(f"/invocations/{queued['id']}")).json()["status"] == "completed"

        await until(ended)
        assert (await client.invoke("last", session_id=queued["session_id"]))["text"] == "first queued last"
