"""`/cancel` and `/new` while a message is being answered: they act at once, and what was cancelled says nothing."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agent_framework import AgentResponseUpdate

from frontdesk import NativeIdAllowlist
from frontdesk_testing import EchoAgent
from frontdesk_testing.internals import active_runs, get_components, get_store
from tests.scenarios.messages.chat import MessagesHost, open_chat


class Holding(EchoAgent):
    """Repeats what it hears; a text that begins with `hold` is never answered by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.held = asyncio.Event()

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        if words[0].strip() == "hold":
            self.held.set()
            await asyncio.Event().wait()
        async for update in super().speak(words):
            yield update

    def list_asked(self) -> list[list[str]]:
        """Return what the agent was told each time."""
        return [[message.text for message in told] for told in self.seen]


async def list_failed(chat: MessagesHost) -> list[tuple[Any, str]]:
    store = get_store(chat.host)
    return [(item.request.input, error) for item, error in reversed(await store.inbox.failed())]


async def test_cancel_stops_what_is_being_answered_and_drops_what_waits() -> None:
    agent = Holding()
    async with open_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hold one")
        await agent.held.wait()
        await chat.platform.say(ada, "two")
        await chat.platform.say(ada, "/cancel")
        assert await chat.wait_for_answers(ada.chat_id) == ["I have stopped."]
        await chat.platform.say(ada, "three")
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["I have stopped.", "three"]
        assert await list_failed(chat) == [("hold one", "cancelled"), ("two", "cancelled")]
    # The question that was begun stays in the history; what never began is gone.
    assert agent.list_asked() == [["hold one"], ["hold one", "three"]]


async def test_cancel_without_anything_to_stop_says_so() -> None:
    async with open_chat(EchoAgent()) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hello")
        await chat.wait_for_answers(ada.chat_id)
        await chat.platform.say(ada, "/cancel")
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["hello", "There is nothing to stop."]


async def test_new_stops_what_is_being_answered_and_what_follows_runs_in_the_new_session() -> None:
    agent = Holding()
    async with open_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "before")
        await chat.wait_for_answers(ada.chat_id)
        await chat.platform.say(ada, "hold one")
        await agent.held.wait()
        await chat.platform.say(ada, "/new")
        await chat.wait_for_answers(ada.chat_id, 2)
        await chat.platform.say(ada, "after")
        assert await chat.wait_for_answers(ada.chat_id, 3) == ["before", "We start anew.", "after"]
        await chat.platform.say(ada, "/sessions")
        listed = (await chat.wait_for_answers(ada.chat_id, 4))[3].splitlines()
        (old,) = [line.split(" ")[0] for line in listed if "this one" not in line]
        await chat.platform.say(ada, f"/resume {old}")
        await chat.wait_for_answers(ada.chat_id, 5)
        await chat.platform.say(ada, "back")
        await chat.wait_for_answers(ada.chat_id, 6)
    first = ["before", "before", "hold one"]
    assert agent.list_asked() == [["before"], first, ["after"], [*first, "back"]]


@pytest.mark.parametrize(("cancel_by", "stopped"), [("sender", False), ("anyone", True)])
async def test_in_a_shared_session_cancel_by_says_whose_turns_can_be_cancelled(cancel_by: Any, stopped: bool) -> None:
    agent = Holding()
    settings: dict[str, Any] = {"conversation_scope": "per_conversation", "accept_in_group": "all"}
    async with open_chat(agent, cancel_by=cancel_by, **settings) as chat:
        ada, bob = await chat.platform.user("Ada"), await chat.platform.user("Bob")
        group = await chat.platform.group("Friends", ada, bob)
        await chat.platform.say(ada, "hold one", chat_id=group.chat_id)
        await agent.held.wait()
        await chat.platform.say(bob, "/cancel", chat_id=group.chat_id)
        (said,) = await chat.wait_for_answers(group.chat_id)
        assert said == ("I have stopped." if stopped else "There is nothing to stop.")
        if not stopped:
            await chat.platform.say(ada, "/cancel", chat_id=group.chat_id)
            assert await chat.wait_for_answers(group.chat_id, 2) == [said, "I have stopped."]


