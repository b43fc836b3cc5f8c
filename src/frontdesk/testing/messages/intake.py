"""Registers the bot with the platform, and fetches its events where they are not sent."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

from frontdesk.kit.chat.polling import Poller, persist
from frontdesk.testing.messages.client import PlatformClient
from frontdesk.testing.messages.config import MessageConfig
from frontdesk.testing.messages.wire import Commands, Me


class Intake:
    """One task, which goes on while the platform is away."""

    def __init__(
        self, channel: str, client: PlatformClient, config: MessageConfig, take: Callable[[bytes], Awaitable[None]]
    ) -> None:
        self._channel = channel
        self._client = client
        self._config = config
        # The platform remembers what was confirmed, so a new process begins with all that was not.
        self._poller = Poller(channel, self._fetch, take)
        self._task: asyncio.Task[None] | None = None
        self.me: Me | None = None
        """The bot's own account, once the platform has named it."""

    def start(self, menus: Sequence[Commands], webhook: str | None) -> None:
        """Start; a host starts whether or not its platforms are there."""
        self._task = asyncio.get_running_loop().create_task(self._work(menus, webhook))

    async def stop(self) -> None:
        """Stop; events that were fetched and not stored will be fetched again."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _work(self, menus: Sequence[Commands], webhook: str | None) -> None:
        name, secret = self._channel, self._config.secret
        self.me = await persist(f"asking who {name} is", self._client.me)
        if self._config.register_native_commands:
            for menu in menus:
                await persist(f"the menu of {name}", partial(self._client.publish, menu))
        if webhook is not None and secret is not None:
            await persist(f"the webhook of {name}", lambda: self._client.use_webhook(webhook, secret.reveal()))
        if self._config.intake == "polling":
            await self._poller.run()

    async def _fetch(self, offset: int) -> list[tuple[int, bytes]]:
        return await self._client.events(offset, self._config.poll_seconds)
