"""The contract of chat channels for sending: failures, long texts, files, and answers that are being written."""

import base64
from collections.abc import AsyncIterator

import pytest
from agent_framework import AgentResponseUpdate, Content

from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing.agents import EchoAgent, GatedAgent
from frontdesk_testing.chat_driver import ChatDriver
from frontdesk_testing.chat_platform import ChatFile, PushFailure
from frontdesk_testing.internals import claims_wait_for

PICTURE = ChatFile(media_type="image/png", data=b"\x89PNG\r\n\x1a\n of a cat", name="cat.png")
LONG = " ".join(f"Sentence number {number} is here.\n\n" * (number % 3 == 0) + f"word{number}" for number in range(900))


class _Painter(EchoAgent):
    """Answers with a picture."""

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        uri = f"data:{PICTURE.media_type};base64,{base64.b64encode(PICTURE.data).decode()}"
        named = {"filename": PICTURE.name}
        picture = Content.from_uri(uri, media_type=PICTURE.media_type, additional_properties=named)
        yield AgentResponseUpdate(contents=[Content.from_text("look:"), picture], role="assistant")


class _Writer(EchoAgent):
    """Answers with a long text."""

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        yield AgentResponseUpdate(contents=[Content.from_text(LONG)], role="assistant")


class _BreaksOff(GatedAgent):
    """Answers with two words, waits, and fails. Then it repeats its input."""

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        fails = not self.release.is_set()
        async for update in EchoAgent.speak(self, words[:2] if fails else words):
            yield update
        if fails:
            await self.release.wait()
            raise RuntimeError("the secret reason")