async def test_a_stranger_can_cancel_nothing() -> None:
    agent, allowed = Holding(), set[str]()
    settings: dict[str, Any] = {"conversation_scope": "per_conversation", "accept_in_group": "all"}
    listed = NativeIdAllowlist(lambda: set(allowed))
    async with open_chat(agent, cancel_by="anyone", allowlist=listed, **settings) as chat:
        ada, bob = await chat.platform.user("Ada"), await chat.platform.user("Bob")
        allowed.add(ada.user_id)
        group = await chat.platform.group("Friends", ada, bob)
        await chat.platform.say(ada, "hold one", chat_id=group.chat_id)
        await agent.held.wait()
        await chat.platform.say(bob, "/cancel", chat_id=group.chat_id)
        await chat.wait_for_answers(group.chat_id)
        assert len(active_runs(chat.host)) == 1
        await chat.platform.say(ada, "/cancel", chat_id=group.chat_id)
        assert (await chat.wait_for_answers(group.chat_id, 2))[-1] == "I have stopped."


async def test_looking_and_asking_for_help_do_not_wait_for_an_answer() -> None:
    agent = Holding()
    async with open_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hold one")
        await agent.held.wait()
        await chat.platform.say(ada, "/sessions")
        assert await chat.wait_for_answers(ada.chat_id) == ["There is no conversation yet."]
        await chat.platform.say(ada, "/help")
        assert "/cancel - Stop what I work on" in (await chat.wait_for_answers(ada.chat_id, 2))[1]
        # Otherwise the host would wait for the answer when it stops.
        await chat.platform.say(ada, "/cancel")
        assert (await chat.wait_for_answers(ada.chat_id, 3))[-1] == "I have stopped."


async def test_a_message_interrupts_the_one_before_it_and_its_question_stays() -> None:
    agent = Holding()
    async with open_chat(agent, on_busy="interrupt") as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hold one")
        await agent.held.wait()
        agent.held.clear()
        await chat.platform.say(ada, "hold two")
        await agent.held.wait()
        await chat.platform.say(ada, "three")
        assert await chat.wait_for_answers(ada.chat_id) == ["three"]
        assert await list_failed(chat) == [("hold one", "cancelled"), ("hold two", "cancelled")]
    assert agent.list_asked() == [["hold one"], ["hold one", "hold two"], ["hold one", "hold two", "three"]]


async def test_in_a_group_nobody_interrupts_another() -> None:
    agent = Holding()
    settings: dict[str, Any] = {"conversation_scope": "per_conversation", "accept_in_group": "all"}
    async with open_chat(agent, on_busy="interrupt", **settings) as chat:
        ada, bob = await chat.platform.user("Ada"), await chat.platform.user("Bob")
        group = await chat.platform.group("Friends", ada, bob)
        await chat.platform.say(ada, "hold one", chat_id=group.chat_id)
        await agent.held.wait()
        await chat.platform.say(bob, "two", chat_id=group.chat_id)
        await chat.platform.say(ada, "three", chat_id=group.chat_id)
        assert await chat.wait_for_answers(group.chat_id, 2) == ["two", "three"]


async def test_messages_that_come_together_are_answered_in_one_turn() -> None:
    agent = Holding()
    async with open_chat(agent, gather_seconds=0.05) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hold one")
        await agent.held.wait()
        # These wait for the answer in any case, and are there together when it is their turn.
        for text in ("two", "three"):
            event = await chat.platform.say(ada, text)
            await chat.platform.wait_for_acknowledged(event)
        (run,) = active_runs(chat.host)
        await get_components(chat.host).active.cancel(run)
        assert await chat.wait_for_answers(ada.chat_id) == ["two\nthree"]
        await chat.platform.say(ada, "four")
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["two\nthree", "four"]
    assert agent.list_asked()[1][-1] == "two\nthree"
