"""Makes a bot known to its platform, and fetches its events where they are not sent."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

from frontdesk.abc.channel import ChannelContext
from frontdesk.errors import LeadershipLostError, UnavailableError
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.kit.chat.abilities import PollsEvents, PublishesMenus, RegistersWebhooks
from frontdesk.kit.chat.commands import menus
from frontdesk.kit.chat.messages import BotIdentity
from frontdesk.kit.chat.polling import Fetch, Poller, Take, persist

_POLLER = "poller"


class Intake:
    """One task, which goes on while the platform is away."""

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

    def known(self) -> BotIdentity:
        """Return the bot's own account; before the platform has named it, events can't be understood."""
        if self.bot is None:
            raise UnavailableError("The platform has not said yet who we are.", retry_after=1)
        return self.bot

    def start(self, *, publish: bool, webhook: str | None, poll: bool, one_poller: bool) -> None:
        """Start; a host starts whether or not its platforms are there."""
        self._task = spawn_clean(self._work(publish, webhook, poll, one_poller))

    async def stop(self) -> None:
        """Stop; events that were fetched and not stored will be fetched again."""
        await stopped(self._task)

    async def _work(self, publish: bool, webhook: str | None, poll: bool, one_poller: bool) -> None:
        name, platform = self._context.channel, self._platform
        self.bot = await persist(f"asking who {name} is", self._connect)
        if publish and isinstance(platform, PublishesMenus):
            for menu in menus(self._context.commands()):
                await persist(f"the menu of {name}", partial(platform.publish, menu))
        if webhook is not None and isinstance(platform, RegistersWebhooks):
            await persist(f"the webhook of {name}", partial(platform.register, webhook))
        if poll and isinstance(platform, PollsEvents):
            await (self._lead(platform.poll) if one_poller else self._poll(platform.poll))

    async def _lead(self, fetch: Fetch) -> None:
        """Poll while this process is the only one that does."""
        while True:
            await persist(f"leading the polls for {self._context.channel}", partial(self._lead_once, fetch))

    async def _lead_once(self, fetch: Fetch) -> None:
        with suppress(LeadershipLostError):
            async with self._context.leadership(_POLLER):
                await self._poll(fetch)

    async def _poll(self, fetch: Fetch) -> None:
        # The platform remembers what was confirmed, so a new process begins with all that was not.
        await Poller(self._context.channel, fetch, self._take).run()


def webhook_url(public_url: str | None, paths: Sequence[str]) -> str | None:
    """Return the address of a webhook; `None` if it is not known where the host is reached."""
    return None if public_url is None else public_url.rstrip("/") + "".join(paths)
