"""A message is opened for an answer that another process has taken over in the meantime."""

import asyncio
from typing import Any

import pytest

from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing import GatedAgent
from frontdesk_testing.internals import active_runs, get_components, get_store
from tests.scenarios.messages.test_live import live_chat, methods, wait_for_texts


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Any) -> dict[str, Any]:
    """The settings of a host on each kind of store."""
    if request.param == "memory":
        return {"store": InMemoryStateStore()}
    if request.param == "sqlite":
        return {"state_dir": tmp_path / "state"}
    from frontdesk.stores.sql.postgres.engine import PostgresStateStore

    return {"store": PostgresStateStore(request.getfixturevalue("postgres_tables"))}


class HeldOpening:
    """Holds the call that opens a message, as if the process stood still before it."""

    def __init__(self, channel: Any) -> None:
        self.begun, self.release = asyncio.Event(), asyncio.Event()
        self.key = ""
        self._open = channel.open_live
        channel.open_live = self.open_live

    async def open_live(self, place: Any, view: Any, key: str) -> Any:
        self.key = key
        self.begun.set()
        await self.release.wait()
        return await self._open(place, view, key)


async def test_a_message_that_was_opened_too_late_was_shown_as_being_written_for_good(settings: dict[str, Any]) -> None:
    async with live_chat(GatedAgent(), shutdown_grace_seconds=0.1, **settings) as chat:
        held, ada = HeldOpening(chat.channel), await chat.platform.user("Ada")
        await chat.platform.say(ada, "one two three")
        await held.begun.wait()
        store, run_id = get_store(chat.host), held.key.removeprefix("live:")
        known = await store.live.get(run_id, "messages", ada.user_id)
        assert known is not None
        assert known.state == "opening"
        # Another process has found no message, and has ended the answer.
        async with store.transaction() as transaction:
            transaction.save_live(known.replace(fence=known.fence + 1, state="closed"))
        held.release.set()

        async def is_removed() -> bool:
            return methods(chat) == ["send", "delete"]

        await chat.platform.until(is_removed)
        await wait_for_texts(chat, ada)


async def test_a_turn_that_was_cancelled_again_and_again_kept_its_session(settings: dict[str, Any]) -> None:
    agent = GatedAgent()
    async with live_chat(agent, **settings) as chat:
        held, ada = HeldOpening(chat.channel), await chat.platform.user("Ada")
        await chat.platform.say(ada, "one two three")
        await held.begun.wait()
        (run,), events = active_runs(chat.host), get_components(chat.host).events.worker._held
        (name,) = events._held
        lost = events._held[name]
        while events._held.get(name) is lost:
            # What renews events does so in each round in which one is lost.
            events._lose(name)
            await asyncio.sleep(0.01)
        assert run not in active_runs(chat.host)
        held.release.set()
        agent.release.set()
        await wait_for_texts(chat, ada, "one two three")
        await chat.platform.say(ada, "four")
        await wait_for_texts(chat, ada, "one two three", "four")


async def test_a_message_that_its_new_owner_has_found_is_left_to_it(settings: dict[str, Any]) -> None:
    async with live_chat(GatedAgent(), shutdown_grace_seconds=0.1, **settings) as chat:
        held, ada = HeldOpening(chat.channel), await chat.platform.user("Ada")
        await chat.platform.say(ada, "one two three")
        await held.begun.wait()
        store, run_id = get_store(chat.host), held.key.removeprefix("live:")
        known = await store.live.get(run_id, "messages", ada.user_id)
        assert known is not None
        async with store.transaction() as transaction:
            # It looks for the message.
            transaction.save_live(known.replace(fence=known.fence + 1))
        held.release.set()
        (message,) = await wait_for_texts(chat, ada, "one ")
        async with store.transaction() as transaction:
            found = known.replace(fence=known.fence + 1, state="open", handles=(message.message_id,))
            transaction.save_live(found)
        await _turns(chat)
        assert methods(chat) == ["send"]


async def _turns(chat: Any) -> None:
    """Let the writer look often enough."""
    for _ in range(20):
        await asyncio.sleep(0.01)
        await chat.platform.state()
