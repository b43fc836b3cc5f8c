"""Registers bots with their platform, and receives events by polling or a connection instead of a webhook."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from frontdesk.chat.abilities import PollsEvents, PublishesMenus, RegistersWebhooks, UsesGateway
from frontdesk.chat.commands import menus
from frontdesk.chat.config import Transport
from frontdesk.chat.messages import BotIdentity
from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.errors import (
    CodecError,
    FrontdeskError,
    InvalidRequestError,
    LeadershipLostError,
    PushError,
    RequestError,
    UnavailableError,
)
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.loggers import http as http_log
from frontdesk.loggers import runs as log

T = TypeVar("T")
Fetch = Callable[[int], Awaitable[Sequence[tuple[int, bytes]]]]
Take = Callable[[bytes], Awaitable[None]]

INITIAL_DELAY_SECONDS = 0.05
MAX_DELAY_SECONDS = 30.0
"""The seconds between two tries."""
_MAX_ATTEMPTS = 10
"""The number of tries of an event that fails with an error that nobody foresaw."""


async def persist(what: str, call: Callable[[], Awaitable[T]]) -> T:
    """Call a function until it succeeds, with increasing pauses. Failures are logged."""
    pause = INITIAL_DELAY_SECONDS
    while True:
        try:
            return await call()
        except FrontdeskError as error:
            asked = error.retry_after if isinstance(error, (PushError, RequestError)) else None
            wait = pause if asked is None else asked
            log.warning("operation failed, retrying: operation=%s delay_seconds=%.2f: %s", what, wait, error)
        except Exception as error:  # No code awaits the task of this, and it would never go on.
            wait = pause
            log.error("operation failed, retrying: operation=%s delay_seconds=%.2f", what, wait, exc_info=error)
        await asyncio.sleep(wait)
        pause = min(pause * 2, MAX_DELAY_SECONDS)


class EarlyReceiptError(UnavailableError):
    """The message of a receipt is not stored yet. The platform has to send the receipt again."""

    code = "receipt_too_early"


class Poller:
    """Polls events from an offset on, and stores them before it fetches more.

    `fetch` receives the first wanted event number, and returns events with their numbers. `take` stores one event. An
    unreadable event is logged and skipped, because it would block the others forever. So is an event that failed a few
    times with an unexpected error.
    """

    def __init__(self, channel: str, fetch: Fetch, take: Take, *, offset: int = 0) -> None:
        self._channel = channel
        self._fetch = fetch
        self._take = take
        self.offset = offset
        self._tried, self._tries = -1, 0

    async def run(self) -> None:
        while True:
            await persist(f"polling for {self._channel}", self.poll)

    async def poll(self) -> None:
        """Fetch and store events once. The offset never passes an unstored event."""
        early: EarlyReceiptError | None = None
        for number, event in await self._fetch(self.offset):
            try:
                await self._take(event)
            except EarlyReceiptError as error:
                # It is fetched again, and those behind it are stored meanwhile.
                early = early or error
            except (InvalidRequestError, CodecError) as error:
                log.error("event skipped: event_id=%s channel=%s: %s", number, self._channel, error)
            except FrontdeskError:
                raise
            except Exception as error:
                if self._count_try(number) < _MAX_ATTEMPTS:
                    raise
                log.error("event skipped: event_id=%s channel=%s", number, self._channel, exc_info=error)
            if early is None:
                self.offset = max(self.offset, number + 1)
        if early is not None:
            raise early

    def _count_try(self, number: int) -> int:
        """Increment and return the number of attempts at an event."""
        self._tries = self._tries + 1 if number == self._tried else 1
        self._tried = number
        return self._tries


Listen = Callable[[Take], Awaitable[None]]

_STEADY_SECONDS = 60.0
"""After how long a connection counts as good, so that the pause after it is the first one again."""


class Listener:
    """Keeps a connection open and reopens it when it ends.

    `listen` opens a connection and passes on its events until it ends. `take` stores an event. An unreadable event is
    logged and skipped, because it would be repeated forever. Any other failure ends the connection, so that the
    platform sends unacknowledged events again.
    """

    def __init__(self, channel: str, listen: Listen, take: Take) -> None:
        self._channel = channel
        self._listen = listen
        self._take = take

    async def run(self) -> None:
        """Listen until cancelled. The pause doubles with each short-lived connection."""
        loop, pause = asyncio.get_running_loop(), INITIAL_DELAY_SECONDS
        while True:
            began, asked = loop.time(), 0.0
            try:
                await self._listen(self._pass_on)
                log.info("connection closed, reconnecting: channel=%s", self._channel)
            except FrontdeskError as error:
                if isinstance(error, (PushError, RequestError)):
                    asked = error.retry_after or 0.0
                log.warning("reconnecting: channel=%s: %s", self._channel, error)
            if loop.time() - began >= _STEADY_SECONDS:
                pause = INITIAL_DELAY_SECONDS
            await asyncio.sleep(max(pause, asked))
            pause = min(pause * 2, MAX_DELAY_SECONDS)

    async def _pass_on(self, event: bytes) -> None:
        try:
            await self._take(event)
        except (InvalidRequestError, CodecError) as error:
            log.error("event skipped: channel=%s: %s", self._channel, error)


_POLLER, _CONNECTION = "poller", "connection"


class Intake:
    """Runs event delivery in one task, which continues while the platform is unavailable."""

    def __init__(
        self, context: ChannelContext, connect: Callable[[], Awaitable[BotIdentity]], platform: object, take: Take
    ) -> None:
        self._context = context
        self._connect = connect
        self._platform = platform
        self._take = take
        self._task: asyncio.Task[None] | None = None
        self.bot: BotIdentity | None = None
        """The bot's own account, once the platform has named it."""

    def require_bot(self) -> BotIdentity:
        """Return the bot's own account. Events cannot be parsed before it is known."""
        if self.bot is None:
            raise UnavailableError("The platform has not sent the bot's identity yet.", retry_after=1)
        return self.bot

    def start(self, *, publish: bool, webhook: str | None, transport: Transport, one_poller: bool) -> None:
        """Start. A host starts even if its platforms are unavailable."""
        self._task = spawn_clean(self._work(publish, webhook, transport, one_poller))

    async def stop(self) -> None:
        """Stop. Fetched events that are not stored will be fetched again."""
        await cancel_and_wait(self._task)

    async def _work(self, publish: bool, webhook: str | None, transport: Transport, one_poller: bool) -> None:
        name, platform = self._context.channel, self._platform
        self.bot = await persist(f"asking who {name} is", self._connect)
        if publish and isinstance(platform, PublishesMenus):
            for menu in menus(self._context.commands()):
                await persist(f"the menu of {name}", partial(platform.publish, menu))
        if webhook is not None and isinstance(platform, RegistersWebhooks):
            await persist(f"the webhook of {name}", partial(platform.register, webhook))
        if transport == "polling" and isinstance(platform, PollsEvents):
            poll = partial(self._poll, platform.poll)
            await (self._lead(_POLLER, poll) if one_poller else poll())
        if transport == "connection" and isinstance(platform, UsesGateway):
            await self._lead(_CONNECTION, Listener(name, platform.listen, self._take).run)

    async def _lead(self, what: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run a function while this process is the leader."""
        while True:
            await persist(f"leading the {what} of {self._context.channel}", partial(self._lead_once, what, run))

    async def _lead_once(self, what: str, run: Callable[[], Awaitable[None]]) -> None:
        with suppress(LeadershipLostError):
            async with self._context.storage.leadership(what):
                await run()

    async def _poll(self, fetch: Fetch) -> None:
        # The platform remembers what was confirmed, so a new process begins with all that was not.
        await Poller(self._context.channel, fetch, self._take).run()


def webhook_url(public_url: str | None, paths: Sequence[str]) -> str | None:
    """Return the webhook URL, or None if the public URL of the host is unknown."""
    return None if public_url is None else public_url.rstrip("/") + "".join(paths).rstrip("/")


def pass_over(channel: str, error: Exception) -> None:
    """Log a skipped event and the reason, on a platform that would repeat it."""
    http_log.error("event skipped: channel=%s: %s", channel, error)


def warn(channel: str, text: str) -> None:
    """Log bot settings of the platform that do not match the settings of the channel."""
    http_log.warning("%s: %s", channel, text)
