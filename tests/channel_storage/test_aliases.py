"""A group that has moved keeps its session and its queue, and is spoken to where it is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.chat import aliases
from frontdesk.errors import RequestError
from frontdesk.interfaces.context import AnswersEvents
from frontdesk.models.conversation import ConversationAlias, merge_aliases
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller
from frontdesk.models.request import ChannelRequest
from frontdesk_testing import EchoAgent
from frontdesk_testing.internals import get_components
from tests.databases import patient_store
from tests.scenarios.delivery.parcel_chat import ParcelChat
from tests.scenarios.stores import new_store


class Watching(ParcelChat, AnswersEvents):
    """A chat that sees its events before they are answered."""

    def __init__(self, name: str = "chat", **settings: Any) -> None:
        super().__init__(name, **settings)
        self.prepared: list[tuple[str, str | None]] = []

    async def prepare(self, item: InboxItem) -> ChannelRequest | None:
        self.prepared.append((item.conversation_id, item.request.conversation_id))
        return item.request

    async def refuse(self, item: InboxItem, error: RequestError) -> Any:
        raise AssertionError("nothing is refused here")


@asynccontextmanager
async def run_chat(chat: ParcelChat, agent: EchoAgent, store: Any = None) -> AsyncIterator[AgentFrameworkHost]:
    host = AgentFrameworkHost(agent, channels=[chat], store=store or new_store())
    async with host.app.router.lifespan_context(host.app):
        yield host


def list_heard(agent: EchoAgent) -> list[str]:
    """All that the agent was told at its last turn."""
    return [one.text for one in agent.seen[-1]]


@pytest.mark.parametrize("scope", ["per_conversation", "per_user_per_conversation"])
async def test_a_group_that_moved_keeps_its_conversation(scope: Any) -> None:
    chat, agent = Watching(scope=scope), EchoAgent()
    ann = chat.who("ann")
    async with run_chat(chat, agent):
        await chat.hear(ann, "one", group="old")
        await chat.context.events.alias_conversation("old", "new")
        part = await chat.hear(ann, "two", group="new")
        assert (part.conversation_id, chat.prepared[-1]) == ("new", ("new", "new"))
        assert "one" in list_heard(agent)
        # One that was on its way under the old name.
        assert (await chat.hear(ann, "three", group="old")).conversation_id == "new"
        assert {"one", "two"} <= set(list_heard(agent))
        await chat.context.events.alias_conversation("new", "newest")
        await chat.context.events.alias_conversation("old", "new")
        assert (await chat.hear(ann, "four", group="newest")).conversation_id == "newest"
        assert {"one", "two", "three"} <= set(list_heard(agent))
        assert (await chat.hear(ann, "elsewhere", group="another")).conversation_id == "another"
        assert "one" not in list_heard(agent)


async def test_what_nobody_has_asked_for_goes_to_where_the_group_is() -> None:
    chat, agent = ParcelChat(scope="per_conversation"), EchoAgent()
    ann = chat.who("ann")
    async with run_chat(chat, agent) as host:
        await chat.hear(ann, "one", group="old")
        await chat.context.events.alias_conversation("old", "new")
        await host.deliver(ann, "Your taxi is here.")
        await chat.wait(2)
        assert chat.sent[-1].conversation_id == "new"


async def test_sessions_are_named_by_either_name() -> None:
    chat, agent = ParcelChat(scope="per_conversation"), EchoAgent()
    ann = chat.who("ann")
    async with run_chat(chat, agent):
        await chat.hear(ann, "one", group="old")
        await chat.context.events.alias_conversation("old", "new")
        caller = Caller(identity=ann)
        await chat.context.sessions.reset(caller, conversation_id="new")
        await chat.hear(ann, "two", group="old")
        assert "one" not in list_heard(agent)
        lists = [await chat.context.sessions.list(caller, conversation_id=name) for name in ("old", "new")]
        assert lists[0] == lists[1]
        assert len(lists[0]) == 2


@pytest.mark.parametrize(("old", "new"), [("a", "a"), ("b", "a"), ("c", "a"), ("c", "b"), ("a", "c")])
def test_a_conversation_goes_neither_back_nor_to_two_names(old: str, new: str) -> None:
    names = {"a": "b", "b": "c", "c": None}
    chain = {
        name: ConversationAlias(name=name, first_name="a", current_name="c", next_name=following)
        for name, following in names.items()
    }
    with pytest.raises(ValueError, match=r"already has another alias|earlier name"):
        merge_aliases(old, new, chain.get(old), chain.get(new))


async def test_a_channel_without_aliases_looks_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    chat, agent, store = Watching(scope="per_conversation"), EchoAgent(), new_store()

    async def find(channel: str, name: str) -> None:
        raise AssertionError("it was looked up")

    monkeypatch.setattr(store.conversation_aliases, "find", find)
    async with run_chat(chat, agent, store):
        assert (await chat.hear(chat.who("ann"), "one", group="old")).conversation_id == "old"


async def test_a_move_that_another_process_makes_between_the_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store()
    names, there = aliases.Aliases(store, ["chat"]), aliases.Aliases(store, ["chat"])
    find = store.conversation_aliases.find

    async def find_old_before_the_move(channel: str, name: str) -> ConversationAlias | None:
        found = await find(channel, name)
        if name == "old":
            monkeypatch.undo()
            await there.move("chat", "old", "new")
        return found

    monkeypatch.setattr(store.conversation_aliases, "find", find_old_before_the_move)
    await names.move("chat", "old", "new")
    assert await names.first_name("chat", "new") == "old"
    assert await names.current_name("chat", "old") == "new"


async def test_another_host_hears_of_a_move(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The test itself decides when the other host looks.
    monkeypatch.setattr(aliases, "REFRESH_INTERVAL_SECONDS", 3_600.0)
    chats, agents = [ParcelChat(scope="per_conversation") for _ in range(2)], [EchoAgent(), EchoAgent()]
    stores = [patient_store(postgres) for _ in chats]
    async with (
        run_chat(chats[0], agents[0], stores[0]),
        run_chat(chats[1], agents[1], stores[1]) as there,
    ):
        # Of many that say so at once, one writes.
        await asyncio.gather(*(chats[0].context.events.alias_conversation("old", "new") for _ in range(5)))
        assert await get_components(there).aliases.first_name("chat", "new") == "new"
        await get_components(there).aliases.look()
        assert await get_components(there).aliases.first_name("chat", "new") == "old"
        assert await get_components(there).aliases.current_name("chat", "old") == "new"
