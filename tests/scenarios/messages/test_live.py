"""An answer is shown while it is written: one message, which the whole answer replaces."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agent_framework import AgentResponseUpdate, Content

from frontdesk.interfaces.chat import LiveTerms
from frontdesk_testing import EchoAgent, GatedAgent
from frontdesk_testing.internals import get_store
from frontdesk_testing.messages import Person
from frontdesk_testing.messages.platform.records import Said
from tests.scenarios.desk import until
from tests.scenarios.messages.chat import MessagesHost, open_chat

QUICK = LiveTerms(interval=0.01)


@asynccontextmanager
async def live_chat(agent: Any, **settings: Any) -> AsyncIterator[MessagesHost]:
    given = {"live": "auto", "live_terms": QUICK, **settings}
    async with open_chat(agent, **given) as chat:
        yield chat


async def wait_for_texts(chat: MessagesHost, who: Person, *texts: str) -> list[Said]:
    """Wait until the bot's messages in a chat are these, and return them."""
    messages: list[Said] = []

    async def same() -> bool:
        messages[:] = await chat.platform.answers(who.chat_id)
        return [message.text for message in messages] == list(texts)

    await chat.platform.until(same)
    return messages


async def wait_for_ends(chat: MessagesHost, count: int = 1) -> None:
    """Wait until so many events are done, and all their deliveries have ended."""
    store = get_store(chat.host)

    async def done() -> bool:
        counts = await store.outbox.counts()
        left = sum(counts.get(status, 0) for status in ("pending", "sending"))
        return not left and len(await store.outbox.find()) >= count

    await until(done, within=60)


def methods(chat: MessagesHost, *names: str) -> list[str]:
    return [
        entry.method for entry in chat.platform.log_on_disk() if entry.method in (names or ("send", "edit", "delete"))
    ]


async def test_a_message_grows_and_the_answer_replaces_it() -> None:
    agent = GatedAgent()
    async with live_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "one two three")
        (first,) = await wait_for_texts(chat, ada, "one ")
        agent.release.set()
        (last,) = await wait_for_texts(chat, ada, "one two three")
        assert last.message_id == first.message_id
        await wait_for_ends(chat)
        assert methods(chat).count("send") == 1
        (delivery,) = await get_store(chat.host).outbox.find()
        assert (delivery.status, delivery.replaces, delivery.receipt) == (
            "accepted",
            first.message_id,
            first.message_id,
        )
        live = await get_store(chat.host).live.get(delivery.run_id, "messages", ada.user_id)
        assert live is not None
        assert (live.state, live.handles) == ("closed", (first.message_id,))


async def test_an_answer_was_shown_twice_when_the_reply_to_its_opening_was_lost() -> None:
    async def look(result: Any, *, context: Any) -> Any:
        # The run has ended, and others go on meanwhile.
        for _ in range(100):
            await asyncio.sleep(0)
        return result

    async with live_chat(EchoAgent(), idempotent=False, response_hook=look, live="always") as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.fail("cut_after", method="send", times=1)
        await chat.platform.say(ada, "one")
        await wait_for_ends(chat)
        # It was whole before a message was opened for it.
        await wait_for_texts(chat, ada, "one")
        assert methods(chat) == ["send"]
        (row,) = await get_store(chat.host).outbox.find()
        assert await get_store(chat.host).live.get(row.run_id, "messages", ada.user_id) is None


@pytest.mark.parametrize(
    ("settings", "is_shown"),
    [
        ({"live": "off"}, False),
        ({"live_terms": QUICK.replace(direct=False)}, False),
        ({"live_terms": QUICK.replace(group=False)}, True),
        ({"response_hook": lambda result, *, context: result}, False),
        ({"response_hook": lambda result, *, context: result, "live": "always"}, True),
    ],
)
async def test_where_an_answer_is_shown(settings: dict[str, Any], is_shown: bool) -> None:
    agent = GatedAgent()
    async with live_chat(agent, **settings) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "one two")
        await agent.started.wait()
        if is_shown:
            await wait_for_texts(chat, ada, "one ")
        agent.release.set()
        await wait_for_texts(chat, ada, "one two")
        await wait_for_ends(chat)
        assert ("edit" in methods(chat)) == is_shown


async def test_nothing_is_shown_while_something_waits_for_the_same_place() -> None:
    agent = GatedAgent()
    async with live_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.fail("flood", method="send", retry_after=0.5, times=1)
        await chat.platform.say(ada, "/help")
        await chat.platform.say(ada, "one two")
        await agent.started.wait()
        messages = await chat.platform.wait_for_answers(ada.chat_id, 2)
        assert [message.text[:5] for message in messages] == ["/new ", "one "]
        agent.release.set()
        await wait_for_ends(chat, 2)


