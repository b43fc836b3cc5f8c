"""A thread of a group is a conversation of its own, and its answers go back into it."""

import pytest

from frontdesk import ChannelIdentity
from frontdesk.models.delivery import Delivery
from frontdesk_testing import EchoAgent, GatedAgent
from frontdesk_testing.internals import get_store
from frontdesk_testing.messages import Person
from tests.scenarios.messages.chat import MessagesHost, open_chat

ANN = ChannelIdentity(channel="messages", native_id="ann")


async def wait_for_said(chat: MessagesHost, chat_id: str, count: int) -> list[tuple[str, str]]:
    """The bot's messages and their threads, once there are so many."""
    return [(message.thread_id, message.text) for message in await chat.platform.wait_for_answers(chat_id, count)]


async def test_answers_go_back_into_the_thread() -> None:
    async with open_chat(EchoAgent()) as chat:
        ada = await chat.platform.user("Ada")
        group = await chat.platform.group("Friends", ada)
        event = await chat.platform.say(ada, "@desk in it", chat_id=group.chat_id, thread_id="t-1")
        (answer,) = await chat.platform.wait_for_answers(group.chat_id)
        assert event.message is not None
        assert (answer.thread_id, answer.text, answer.reply_to) == ("t-1", "in it", event.message.message_id)
        await chat.platform.say(ada, "@desk beside it", chat_id=group.chat_id)
        assert (await wait_for_said(chat, group.chat_id, 2))[1] == ("", "beside it")
        await chat.platform.say(ada, "/whoami@desk", chat_id=group.chat_id, thread_id="t-1")
        assert (await wait_for_said(chat, group.chat_id, 3))[2][0] == "t-1"


async def test_each_thread_has_a_session_of_its_own() -> None:
    agent = EchoAgent()
    async with open_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        group = await chat.platform.group("Friends", ada)
        for number, thread_id in enumerate(("", "t-1", "t-2", "t-1"), start=1):
            await chat.platform.say(ada, f"@desk {number}", chat_id=group.chat_id, thread_id=thread_id)
            await chat.platform.wait_for_answers(group.chat_id, number)
        runs = [await get_store(chat.host).runs.get(row.owner, row.run_id) for row in await deliveries(chat)]
        sessions = [run.session_id for run in runs if run is not None]
        assert len(sessions) == 4
        assert sessions[1] == sessions[3]
        assert len(set(sessions)) == 3


async def deliveries(chat: MessagesHost) -> list[Delivery]:
    found = await get_store(chat.host).outbox.find()
    return sorted(found, key=lambda row: row.created_at)


async def test_a_thread_does_not_wait_for_another() -> None:
    agent = GatedAgent()
    async with open_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        group = await chat.platform.group("Friends", ada)
        await chat.platform.say(ada, "@desk one two", chat_id=group.chat_id, thread_id="t-1")
        await agent.started.wait()
        await chat.platform.say(ada, "/whoami@desk", chat_id=group.chat_id, thread_id="t-2")
        assert (await wait_for_said(chat, group.chat_id, 1))[0][0] == "t-2"
        agent.release.set()
        assert (await wait_for_said(chat, group.chat_id, 2))[1] == ("t-1", "one two")


async def test_a_push_to_the_group_goes_into_no_thread() -> None:
    async with open_chat(EchoAgent(), conversation_scope="per_conversation") as chat:
        ada, bob = await chat.platform.user("Ada"), await chat.platform.user("Bob")
        group = await chat.platform.group("Friends", ada, bob)
        await chat.platform.say(ada, "@desk in it", chat_id=group.chat_id, thread_id="t-1")
        await chat.platform.wait_for_answers(group.chat_id)
        await chat.platform.say(bob, "@desk beside it", chat_id=group.chat_id)
        await chat.platform.wait_for_answers(group.chat_id, 2)
        await chat.host.deliver(ChannelIdentity(channel="messages", native_id=bob.user_id), "news")
        assert (await wait_for_said(chat, group.chat_id, 3))[2] == ("", "news")
        # Who shares the conversation of the thread is told there.
        await chat.host.deliver(ChannelIdentity(channel="messages", native_id=ada.user_id), "more news")
        assert (await wait_for_said(chat, group.chat_id, 4))[3] == ("t-1", "more news")


async def test_an_answer_in_a_thread_is_shown_while_it_is_written() -> None:
    agent = GatedAgent()
    async with open_chat(agent, live="auto") as chat:
        ada = await chat.platform.user("Ada")
        group = await chat.platform.group("Friends", ada)
        await chat.platform.say(ada, "@desk one two", chat_id=group.chat_id, thread_id="t-1")
        assert await wait_for_said(chat, group.chat_id, 1) == [("t-1", "one ")]
        agent.release.set()

        async def whole() -> bool:
            return await wait_for_said(chat, group.chat_id, 1) == [("t-1", "one two")]

        await chat.platform.until(whole)


async def test_direct_chats_have_no_threads() -> None:
    async with open_chat(EchoAgent()) as chat:
        ada: Person = await chat.platform.user("Ada")
        with pytest.raises(AssertionError, match="Only groups have threads"):
            await chat.platform.say(ada, "hello", thread_id="t-1")
