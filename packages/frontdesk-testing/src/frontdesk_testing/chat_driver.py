"""The description of a chat channel for its contract, and a host on its platform."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from frontdesk.chat.channel import ChatChannel
from frontdesk.host.host import AgentFrameworkHost
from frontdesk.interfaces.chat import LiveTerms, PushTerms
from frontdesk.interfaces.runner import RetryPolicy
from frontdesk.models.delivery import Delivery
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing.agents import EchoAgent
from frontdesk_testing.chat_platform import ChatPerson, FakePlatform, ShownMessage
from frontdesk_testing.server import HostClient, serving

TIMEOUT_SECONDS = 60.0
_QUICK = PushTerms(retry=RetryPolicy(attempts=8, first_delay=0.01), pause=0.01)
_SOON = LiveTerms(interval=0.01)


class Chat:
    """A served host and its platform."""

    def __init__(
        self, platform: FakePlatform, channel: ChatChannel, client: HostClient, store: InMemoryStateStore
    ) -> None:
        self.platform = platform
        self.channel = channel
        self.client = client
        self.store = store

    @property
    def webhook(self) -> str:
        """Return where events are sent."""
        return f"{self.client.base_url}{self.channel.path}{self.channel.webhook_path}"

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition holds on the platform, or fail after a timeout."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await self.platform.until(condition)

    async def messages(self, chat_id: str, count: int) -> Sequence[ShownMessage]:
        """Wait for a number of the bot's messages in a chat, and return them."""
        shown: list[ShownMessage] = []

        async def enough() -> bool:
            shown[:] = await self.platform.shown(chat_id)
            return len(shown) >= count

        await self.until(enough)
        return shown

    async def texts(self, chat_id: str, count: int) -> list[str]:
        """Return the texts of these messages."""
        return [message.text for message in await self.messages(chat_id, count)]

    async def until_said(self, chat_id: str, part: str) -> Sequence[ShownMessage]:
        """Wait until one of the bot's messages in a chat contains a text. Return all messages."""
        shown: list[ShownMessage] = []

        async def said() -> bool:
            shown[:] = await self.platform.shown(chat_id)
            return any(part in message.text for message in shown)

        await self.until(said)
        return shown

    async def until_shown(self, chat_id: str, *texts: str) -> Sequence[ShownMessage]:
        """Wait until the bot's messages in a chat have these texts, ignoring surrounding whitespace."""
        shown: list[ShownMessage] = []

        async def same() -> bool:
            shown[:] = await self.platform.shown(chat_id)
            return [message.text.strip() for message in shown] == list(texts)

        await self.until(same)
        return shown

    async def notice(self, event_id: str) -> str:
        """Wait for the notice shown to the person who pressed a button, and return it."""

        async def there() -> bool:
            return bool(await self.platform.notice(event_id))

        await self.until(there)
        return await self.platform.notice(event_id)

    async def say_last_and_list(self, who: ChatPerson) -> list[str]:
        """Send another message. Return all texts of the direct chat after it was answered."""
        await self.platform.say(who, "the last word")

        async def answered() -> bool:
            shown = await self.platform.shown(who.chat_id)
            return any(message.text.strip() == "the last word" for message in shown)

        await self.until(answered)
        return [message.text.strip() for message in await self.platform.shown(who.chat_id)]

    async def sessions(self) -> set[str | None]:
        """Return the sessions of all answers."""
        runs = [await self.store.runs.get(row.owner, row.run_id) for row in await self.store.outbox.find()]
        return {run.session_id for run in runs if run is not None}

    async def run_statuses(self) -> list[str]:
        """Return the statuses of the runs that were answered here, the oldest first."""
        names = {(row.owner, row.run_id) for row in await self.store.outbox.find()}
        runs = [run for name in names if (run := await self.store.runs.get(*name)) is not None]
        return [run.status for run in sorted(runs, key=lambda run: run.created_at)]

    async def deliveries(self, status: str) -> list[Delivery]:
        """Return the deliveries of a status."""
        return [delivery for delivery in await self.store.outbox.find() if delivery.status == status]


class ChatDriver:
    """The platform-specific part of the contract. A subclass defines it."""

    has_groups: bool = True
    """Whether people of the platform talk in groups."""
    has_threads: bool = True
    """Whether groups of the platform have threads."""
    has_buttons: bool = True
    """Whether messages have buttons; if not, approvals are answered with words."""
    has_notices: bool = True
    """Whether the platform shows something to the person who pressed a button; if not, their direct chat does."""
    shows_live: bool = True
    """Whether answers are shown while they are written."""
    has_feedback: bool = False
    """Whether people rate answers on the platform; it is a `RatingPlatform` then."""
    opens_chats: bool = False
    """Whether the platform says when a direct chat opens, with a reference to it; it is an `OpeningPlatform` then."""
    has_stop_button: bool = False
    """Whether the platform refuses further updates of an answer that a person has stopped; it is a `StoppingPlatform`
    then."""
    has_albums: bool = True
    """Whether the platform sends albums."""
    tells_membership: bool = False
    """Whether the platform says that the bot comes or goes; it is a `MembershipPlatform` then."""
    signs_bodies: bool = True
    """Whether the platform signs each body; otherwise it only shows a secret."""
    signs_times: bool = True
    """Whether what was signed long ago is refused."""
    unreadable_status: int = 400
    """The status with which a body is answered that can't be understood; such as 200 where it would come again."""
    has_handshake: bool = False
    """Whether the platform asks the webhook with a GET request."""
    splits_texts: bool = True
    """Whether a long text is several messages."""
    refused_statuses: Collection[int] = (401,)
    """The statuses with which a body is refused that the platform has not signed."""
    takes_files: bool = True
    sends_files: bool = True
    invoke_name: str = ""
    """The name of an operation that the channel answers in the HTTP response; the platform is an `InvokingPlatform`
    then."""

    def platform(self) -> AbstractAsyncContextManager[FakePlatform]:
        """Start a platform."""
        raise NotImplementedError("implement `platform` of the driver")

    def channel(self, platform: FakePlatform, **settings: Any) -> ChatChannel:
        """Make a channel on a platform, with settings of `ChatConfig`."""
        raise NotImplementedError("implement `channel` of the driver")

    def list_verified_claims(self, who: ChatPerson) -> Mapping[str, str]:
        """Return the claims that the channel proves about a person, if any."""
        return {}

    def require_live(self) -> None:
        """Skip a test where the platform shows no live messages."""
        if not self.shows_live:
            pytest.skip("the platform shows no answer while it is written")

    def require_groups(self) -> None:
        """Skip a test where the platform has no groups."""
        if not self.has_groups:
            pytest.skip("the platform has no groups")

    @asynccontextmanager
    async def chat(
        self,
        target: Any = None,
        *,
        platform: FakePlatform | None = None,
        store: InMemoryStateStore | None = None,
        host: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> AsyncGenerator[Chat]:
        """Serve a host with the channel alone. `host` has settings of the host, the others are the channel's."""
        store = store or InMemoryStateStore()
        async with AsyncExitStack() as stack:
            if platform is None:
                platform = await stack.enter_async_context(self.platform())
            channel = self.channel(platform, **{"live": "off", "live_terms": _SOON, **settings})
            channel.push_terms = _QUICK
            more: Any = host or {}
            served = AgentFrameworkHost(target or EchoAgent(), channels=[channel], store=store, **more)
            client = await stack.enter_async_context(serving(served))
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await channel.connected.wait()
            chat = Chat(platform, channel, client, store)
            await platform.listen(chat.webhook)
            yield chat
