"""The contract of chat channels for live messages: silence, typing notices, stop buttons, and another process."""

import asyncio
from typing import Any, cast

import pytest

from frontdesk.chat.live_mixin import LiveAnswers, TypingNotices
from frontdesk.chat.messages import Destination, OutboundMessage
from frontdesk.interfaces.chat import LiveTerms
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing.agents import GatedAgent
from frontdesk_testing.chat_driver import TIMEOUT_SECONDS, Chat, ChatDriver
from frontdesk_testing.chat_platform import StoppingPlatform

_REPEATS = LiveTerms(interval=0.01, silence=0.02)
_AT_ONCE = {"shutdown_grace_seconds": 0.0}


class _Updates:
    """The updates of live messages that a channel was asked for."""

    def __init__(self, chat: Chat) -> None:
        self.numbers: list[int] = []
        self.typing: list[bool] = []
        self._changed = asyncio.Event()
        channel: Any = chat.channel
        if not isinstance(channel, LiveAnswers):
            pytest.skip("the channel updates live messages in a way of its own")
        self._edit = channel.edit
        channel.edit = self._note_edit
        if isinstance(channel, TypingNotices):
            self._typing = channel.typing
            channel.typing_interval = 0.01
            channel.typing = self._note_typing

    async def _note_edit(self, message_id: str, message: OutboundMessage, destination: Destination) -> None:
        if message.live:
            self.numbers.append(message.sequence)
            self._changed.set()
        await self._edit(message_id, message, destination)

    async def _note_typing(self, destination: Destination, *, on: bool) -> None:
        self.typing.append(on)
        await self._typing(destination, on=on)

    async def more(self, count: int) -> None:
        """Wait for more updates."""
        enough = len(self.numbers) + count
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while len(self.numbers) < enough:
                self._changed.clear()
                await self._changed.wait()


class LiveMessages(ChatDriver):
    """Messages that show an answer while it is written."""

    async def test_an_open_message_is_updated_during_silence(self) -> None:
        self.require_live()
        agent = GatedAgent()
        async with self.chat(agent, live="auto", live_terms=_REPEATS) as chat:
            updates, ada = _Updates(chat), await chat.platform.person("Ada")
            await chat.platform.say(ada, "one two three")
            await chat.until_shown(ada.chat_id, "one")
            await updates.more(3)
            assert updates.numbers == sorted(set(updates.numbers))
            agent.release.set()
            await chat.until_shown(ada.chat_id, "one two three")

    async def test_the_typing_notice_ends_when_the_message_opens(self) -> None:
        self.require_live()
        agent = GatedAgent()
        async with self.chat(agent, live="auto", live_terms=_REPEATS) as chat:
            if not isinstance(chat.channel, TypingNotices):
                pytest.skip("the platform has no typing notice")
            updates, ada = _Updates(chat), await chat.platform.person("Ada")
            await chat.platform.say(ada, "one two three")
            await chat.until_shown(ada.chat_id, "one")
            await updates.more(1)
            known = len(updates.typing)
            await updates.more(5)
            assert True not in updates.typing[known:]
            agent.release.set()
            await chat.until_shown(ada.chat_id, "one two three")

    async def test_updates_of_another_process_are_numbered_behind_the_earlier_ones(self) -> None:
        self.require_live()
        store, numbers = InMemoryStateStore(), list[int]()
        async with self.platform() as platform:
            ada = await platform.person("Ada")
            for is_last in (False, True):
                agent = GatedAgent()
                given: dict[str, Any] = {"platform": platform, "store": store, "host": _AT_ONCE}
                async with self.chat(agent, live="auto", live_terms=_REPEATS, **given) as chat:
                    updates = _Updates(chat)
                    if not is_last:
                        await platform.say(ada, "one two three")
                    await chat.until_shown(ada.chat_id, "one")
                    await updates.more(2)
                    if is_last:
                        agent.release.set()
                        await chat.until_shown(ada.chat_id, "one two three")
                    numbers += updates.numbers
        assert numbers == sorted(set(numbers))

    async def test_an_answer_that_is_stopped_on_the_platform_cancels_its_run(self) -> None:
        self.require_live()
        if not self.has_stop_button:
            pytest.skip("the platform has no stop button of its own")
        agent = GatedAgent()
        async with self.chat(agent, live="auto", live_terms=_REPEATS) as chat:
            platform = cast("StoppingPlatform", chat.platform)
            ada = await platform.person("Ada")
            await platform.say(ada, "one two three")
            await chat.until_shown(ada.chat_id, "one")
            await platform.stop(ada)
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await agent.cancelled.wait()
            agent.release.set()
            assert await chat.say_last_and_list(ada) == ["one", "the last word"]
            assert await chat.run_statuses() == ["cancelled", "completed"]
