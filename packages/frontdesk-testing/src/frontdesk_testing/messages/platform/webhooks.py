"""Sends events to the webhook: signed, repeated until acknowledged, in order per chat."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from frontdesk_testing.messages.connections import Connections, NoAnswerError, UnreachableError
from frontdesk_testing.messages.platform.bot import Bot
from frontdesk_testing.messages.platform.records import EventState, RefusedError
from frontdesk_testing.messages.platform.world import World
from frontdesk_testing.messages.verify import SIGNATURE, TIMESTAMP, signature
from frontdesk_testing.messages.wire import AnswerClick, Challenge, Edit, Event, Replied, Send, Shown, Webhook

_MAX_ATTEMPTS = 50
_POLL_INTERVAL_SECONDS = 0.1
_TIMEOUT_SECONDS = 30.0


class Webhooks:
    """Sends events to one webhook."""

    def __init__(self, world: World, bot: Bot) -> None:
        self._world = world
        self._bot = bot
        self._connections = Connections("", {})
        self._webhook = Webhook(url="")
        self._tasks: set[asyncio.Task[None]] = set()
        self._queues: dict[str, list[Event]] = {}
        self.verified = False

    def use(self, webhook: Webhook) -> None:
        """Set the webhook, and verify it with a challenge."""
        self._webhook = webhook
        self._connections.close()
        self._connections = Connections(webhook.url, {})
        self.verified = False
        if webhook.url:
            self._spawn(self._challenge(webhook))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _challenge(self, webhook: Webhook) -> None:
        for _ in range(_MAX_ATTEMPTS):
            word = self._world.new_id("word")
            status, answer = await self._post(webhook, {"challenge": word})
            if self._webhook is not webhook:
                return
            if status == 200 and _word(answer) == word:
                self.verified = True
                self._world.change()
                for state in list(self._world.open.values()):
                    self.deliver(state.event)
                return
            await asyncio.sleep(_POLL_INTERVAL_SECONDS)

    async def _post(self, webhook: Webhook, body: object) -> tuple[int, bytes]:
        content = msgspec.json.encode(body)
        timestamp = str(int(self._world.now()))
        headers = {
            TIMESTAMP.decode(): timestamp,
            SIGNATURE.decode(): signature(webhook.secret, timestamp, content),
        }
        try:
            return await self._connections.request("POST", "", content, headers=headers, seconds=_TIMEOUT_SECONDS)
        except (UnreachableError, NoAnswerError):
            return 0, b""

    def deliver(self, event: Event) -> None:
        """Send an event after the earlier ones of its chat."""
        if not self.verified or self._world.settings.hold:
            return
        queue = self._queues.get(event.chat.chat_id)
        if queue is not None:
            queue.append(event)
            return
        self._queues[event.chat.chat_id] = [event]
        self._spawn(self._drain(event.chat.chat_id))

    async def _drain(self, chat_id: str) -> None:
        queue = self._queues[chat_id]
        while queue:
            event = queue.pop(0)
            state = self._world.events[event.event_id]
            # One that waited here twice is not sent again once it was acknowledged.
            if state.state == "pending" and not await self.attempt(state):
                self._spawn(self._again(event))
        del self._queues[chat_id]

    async def _again(self, event: Event) -> None:
        await asyncio.sleep(self._world.settings.retry_seconds)
        if self._world.events[event.event_id].state == "pending":
            self.deliver(event)

    async def attempt(self, state: EventState) -> bool:
        """Send an event once, whether or not it was acknowledged. Return True if it was acknowledged this time."""
        state.attempts += 1
        status, answer = await self._post(self._webhook, state.event)
        messages = _messages(answer) if state.event.expects_reply and status == 200 else ()
        shown = _decode_shown(answer) if state.event.click is not None and status == 200 else Shown()
        if (messages or shown != Shown()) and self._world.settings.lose_replies > 0:
            self._world.settings.lose_replies -= 1
            status, messages, shown = 0, (), Shown()
        await self._show(state.event, shown)
        for message in messages:
            # One that is refused is dropped, as nobody is there to be told.
            with suppress(RefusedError):
                await self._bot.send(message)
        state.answers = [*state.answers, status]
        good = 200 <= status < 300
        if good:
            self._world.acknowledge(state)
        self._world.change()
        return good

    async def _show(self, event: Event, shown: Shown) -> None:
        """Show the contents of the response to a click."""
        click = event.click
        if click is None or not click.expects_card:
            return
        # As with messages, one that is refused is dropped.
        with suppress(RefusedError):
            if shown.notice:
                await self._bot.answer(AnswerClick(callback_id=click.callback_id, text=shown.notice))
            if shown.card:
                await self._bot.edit(Edit(chat_id=event.chat.chat_id, message_id=click.message_id, text=shown.card))

    async def release(self, event_ids: Sequence[str]) -> None:
        """Send the events that were held, in the given order."""
        self._world.settings.hold = False
        for event_id in event_ids:
            state = self._world.events[event_id]
            if not await self.attempt(state):
                self._spawn(self._again(state.event))

    async def close(self) -> None:
        """End all deliveries."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._connections.close()


def _messages(answer: bytes) -> tuple[Send, ...]:
    try:
        return msgspec.json.decode(answer, type=Replied).messages
    except msgspec.DecodeError:
        return ()


def _decode_shown(answer: bytes) -> Shown:
    try:
        return msgspec.json.decode(answer, type=Shown)
    except msgspec.DecodeError:
        return Shown()


def _word(answer: bytes) -> str:
    try:
        return msgspec.json.decode(answer, type=Challenge).challenge
    except msgspec.DecodeError:
        return ""
