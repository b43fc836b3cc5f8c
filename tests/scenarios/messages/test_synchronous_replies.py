"""Answers in the HTTP reply to an event: as far as there is time, and pushed otherwise; never both, never neither."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from frontdesk import ChannelCommand, ChannelRequest, Delivery, InMemoryStateStore, Reply
from frontdesk.delivery.proactive import WORK_GOES_ON
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk_testing import EchoAgent, GatedAgent
from frontdesk_testing.messages import Person
from tests.scenarios.desk import until
from tests.scenarios.messages.chat import MessagesHost, open_chat


@asynccontextmanager
async def open_waiting(target: Any, **settings: Any) -> AsyncIterator[MessagesHost]:
    """A host on a platform that takes replies, and shows whatever it is sent twice."""
    async with open_chat(target, **settings) as chat:
        await chat.platform.set(expects_replies=True, dedupe=False, retry_seconds=0.1)
        yield chat


async def statuses(chat: MessagesHost) -> list[tuple[str, list[str]]]:
    return [(row.status, [entry.code for entry in row.history]) for row in await chat.host.deliveries.list()]


async def test_an_answer_is_in_the_reply() -> None:
    async with open_waiting(EchoAgent(), reply_seconds=60.0) as chat:
        await chat.platform.fail("error", method="send")
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hello")
        assert await chat.wait_for_answers(ada.chat_id) == ["hello"]
        await until(lambda: _is_settled(chat))
        assert await statuses(chat) == [("accepted", ["in the reply"])]


async def _is_settled(chat: MessagesHost) -> bool:
    return all(row.ended_at is not None for row in await chat.host.deliveries.list())


async def test_what_is_pushed_next_does_not_wait_for_the_end_of_the_time() -> None:
    async with open_waiting(EchoAgent(), reply_seconds=60.0) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "one")
        assert await chat.wait_for_answers(ada.chat_id) == ["one"]
        await chat.platform.set(expects_replies=False)
        await chat.platform.say(ada, "two")
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["one", "two"]


async def test_an_answer_that_comes_too_late_is_pushed() -> None:
    agent = GatedAgent()
    async with open_waiting(agent, reply_seconds=0.05) as chat:
        ada = await chat.platform.user("Ada")
        event = await chat.platform.say(ada, "hello")
        await chat.platform.wait_for_acknowledged(event)
        assert await chat.platform.answers(ada.chat_id) == []
        agent.release.set()
        assert await chat.wait_for_answers(ada.chat_id) == ["hello"]
        # The platform asks again, for no reason.
        await chat.platform.redeliver(event)
        await chat.platform.say(ada, "after")
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["hello", "after"]


async def test_a_reply_that_was_lost_is_given_again_when_the_platform_asks_again() -> None:
    agent = EchoAgent()
    async with open_waiting(agent, reply_seconds=60.0) as chat:
        await chat.platform.set(lose_replies=2)
        await chat.platform.fail("error", method="send")
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hello")
        assert await chat.wait_for_answers(ada.chat_id) == ["hello"]
    assert len(agent.seen) == 1


async def test_commands_and_refusals_are_in_the_reply() -> None:
    async def say(call: Any) -> None:
        await call.reply("one")
        await call.reply(Reply("two"))
        raise RuntimeError("the secret reason")

    async with open_waiting(EchoAgent(), reply_seconds=60.0, commands=[ChannelCommand("say", "Say", say)]) as chat:
        await chat.platform.fail("error", method="send")
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "/say")
        assert await chat.wait_for_answers(ada.chat_id, 3) == ["one", "two", "The command failed."]
        # A control event has a task of its own.
        await chat.platform.say(ada, "/cancel")
        assert (await chat.wait_for_answers(ada.chat_id, 4))[-1] == "There is nothing to stop."


async def test_only_what_is_said_in_the_conversation_is_in_the_reply() -> None:
    async def say(call: Any) -> None:
        await call.reply("for all")
        await call.reply(Reply("for you", to="direct"))

    async with open_waiting(EchoAgent(), reply_seconds=60.0, commands=[ChannelCommand("say", "Say", say)]) as chat:
        ada = await chat.platform.user("Ada")
        group = await chat.platform.group("Friends", ada)
        await chat.platform.say(ada, "/say@desk", chat_id=group.chat_id)
        assert await chat.wait_for_answers(group.chat_id) == ["for all"]
        assert await chat.wait_for_answers(ada.chat_id) == ["for you"]


async def test_the_reply_says_that_work_goes_on_and_the_answer_is_pushed() -> None:
    def hook(request: ChannelRequest, **_: Any) -> ChannelRequest:
        return request.replace(background=True)

    async with open_waiting(EchoAgent(), reply_seconds=60.0, run_hook=hook) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "later")
        assert await chat.wait_for_answers(ada.chat_id, 2) == [f"{WORK_GOES_ON} /cancel stops it.", "later"]
        assert [code for _, codes in await statuses(chat) for code in codes].count("in the reply") == 1


def item_of(ada: Person, event_id: str = "evt_1") -> InboxItem:
    identity = ChannelIdentity(channel="messages", native_id=ada.user_id, attributes={"name": "Ada"})
    request = ChannelRequest(channel="messages", input="hello", conversation_id=ada.chat_id, identity=identity)
    caller = Caller(identity=identity)
    return InboxItem(
        channel="messages",
        event_id=event_id,
        conversation_id=ada.chat_id,
        caller=caller,
        request=request,
        received_at=0.0,
    )


def context_of(chat: MessagesHost) -> Any:
    return chat.channel._replies._context  # pyright: ignore[reportOptionalMemberAccess]


async def test_a_channel_gets_the_parts_and_the_run() -> None:
    async with open_chat(EchoAgent()) as chat:
        ada = await chat.platform.user("Ada")
        async with context_of(chat).events.accept_and_wait(item_of(ada), 60.0) as reply:
            (part,) = reply.parts
            assert (part.content, part.conversation_id) == ({"text": "hello"}, ada.chat_id)
            assert (reply.result.run.status, reply.result.result.text, reply.is_late) == ("completed", "hello", False)
            (row,) = await chat.host.deliveries.list()
            assert (row.status, row.delivery_id) == ("sending", part.idempotency_key)
        assert await chat.platform.answers(ada.chat_id) == []


async def test_a_reply_that_could_not_be_made_is_pushed_at_once() -> None:
    async with open_chat(EchoAgent(), idempotent=False) as chat:
        ada = await chat.platform.user("Ada")
        with pytest.raises(ValueError, match="no such shape"):
            async with context_of(chat).events.accept_and_wait(item_of(ada), 60.0):
                raise ValueError("no such shape")
        assert await chat.wait_for_answers(ada.chat_id) == ["hello"]


async def _leave(chat: MessagesHost, ada: Person) -> Delivery:
    """Somebody leaves while the reply is written."""
    with pytest.raises(asyncio.CancelledError):
        async with context_of(chat).events.accept_and_wait(item_of(ada), 60.0):
            raise asyncio.CancelledError
    (row,) = await chat.host.deliveries.list()
    return row


async def test_a_reply_whose_reader_left_is_pushed_under_its_key() -> None:
    async with open_chat(EchoAgent()) as chat:
        ada = await chat.platform.user("Ada")
        await _leave(chat, ada)
        assert await chat.wait_for_answers(ada.chat_id) == ["hello"]


async def test_a_reply_whose_reader_left_is_not_repeated_where_that_could_be_seen() -> None:
    async with open_chat(EchoAgent(), idempotent=False, store=InMemoryStateStore()) as chat:
        ada = await chat.platform.user("Ada")
        key = (await _leave(chat, ada)).delivery_id
        await until(lambda: _is_settled(chat))
        assert await statuses(chat) == [("unknown", ["interrupted"])]
        # That the platform sends the event again tells that it got no reply.
        async with context_of(chat).events.accept_and_wait(item_of(ada), 60.0) as reply:
            assert [part.idempotency_key for part in reply.parts] == [key]
        assert await statuses(chat) == [("accepted", ["interrupted", "in the reply"])]


async def test_two_replies_to_one_event_are_not_written_at_once() -> None:
    async with open_chat(EchoAgent()) as chat:
        ada = await chat.platform.user("Ada")
        async with context_of(chat).events.accept_and_wait(item_of(ada), 60.0) as reply:
            assert len(reply.parts) == 1
            with pytest.raises(Exception, match="being written"):
                async with context_of(chat).events.accept_and_wait(item_of(ada), 60.0):
                    raise AssertionError("there is nothing to write yet")
        async with context_of(chat).events.accept_and_wait(item_of(ada), 60.0) as again:
            assert again.parts == reply.parts


@pytest.mark.parametrize("seconds", [0.0, -1.0, 121.0, float("nan")])
async def test_a_wait_has_bounds(seconds: float) -> None:
    async with open_chat(EchoAgent()) as chat:
        ada = await chat.platform.user("Ada")
        with pytest.raises(ValueError, match="seconds"):
            context_of(chat).events.accept_and_wait(item_of(ada), seconds)