class Pushes(ChatDriver):
    """Sends, with each response of the platform."""

    @pytest.mark.parametrize("failure", ["limited", "unavailable", "lost"])
    async def test_an_answer_arrives_once_after_a_failure(self, failure: PushFailure) -> None:
        async with self.chat() as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.fail(failure)
            await chat.platform.say(ada, "hello")
            assert await chat.say_last_and_list(ada) == ["hello", "the last word"]

    async def test_an_answer_that_is_refused_is_given_up_and_keeps_nothing_back(self) -> None:
        async with self.chat() as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.fail("refused")
            await chat.platform.say(ada, "hello")
            assert await chat.say_last_and_list(ada) == ["the last word"]
            (dead,) = await chat.deliveries("dead")
            assert dead.error

    async def test_a_long_text_is_split_and_nothing_of_it_is_lost(self) -> None:
        async with self.chat(_Writer()) as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.say(ada, "tell me all")

            async def whole() -> bool:
                shown = await chat.platform.shown(ada.chat_id)
                return bool(shown) and shown[-1].text.rstrip().endswith("word899")

            await chat.until(whole)
            texts = [message.text for message in await chat.platform.shown(ada.chat_id)]
            assert (len(texts) > 1) == self.splits_texts
            assert " ".join(texts).split() == LONG.split()

    async def test_a_file_comes_in(self) -> None:
        if not self.takes_files:
            pytest.skip("the platform has no files")
        agent = EchoAgent()
        async with self.chat(agent) as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.say(ada, "what is this?", files=[PICTURE])
            await chat.until_shown(ada.chat_id, "what is this?")
        (content,) = [content for content in agent.seen[0][-1].contents if content.type == "data"]
        assert content.media_type == PICTURE.media_type
        assert base64.b64decode((content.uri or "").partition(",")[2]) == PICTURE.data

    async def test_an_album_is_one_turn(self) -> None:
        if not self.has_albums or not self.takes_files:
            pytest.skip("the platform has no albums")
        agent, second = EchoAgent(), ChatFile(media_type="image/png", data=b"\x89PNG\r\n\x1a\n of a dog")
        async with self.chat(agent, album_seconds=0.2) as chat:
            ada = await chat.platform.person("Ada")
            with claims_wait_for(chat.store, 2):
                await chat.platform.say(ada, "a cat", files=[PICTURE], album="a-1")
                await chat.platform.say(ada, "a dog", files=[second], album="a-1")
                assert await chat.say_last_and_list(ada) == ["a cat a dog", "the last word"]
        contents = [content for message in agent.seen[0] for content in message.contents if content.type == "data"]
        files = [base64.b64decode((content.uri or "").partition(",")[2]) for content in contents]
        assert files == [PICTURE.data, second.data]

    async def test_the_rest_of_an_album_comes_with_the_message_that_is_addressed(self) -> None:
        if not self.has_albums or not self.takes_files:
            pytest.skip("the platform has no albums")
        agent = EchoAgent()
        async with self.chat(agent, album_seconds=0.2) as chat:
            ada = await chat.platform.person("Ada")
            group = await chat.platform.group(ada)
            for album, text in (("a-1", "among us"), ("a-2", f"{chat.platform.mention} look")):
                await chat.platform.say(ada, text, chat_id=group, files=[PICTURE], album=album)
                await chat.platform.say(ada, "", chat_id=group, files=[PICTURE], album=album)
            await chat.until_shown(group, "look")
            assert await chat.say_last_and_list(ada) == ["the last word"]
            assert [message.text.strip() for message in await chat.platform.shown(group)] == ["look"]
        contents = [content.type for message in agent.seen[0] for content in message.contents]
        assert contents == ["text", "data", "data"]

    async def test_a_file_goes_out(self) -> None:
        if not self.sends_files:
            pytest.skip("the channel sends no files")
        async with self.chat(_Painter()) as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.say(ada, "paint")

            async def painted() -> bool:
                return any(message.files for message in await chat.platform.shown(ada.chat_id))

            await chat.until(painted)
            shown = await chat.platform.shown(ada.chat_id)
            # With the text, or behind it.
            assert [message.text.strip() for message in shown if message.text.strip()] == ["look:"]
            files = [(file.media_type, file.data) for message in shown for file in message.files]
            assert files == [(PICTURE.media_type, PICTURE.data)]

    async def test_an_answer_is_shown_while_it_is_written(self) -> None:
        self.require_live()
        agent = GatedAgent()
        async with self.chat(agent, live="auto") as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.say(ada, "one two three")
            (growing,) = await chat.until_shown(ada.chat_id, "one")
            agent.release.set()
            (whole,) = await chat.until_shown(ada.chat_id, "one two three")
            assert whole.message_id == growing.message_id
            assert await chat.say_last_and_list(ada) == ["one two three", "the last word"]

    async def test_an_answer_that_is_being_written_can_be_cancelled(self) -> None:
        self.require_live()
        agent = GatedAgent()
        async with self.chat(agent, live="auto") as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.say(ada, "one two three")
            await chat.until_shown(ada.chat_id, "one")
            await chat.platform.say(ada, "/cancel")
            await agent.cancelled.wait()
            agent.release.set()
            assert await chat.say_last_and_list(ada) == ["one", "I have stopped.", "the last word"]

    async def test_a_host_that_stops_while_it_writes_is_followed_by_another(self) -> None:
        self.require_live()
        store, agent = InMemoryStateStore(), GatedAgent()
        async with self.platform() as platform:
            ada = await platform.person("Ada")
            async with self.chat(agent, platform=platform, store=store, live="auto", host=_AT_ONCE) as chat:
                await platform.say(ada, "one two three")
                await chat.until_shown(ada.chat_id, "one")
            async with self.chat(platform=platform, store=store, live="auto") as chat:
                await chat.until_shown(ada.chat_id, "one two three")
                assert await chat.say_last_and_list(ada) == ["one two three", "the last word"]

    async def test_an_answer_that_broke_off_keeps_what_was_shown_of_it(self) -> None:
        self.require_live()
        agent = _BreaksOff()
        async with self.chat(agent, live="auto") as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.say(ada, "once upon a time")
            await chat.until_said(ada.chat_id, "once upon")
            agent.release.set()
            # The failure is told behind it.
            await chat.messages(ada.chat_id, 2)
            first, *_ = await chat.say_last_and_list(ada)
            assert first == "once upon"


_AT_ONCE = {"shutdown_grace_seconds": 0.0}
