"""Limits on what one person sends to a chat."""

import asyncio
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, ChannelConfigurationError, EventLimits, InMemoryStateStore, RateLimit
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.chat.i18n.texts import ENGLISH
from frontdesk.models.delivery import InboxItem
from frontdesk.stores.memory.delivery import MemoryInbox
from frontdesk_testing import EchoAgent, FakeClock
from frontdesk_testing.internals import get_components
from frontdesk_testing.messages import MessageChannel
from tests.scenarios.messages.chat import MessagesHost, open_chat

TOO_MANY = ENGLISH["limits.too_many"]
ONE_A_DAY = RateLimit(1, per_seconds=86_400.0)


class Slow:
    """Answers when it may, and notes what it was asked."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.go = asyncio.Event()

    async def answer(self, text: str) -> str:
        self.heard.append(text)
        await self.go.wait()
        return f"heard {text}"


def _stop_clock(chat: MessagesHost) -> Any:
    """Lets all notices be of one minute."""
    limiter: Any = get_components(chat.host).events.intake._limiter
    limiter._clock = FakeClock(1_000_000.0)
    return limiter


async def test_messages_beyond_the_rate_are_not_read_and_their_sender_is_told_once() -> None:
    agent = EchoAgent()
    limits = EventLimits(per_caller=RateLimit(2, per_seconds=86_400.0))
    async with open_chat(agent, event_limits=limits) as chat:
        _stop_clock(chat)
        ada, ben = await chat.platform.user("Ada"), await chat.platform.user("Ben")
        events = [await chat.platform.say(ada, f"{number}") for number in range(6)]
        # What is refused is acknowledged too, so that the platform does not send it again.
        await chat.platform.wait_for_acknowledged(*events)
        # A control event is counted apart, and others have rates of their own.
        await chat.platform.say(ada, "/help")
        await chat.platform.say(ben, "hello")
        assert await chat.wait_for_answers(ben.chat_id) == ["hello"]
        said = await chat.wait_for_answers(ada.chat_id, 4)
    assert [text for text in said if text.isdigit()] == ["0", "1"]
    assert said.count(TOO_MANY) == 1
    assert [seen[-1].text for seen in agent.seen if seen[-1].text != "hello"] == ["0", "1"]


async def test_no_more_than_some_messages_of_a_person_wait() -> None:
    slow = Slow()
    async with open_chat(
        slow.answer, event_limits=EventLimits(max_waiting_per_caller=2), accept_in_group="all"
    ) as chat:
        ada, ben = await chat.platform.user("Ada"), await chat.platform.user("Ben")
        group = (await chat.platform.group("Friends", ada, ben)).chat_id
        events = [await chat.platform.say(ada, "first"), await chat.platform.say(ada, "second", chat_id=group)]
        await chat.platform.wait_for_acknowledged(*events)
        refused = [await chat.platform.say(ada, "third"), await chat.platform.say(ada, "fourth", chat_id=group)]
        accepted = await chat.platform.say(ben, "mine", chat_id=group)
        await chat.platform.wait_for_acknowledged(*refused, accepted)
        assert await chat.wait_for_answers(ada.chat_id) == [TOO_MANY]
        # What was accepted before is not refused when the platform sends it again.
        await chat.platform.redeliver(events[0])
        slow.go.set()
        assert await chat.wait_for_answers(ada.chat_id, 2) == [TOO_MANY, "heard first"]
        assert len(await chat.wait_for_answers(group, 2)) == 2
        await chat.platform.say(ada, "fifth")
        assert (await chat.wait_for_answers(ada.chat_id, 3))[-1] == "heard fifth"
    assert sorted(slow.heard) == ["fifth", "first", "mine", "second"]


async def test_a_person_could_let_any_number_of_messages_wait_without_limits_of_the_operator() -> None:
    slow = Slow()
    async with open_chat(slow.answer) as chat:
        ada = await chat.platform.user("Ada")
        events = [await chat.platform.say(ada, f"{number}") for number in range(50)]
        await chat.platform.wait_for_acknowledged(*events)
        await chat.platform.say(ada, "one more")
        assert await chat.wait_for_answers(ada.chat_id) == [TOO_MANY]
        slow.go.set()
        assert len(await chat.wait_for_answers(ada.chat_id, 51)) == 51
    assert slow.heard == [f"{number}" for number in range(50)]


async def test_the_store_was_asked_for_each_message_how_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, asked, count = EchoAgent(), list[str](), MemoryInbox.count_waiting

    async def counting(self: MemoryInbox, item: InboxItem) -> int:
        asked.append(item.event_id)
        return await count(self, item)

    monkeypatch.setattr(MemoryInbox, "count_waiting", counting)
    store = InMemoryStateStore()
    async with open_chat(agent, store=store, event_limits=EventLimits(max_waiting_per_caller=4)) as chat:
        ada = await chat.platform.user("Ada")
        for number in range(9):
            await chat.platform.say(ada, f"{number}")
            await chat.wait_for_answers(ada.chat_id, number + 1)
    # Once for a sender who is not known here, and then after as many messages as may wait.
    assert (len(agent.seen), len(asked)) == (9, 3)


async def test_who_sends_too_much_can_still_cancel() -> None:
    slow = Slow()
    limits = EventLimits(per_caller=ONE_A_DAY, max_waiting_per_caller=1)
    async with open_chat(slow.answer, event_limits=limits) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.wait_for_acknowledged(await chat.platform.say(ada, "first"))
        await chat.platform.say(ada, "second")
        assert await chat.wait_for_answers(ada.chat_id) == [TOO_MANY]
        await chat.platform.say(ada, "/cancel")
        assert (await chat.wait_for_answers(ada.chat_id, 2))[-1] == "I have stopped."


async def test_another_process_does_not_tell_it_again() -> None:
    """The memory of who was told is lost with a process; the reply has a name that is the same in all of them."""
    limits = EventLimits(per_caller=ONE_A_DAY)
    async with open_chat(EchoAgent(), event_limits=limits) as chat:
        ada, limiter = await chat.platform.user("Ada"), _stop_clock(chat)
        await chat.platform.say(ada, "first")
        for text in ("second", "third"):
            await chat.platform.wait_for_acknowledged(await chat.platform.say(ada, text))
            limiter._told.clear()
        await chat.platform.say(ada, "/help")
        said = await chat.wait_for_answers(ada.chat_id, 3)
    assert said.count(TOO_MANY) == 1


@pytest.mark.parametrize(
    ("limits", "finding"),
    [
        (EventLimits(max_waiting_per_caller=0), "event_limits: max_waiting_per_caller must be at least 1"),
        (EventLimits(max_waiting_for_unlinked=0), "event_limits: max_waiting_for_unlinked must be at least 1"),
        (EventLimits(max_callers=0), "event_limits: max_callers must be at least 1"),
        (EventLimits(per_caller=RateLimit(0)), "event_limits: per_caller: requests must be at least 1"),
        (7, "event_limits must be EventLimits or None, got int"),
    ],
)
def test_limits_that_can_not_hold_are_found(limits: Any, finding: str) -> None:
    channel = MessageChannel(
        platform_url="http://127.0.0.1", token="t", secret="a secret of sixteen characters", event_limits=limits
    )
    with pytest.raises(ChannelConfigurationError, match=finding.replace("(...)", ".*")):
        AgentFrameworkHost(EchoAgent(), channels=[channel])


def test_limits_of_a_channel_without_events_have_no_effect() -> None:
    channel = InvocationsChannel()
    channel.event_limits = EventLimits()
    with pytest.raises(ChannelConfigurationError, match="event_limits has no effect"):
        AgentFrameworkHost(EchoAgent(), channels=[channel])
