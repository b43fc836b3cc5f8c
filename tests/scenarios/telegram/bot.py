"""A host on a fake Telegram, for one test."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from frontdesk import AgentFrameworkHost
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.chat.connection import webhook_url
from frontdesk.interfaces.chat import LiveTerms, PushTerms
from frontdesk_testing import serving
from frontdesk_testing.internals import get_store
from frontdesk_testing.telegram import FakeTelegram, fake_telegram
from frontdesk_testing.telegram.records import Chat, Message, User
from tests.scenarios.stores import new_store

SECRET = "the-secret-of-the-webhook"
HOST = (
    "texts",
    "store",
    "state_dir",
    "linker",
    "identity_linker",
    "identity_resolver",
    "default_allowlist",
    "shutdown_grace_seconds",
    "clock",
    "approvals",
)
QUICK = LiveTerms(interval=0.01)


@dataclass
class TelegramHost:
    """A started host and the fake that it is on."""

    fake: FakeTelegram
    host: AgentFrameworkHost
    channel: TelegramChannel
    base_url: str
    http: Any

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until a condition holds."""
        await self.fake.world.until(condition)

    async def answers(self, chat: Chat, count: int = 1, thread: int | None = None) -> list[str]:
        """Return what the bot has said in a chat, once it has said so many things."""
        await self.until(lambda: len(self.fake.shown(chat, thread=thread).answers) >= count)
        return self.fake.shown(chat, thread=thread).answers

    async def says(self, chat: Chat, *texts: str, thread: int | None = None) -> None:
        """Wait until the messages of the bot in a chat are these."""
        await self.until(lambda: self.fake.shown(chat, thread=thread).answers == list(texts))

    async def ask(self, user: User, text: str, chat: Chat | None = None, **more: Any) -> str:
        """Say something, and return what the bot says next."""
        place = chat or self.fake.private(user)
        before = len(self.fake.shown(place).answers)
        self.fake.say(user, text, chat, **more)
        return (await self.answers(place, before + 1))[before]

    def last(self, chat: Chat) -> Message:
        """Return the last message of the bot in a chat."""
        return [message for message in chat.messages.values() if message.sender is self.fake.bot.user][-1]

    async def wait_for_ends(self, count: int = 1) -> None:
        """Wait until so many parts were sent, and none is on its way."""
        store = get_store(self.host)

        async def done() -> bool:
            counts = await store.outbox.counts()
            left = sum(counts.get(status, 0) for status in ("pending", "sending"))
            return not left and len(await store.outbox.find()) >= count

        from tests.scenarios.desk import until

        await until(done, within=60)


@asynccontextmanager
async def open_bot(
    target: Any, *, fake: FakeTelegram | None = None, transport: Any = "webhook", **settings: Any
) -> AsyncIterator[TelegramHost]:
    """Serve a host with a bot; settings are those of the channel, and some of the host's."""
    of_host = {name: settings.pop(name) for name in HOST if name in settings}
    more = settings.pop("channels", ())
    if not of_host.keys() & {"store", "state_dir"}:
        of_host["store"] = new_store()
    given: dict[str, Any] = {"live": "off", "live_terms": QUICK, "push_terms": PushTerms(), **settings}
    given = {"secret_token": SECRET, **given} if transport == "webhook" else {"poll_seconds": 5.0, **given}
    async with AsyncExitStack() as stack:
        if fake is None or not fake.url:
            fake = await stack.enter_async_context(fake_telegram(fake))
        channel = TelegramChannel(bot_token=fake.token, api_url=fake.url, transport=transport, **given)
        host = AgentFrameworkHost(target, channels=[channel, *more], **of_host)
        client = await stack.enter_async_context(serving(host))
        bot = TelegramHost(fake, host, channel, client.base_url, client.http)
        await bot.until(lambda: fake.list_calls("setMyCommands"))
        if transport == "webhook":
            # Where the host is reached is known only when it is served.
            await channel.register(webhook_url(client.base_url, (channel.path, channel.webhook_path)) or "")
        yield bot
