"""The fake platform in the loop of a test, as a host sees it that can crash between any two steps."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from frontdesk.errors import PushError, PushRefusedError, PushUnknownError
from frontdesk.outbound.platform import PlatformResponse
from frontdesk_testing.messages import MessageChannel
from frontdesk_testing.messages.client import failure
from frontdesk_testing.messages.platform.bot import Bot
from frontdesk_testing.messages.platform.journal import Journal
from frontdesk_testing.messages.platform.records import RefusedError, Said, Settings
from frontdesk_testing.messages.platform.world import World
from frontdesk_testing.messages.wire import AnswerClick, Event, Me, Refusal

_WAIT = 60.0


async def pause(steps: int = 3) -> None:
    """Let others go on, as a call over a network does."""
    for _ in range(steps):
        await asyncio.sleep(0)


class InProcessPlatform:
    """One chat with Ann, on a platform that answers a call some steps after it has arrived."""

    def __init__(self, latency: int) -> None:
        self.latency = latency
        self.world = World(Settings())
        self.bot = Bot(self.world, Journal(Path(os.devnull), sync=False))
        self.ann = self.world.add_user("u-ann", "Ann").user_id
        self.chat_id = self.world.direct(self.ann)

    @property
    def said(self) -> list[Said]:
        """Return the messages of the bot, in their order."""
        return [said for said in self.world.place(self.chat_id).messages.values() if said.user_id != self.ann]

    def say(self, text: str) -> Event:
        """Write as Ann."""
        return self.world.say(self.ann, "", {"text": text})

    def edit_last(self, text: str) -> Event | None:
        """Change the last message of Ann's."""
        own = [said for said in self.world.place(self.chat_id).messages.values() if said.user_id == self.ann]
        return self.world.edit_own(self.ann, self.chat_id, own[-1].message_id, text) if own else None

    def click(self, number: int) -> Event | None:
        """Press one of the buttons that are shown."""
        buttons = [(said.message_id, button.data) for said in self.said for button in said.buttons]
        if not buttons:
            return None
        message_id, data = buttons[number % len(buttons)]
        return self.world.click(self.ann, self.chat_id, message_id, data)


class MortalClient:
    """The calls of one host: from its crash on, none of them arrives, and none is answered."""

    def __init__(self, platform: InProcessPlatform, is_dead: Callable[[], bool]) -> None:
        self._platform, self._is_dead = platform, is_dead

    def __getattr__(self, name: str) -> Any:
        async def call(*given: Any) -> Any:
            return await self._call(getattr(self._platform.bot, name), *given)

        return call

    async def _call(self, call: Any, *given: Any) -> Any:
        await pause()
        if self._is_dead():
            raise PushError("The host has crashed.")
        try:
            answer = await call(*given)
        except RefusedError as error:
            body = msgspec.json.encode(Refusal(error=error.problem))
            raise failure(PlatformResponse(error.status, {}, body)) from None
        # Ann sees what has arrived before the host knows that it has, and can be faster.
        await pause(self._platform.latency)
        if self._is_dead():
            raise PushUnknownError("The host has crashed.")
        return answer

    async def me(self) -> Me:
        return Me(user_id=self._platform.world.me.user_id, handle="desk", text_limit=4096)

    async def answer(self, callback_id: str, text: str = "") -> None:
        await self._call(self._platform.bot.answer, AnswerClick(callback_id=callback_id, text=text))

    async def events(self, offset: int, seconds: float) -> list[tuple[int, bytes]]:
        world = self._platform.world
        if self._is_dead():
            raise PushRefusedError("The host has crashed.")
        world.confirm(offset)
        while not (events := world.list_unconfirmed(offset, 100)):
            await world.wait_for_change(world.changes, _WAIT)
        return [(event.number, msgspec.json.encode(event)) for event in events]

    def close(self) -> None:
        """Keep nothing open."""


def channel_on(platform: InProcessPlatform, is_dead: Callable[[], bool], **settings: Any) -> MessageChannel:
    """Make the channel of one host on the platform."""
    settings |= {"intake": "polling", "register_native_commands": False}
    channel = MessageChannel(platform_url="http://platform", token="token", **settings)
    channel.client = MortalClient(platform, is_dead)  # pyright: ignore[reportAttributeAccessIssue]
    return channel