async def test_a_group_gets_a_reply_that_grows() -> None:
    agent = GatedAgent()
    async with live_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        group = await chat.platform.group("Friends", ada)
        event = await chat.platform.say(ada, "@desk one two", chat_id=group.chat_id)
        assert event.message is not None
        there = Person(user_id=ada.user_id, name="", chat_id=group.chat_id)
        (first,) = await wait_for_texts(chat, there, "one ")
        assert first.reply_to == event.message.message_id
        agent.release.set()
        await wait_for_texts(chat, there, "one two")


async def test_a_cancelled_answer_says_nothing_more() -> None:
    agent = GatedAgent()
    async with live_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "one two")
        await wait_for_texts(chat, ada, "one ")
        await chat.platform.say(ada, "/cancel")
        await wait_for_texts(chat, ada, "one ", "I have stopped.")
        await wait_for_ends(chat, 2)
        settled = [row for row in await get_store(chat.host).outbox.find() if row.action == "settle"]
        assert [(row.status, row.history[-1].code) for row in settled] == [("accepted", "not_modified")]
        await wait_for_texts(chat, ada, "one ", "I have stopped.")


class Failing(GatedAgent):
    """Fails after its first word."""

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        async for update in super().speak(words):
            yield update
            if self.release.is_set():
                raise RuntimeError("the secret reason")


async def test_a_failed_answer_is_settled_and_the_failure_is_told() -> None:
    agent = Failing()
    async with live_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "one two three")
        await wait_for_texts(chat, ada, "one ")
        agent.release.set()
        messages = await chat.platform.wait_for_answers(ada.chat_id, 2)
        assert "secret" not in messages[1].text
        await wait_for_ends(chat, 2)
        assert sorted(row.action for row in await get_store(chat.host).outbox.find()) == ["send", "settle"]


