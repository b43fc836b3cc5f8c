"""A turn that another process cancels hears of it by a notification, long before its lease is renewed."""

import asyncio
from collections.abc import AsyncIterator

from agent_framework import AgentResponseUpdate

from frontdesk import AgentFrameworkHost
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing import EchoAgent
from tests.scenarios.delivery.chats import SpokenChat
from tests.scenarios.delivery.house import person
from tests.scenarios.desk import until

LONG = 3600.0


class Endless(EchoAgent):
    """Never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        async for update in super().speak(words):
            yield update


async def test_the_holder_of_a_turn_hears_that_another_process_has_cancelled_it(postgres: str) -> None:
    agent, chat, other = Endless(), SpokenChat("a"), PostgresStateStore(postgres, lease_seconds=LONG)
    store = PostgresStateStore(postgres, lease_seconds=LONG)
    host = AgentFrameworkHost(agent, channels=[chat], store=store, identity_resolver=person)
    async with host.app.router.lifespan_context(host.app):
        await chat.say("hello")
        await agent.started.wait()
        await other.open()
        turn = await other.inbox.next("a", "a of ann")
        assert turn is not None
        async with other.transaction() as transaction:
            transaction.cancel_earlier(turn.replace(event_id="stop", kind="control", number=turn.number + 1))
        await agent.cancelled.wait()
        await until(lambda: _failed(other))
        await other.close()
    assert chat.texts() == []


async def _failed(store: PostgresStateStore) -> bool:
    return [error for _, error in await store.inbox.failed()] == ["cancelled"]
