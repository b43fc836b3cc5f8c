"""Sends updates to the webhooks of bots: in order per chat, repeated until acknowledged."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from frontdesk_testing.messages.connections import Connections, NoAnswerError, UnreachableError
from frontdesk_testing.telegram.bots import Bot, Webhook
from frontdesk_testing.telegram.clock import MovableClock
from frontdesk_testing.telegram.records import Json
from frontdesk_testing.telegram.updates import Pending

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the name of a header
MAX_DELAY_SECONDS = 60.0
GONE_SECONDS = 23 * 3600.0
"""The time after which a webhook that answers 410 is removed."""
MAX_CONNECTIONS = 100
_TIMEOUT_SECONDS = 60.0


def pause_before(retry: int) -> float:
    """Return the seconds before a retry: none before the first, then two, four, and so on up to a minute."""
    return 0.0 if retry <= 1 else min(2.0 ** min(retry - 1, 10), MAX_DELAY_SECONDS)


class _Answer(NamedTuple):
    status: int
    body: bytes = b""
    retry_after: float = 0.0
    problem: str = ""
    """Why there is no answer."""

    @property
    def accepted(self) -> bool:
        return 200 <= self.status < 300


class Webhooks:
    """Sends the pending updates of bots with a webhook."""

    def __init__(self, clock: MovableClock, changed: Callable[[], None]) -> None:
        self._clock = clock
        self._changed = changed
        self._connections: dict[str, Connections] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._lanes: dict[tuple[str, str], asyncio.Task[None]] = {}
        self.on_reply: Callable[[Bot, Json], Awaitable[Any]] | None = None
        """Acts on a method that a webhook has answered with."""

    def use(self, bot: Bot, webhook: Webhook) -> None:
        """Send the updates of a bot to a webhook from now on, or to none if it has no URL."""
        self._end(bot)
        bot.webhook = webhook
        if webhook.url:
            bot.updates.end_poll()
            self._watches[bot.token] = asyncio.create_task(self._watch(bot, webhook))
        self._changed()

    def _end(self, bot: Bot) -> None:
        if watch := self._watches.pop(bot.token, None):
            watch.cancel()
        for key in [key for key in self._lanes if key[0] == bot.token]:
            self._lanes.pop(key).cancel()

    async def close(self) -> None:
        """End all deliveries."""
        tasks = [*self._watches.values(), *self._lanes.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connections in self._connections.values():
            connections.close()

    async def _watch(self, bot: Bot, webhook: Webhook) -> None:
        places = asyncio.Semaphore(webhook.max_connections)
        lanes = bot.updates.fresh_lanes(every=True)
        while True:
            arrived = bot.updates.arrived
            for lane in sorted(lanes):
                if (bot.token, lane) not in self._lanes:
                    self._lanes[bot.token, lane] = asyncio.create_task(self._drain(bot, webhook, lane, places))
            await arrived.wait()
            lanes = bot.updates.fresh_lanes()

    async def _drain(self, bot: Bot, webhook: Webhook, lane: str, places: asyncio.Semaphore) -> None:
        failures = 0
        while (update := bot.updates.first(lane)) is not None:
            async with places:
                answer = await self._post(webhook, update)
            pause = self._find_pause(bot, webhook, answer)
            if pause is None:
                failures = 0
                bot.updates.remove(update)
                self._changed()
                await self._reply(bot, answer)
                continue
            failures += 1
            self._changed()
            await self._clock.sleep(pause or pause_before(failures))
        # Nothing is awaited between the last look and this, so that no update is left without a task.
        self._lanes.pop((bot.token, lane), None)

    async def _post(self, webhook: Webhook, update: Pending) -> _Answer:
        """Send an update once."""
        parts = urlsplit(webhook.url)
        origin, path = (
            f"{parts.scheme}://{parts.netloc}",
            (parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        )
        if origin not in self._connections:
            self._connections[origin] = Connections(origin, {}, most=MAX_CONNECTIONS)
        headers = {SECRET_HEADER: webhook.secret_token} if webhook.secret_token else {}
        content = msgspec.json.encode(update.as_json())
        try:
            status, body, shown = await self._connections[origin].exchange(
                "POST", path, content, seconds=_TIMEOUT_SECONDS, headers=headers
            )
        except UnreachableError:
            return _Answer(0, problem="Connection refused")
        except NoAnswerError:
            return _Answer(0, problem="Connection closed or timed out")
        wait = shown.get(b"retry-after", b"")
        return _Answer(status, body, float(wait) if wait.isdigit() else 0.0)

    def _find_pause(self, bot: Bot, webhook: Webhook, answer: _Answer) -> float | None:
        """Return the minimum pause after a rejected update, or None after an acknowledgement."""
        if answer.accepted:
            webhook.gone_since = None
            return None
        webhook.failures += 1
        webhook.last_error_date = int(self._clock.now())
        webhook.last_error_message = answer.problem or f"Wrong response from the webhook: {_phrase(answer.status)}"
        if answer.status != HTTPStatus.GONE:
            webhook.gone_since = None
        elif webhook.gone_since is None:
            webhook.gone_since = self._clock.now()
        elif self._clock.now() - webhook.gone_since >= GONE_SECONDS:
            self.use(bot, Webhook())
        return answer.retry_after

    async def _reply(self, bot: Bot, answer: _Answer) -> None:
        """Act on a method in the body of an answer. Its result is dropped."""
        if not answer.body or self.on_reply is None:
            return
        with suppress(msgspec.MsgspecError):
            body = msgspec.json.decode(answer.body, type=dict[str, Any])
            if "method" in body:
                await self.on_reply(bot, body)


def _phrase(status: int) -> str:
    with suppress(ValueError):
        return f"{status} {HTTPStatus(status).phrase}"
    return str(status)