class Slow(EchoAgent):
    """Says a word each time it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: asyncio.Queue[None] = asyncio.Queue()

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        async for update in super().speak(words):
            await self.steps.get()
            yield update

    def say(self, count: int = 1) -> None:
        for _ in range(count):
            self.steps.put_nowait(None)


async def wait_for_fault(chat: MessagesHost) -> None:
    """Wait until the platform has failed once, as the test wants it."""

    async def once() -> bool:
        return (await chat.platform.state()).struck == (1,)

    await chat.platform.until(once)


async def test_a_platform_that_wants_to_wait_pauses_only_the_updates() -> None:
    agent = Slow()
    async with live_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.fail("flood", method="edit", retry_after=30.0, times=1)
        await chat.platform.say(ada, "one two three")
        agent.say()
        (first,) = await wait_for_texts(chat, ada, "one ")
        agent.say()
        await wait_for_fault(chat)
        agent.say()
        (last,) = await wait_for_texts(chat, ada, "one two three")
        assert last.message_id == first.message_id
        await wait_for_ends(chat)
        (delivery,) = await get_store(chat.host).outbox.find()
        assert (delivery.attempts, [attempt.code for attempt in delivery.history]) == (1, ["accepted"])


async def test_what_does_not_fit_into_one_message_goes_on_in_another() -> None:
    agent = Slow()
    async with live_chat(agent, text_limit=16) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "the first words and the second words")
        agent.say(3)
        (first,) = await wait_for_texts(chat, ada, "the first words ")
        agent.say(2)
        _, second = await wait_for_texts(chat, ada, "the first words ", "and the ")
        agent.say(2)
        messages = await wait_for_texts(chat, ada, "the first words ", "and the second ", "words")
        assert [message.message_id for message in messages[:2]] == [first.message_id, second.message_id]
        await wait_for_ends(chat)


async def test_a_hook_for_streams_changes_what_is_shown_and_what_is_sent() -> None:
    agent = GatedAgent()

    def hide(update: Any) -> Any:
        for content in update.contents:
            content.text = content.text.replace("two", "***")
        return update

    async with live_chat(agent, stream_transform_hook=hide) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "two and two")
        await wait_for_texts(chat, ada, "*** ")
        agent.release.set()
        await wait_for_texts(chat, ada, "*** and ***")
        await wait_for_ends(chat)
        assert all("two" not in entry.text for entry in chat.platform.log_on_disk())


async def test_a_first_message_of_which_nothing_is_known_is_not_sent_twice() -> None:
    agent = GatedAgent()
    async with live_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.fail("cut_after", method="send", times=1)
        await chat.platform.say(ada, "one two")
        await wait_for_texts(chat, ada, "one ")
        agent.release.set()
        await wait_for_texts(chat, ada, "one two")
        await wait_for_ends(chat)
        assert len(await chat.platform.answers(ada.chat_id)) == 1


async def test_a_first_message_of_which_nothing_is_known_is_found_when_the_platform_is_well_again() -> None:
    agent = GatedAgent()
    async with live_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.fail("cut_after", method="send", times=1)
        await chat.platform.fail("error", method="send", times=5)
        await chat.platform.say(ada, "one two")

        async def refused() -> bool:
            return (await chat.platform.state()).struck[1] > 0

        await chat.platform.until(refused)
        agent.release.set()
        await wait_for_texts(chat, ada, "one two")
        await wait_for_ends(chat)
        assert await get_store(chat.host).live.lost() == []
        assert len(await chat.platform.answers(ada.chat_id)) == 1


async def test_a_message_that_may_still_change_is_removed_and_the_answer_is_sent_anew() -> None:
    agent = Slow()
    async with live_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.fail("cut_before", method="edit", times=1)
        await chat.platform.say(ada, "one two three")
        agent.say()
        (first,) = await wait_for_texts(chat, ada, "one ")
        agent.say()
        await wait_for_fault(chat)
        agent.say()
        (last,) = await wait_for_texts(chat, ada, "one two three")
        assert last.message_id != first.message_id
        await wait_for_ends(chat, 2)
        (lost,) = await get_store(chat.host).live.lost()
        assert lost.handles == (first.message_id,)


async def test_a_message_that_became_too_old_is_not_changed() -> None:
    agent = GatedAgent()
    async with live_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "one two")
        await wait_for_texts(chat, ada, "one ")
        await chat.platform.set(edit_seconds=0.0)
        agent.release.set()
        await wait_for_texts(chat, ada, "one ", "one two")


async def test_an_answer_goes_on_in_a_new_message_when_the_first_takes_no_more_updates() -> None:
    agent = Slow()
    async with live_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "one two three four five")
        agent.say()
        (first,) = await wait_for_texts(chat, ada, "one ")
        await chat.platform.set(stream_seconds=0.0)
        agent.say()
        await wait_for_texts(chat, ada, "one ", "two ")
        await chat.platform.set(stream_seconds=None)
        agent.say()
        await wait_for_texts(chat, ada, "one ", "two three ")
        await chat.platform.set(stream_seconds=0.0)
        agent.say()
        await wait_for_texts(chat, ada, "one ", "two three ", "four ")
        agent.say()
        (last,) = await wait_for_texts(chat, ada, "one two three four five")
        assert last.message_id == first.message_id
        await wait_for_ends(chat, 3)
        assert (await get_store(chat.host).outbox.counts()).keys() == {"accepted"}


async def test_what_goes_on_in_a_new_message_is_cut_where_it_is_too_long() -> None:
    agent = Slow()
    async with live_chat(agent, text_limit=16) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "the first words and the second words")
        agent.say(2)
        await wait_for_texts(chat, ada, "the first ")
        await chat.platform.set(stream_seconds=0.0)
        agent.say()
        await wait_for_texts(chat, ada, "the first ", "words ")
        await chat.platform.set(stream_seconds=None)
        agent.say(3)
        await wait_for_texts(chat, ada, "the first ", "words and the ", "second ")
        agent.say()
        await wait_for_texts(chat, ada, "the first words ", "and the second ", "words")
        await wait_for_ends(chat, 3)


async def test_a_cancelled_answer_that_went_on_in_a_new_message_stays_as_it_is() -> None:
    agent = Slow()
    async with live_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "one two three")
        agent.say()
        await wait_for_texts(chat, ada, "one ")
        await chat.platform.set(stream_seconds=0.0)
        agent.say()
        await wait_for_texts(chat, ada, "one ", "two ")
        await chat.platform.say(ada, "/cancel")
        await wait_for_texts(chat, ada, "one ", "two ", "I have stopped.")
        await wait_for_ends(chat, 3)
        settled = [row for row in await get_store(chat.host).outbox.find() if row.action == "settle"]
        assert [row.status for row in settled] == ["accepted", "accepted"]


class Picture(EchoAgent):
    """Answers with a tool's call in between, which nobody sees."""

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        def update(text: str, message_id: str, role: str = "assistant") -> AgentResponseUpdate:
            return AgentResponseUpdate(contents=[Content.from_text(text)], role=role, message_id=message_id)

        yield update("I look.", "a")
        yield update("rows", "b", "tool")
        yield update("It is late.", "c")


async def test_only_what_the_assistant_says_is_shown() -> None:
    async with live_chat(Picture()) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "when?")
        await wait_for_texts(chat, ada, "I look.", "It is late.")
        await wait_for_ends(chat)
        assert all("rows" not in entry.text for entry in chat.platform.log_on_disk())
