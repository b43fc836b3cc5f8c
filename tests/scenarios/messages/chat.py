"""A host on the fake platform, which runs in a process of its own, for one test."""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from frontdesk import AgentFrameworkHost, ApprovalOptions
from frontdesk_testing import serving
from frontdesk_testing.messages import MessageChannel, MessagePlatform
from frontdesk_testing.messages.platform.records import Said
from frontdesk_testing.messages.verify import signature
from tests.scenarios.stores import new_store
from tests.testing.messages.starting import new_platform

SECRET = "the secret of the webhook"
HOST = (
    "texts",
    "approvals",
    "telemetry",
    "identity_resolver",
    "store",
    "state_dir",
    "linker",
    "default_allowlist",
    "shutdown_grace_seconds",
    "on_shutdown",
    "seal_key",
    "clock",
    "admin_socket",
)
IN_GROUPS = ApprovalOptions(show_arguments_in_groups=True)
"""Questions are asked in the group, with all arguments."""


@dataclass
class MessagesHost:
    """A started host and the platform that it is on."""

    platform: MessagePlatform
    host: AgentFrameworkHost
    channel: MessageChannel
    base_url: str

    async def wait_until_known(self) -> None:
        """Waits until the host has made itself known; before that it can't say which mentions are its own."""

        async def published() -> bool:
            return bool((await self.platform.state()).commands)

        await self.platform.until(published)

    async def wait_for_answers(self, chat_id: str, count: int = 1) -> list[str]:
        """What the bot says in a chat, once it has said so many things."""
        return [one.text for one in await self.platform.wait_for_answers(chat_id, count)]

    async def last(self, chat_id: str, count: int) -> Said:
        """The last of so many messages."""
        return (await self.platform.wait_for_answers(chat_id, count))[-1]


@asynccontextmanager
async def open_chat(
    target: Any, *, platform: MessagePlatform | None = None, intake: Any = "webhook", **settings: Any
) -> AsyncIterator[MessagesHost]:
    """A host on a platform; settings are those of the channel, and some of the host's."""
    of_host = {name: settings.pop(name) for name in HOST if name in settings}
    more = settings.pop("channels", ())
    if not of_host.keys() & {"store", "state_dir"}:
        of_host["store"] = new_store()
    async with AsyncExitStack() as stack:
        if platform is None:
            platform = await stack.enter_async_context(new_platform())
        channel = MessageChannel(
            platform_url=platform.url, token=platform.token, secret=SECRET, intake=intake, **settings
        )
        host = AgentFrameworkHost(target, channels=[channel, *more], **of_host)
        client = await stack.enter_async_context(serving(host))
        chat = MessagesHost(platform, host, channel, client.base_url)
        await chat.wait_until_known()
        if intake == "webhook":
            await connect(chat)
        yield chat


async def connect(chat: MessagesHost) -> None:
    """Tells the platform where the host is, which is known only when it is served."""
    await chat.channel.client.use_webhook(f"{chat.base_url}{chat.channel.path}/events", SECRET)
    await chat.platform.wait_for_webhook()


async def post(
    chat: MessagesHost, event: Any, *, secret: str = SECRET, at: float | None = None, **headers: Any
) -> httpx.Response:
    """Sends an event to the webhook as the platform does, or as somebody else would."""
    body = event if isinstance(event, bytes) else msgspec.json.encode(event)
    timestamp = str(int(time.time() if at is None else at))
    signed = {"x-message-timestamp": timestamp, "x-message-signature": signature(secret, timestamp, body), **headers}
    kept = {"content-type": "application/json", **{name: value for name, value in signed.items() if value}}
    return await chat.platform.http.post(f"{chat.base_url}{chat.channel.path}/events", content=body, headers=kept)
