"""A host with a message channel on a real platform, for tests of what comes in."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from frontdesk import AgentFrameworkHost
from frontdesk.interfaces.store import HostStateStore
from frontdesk_testing import serving
from frontdesk_testing.messages import MessageChannel, MessagePlatform, Person

SECRET = "a secret of sixteen characters or more"


def channel_of(platform: MessagePlatform, **settings: Any) -> MessageChannel:
    """A channel on the platform."""
    return MessageChannel(platform_url=platform.url, token=platform.token, secret=SECRET, **settings)


@asynccontextmanager
async def run_host(
    target: Any,
    platform: MessagePlatform,
    *,
    polling: bool = False,
    settings: Mapping[str, Any] | None = None,
    **more: Any,
) -> AsyncGenerator[AgentFrameworkHost]:
    """A host that hears the platform, for a while."""
    channel = channel_of(platform, intake="polling" if polling else "webhook", poll_seconds=1.0, **(settings or {}))
    host = AgentFrameworkHost(target, channels=[channel], shutdown_grace_seconds=0.2, **more)
    async with serving(host) as client:
        await listen(platform, client.base_url, "polling" if polling else "webhook")
        yield host


async def listen(platform: MessagePlatform, base_url: str, intake: str) -> None:
    """Tells the platform where events go, if they do not have to be fetched."""
    if intake == "webhook":
        client = channel_of(platform).client
        await client.use_webhook(f"{base_url.rstrip('/')}/messages/events", SECRET)
        client.close()
        await platform.wait_for_webhook()


def texts(said: Sequence[Any]) -> list[str]:
    """What was said."""
    return [one.text for one in said]


async def wait_for_answers(platform: MessagePlatform, who: Person, count: int) -> list[str]:
    """The answers that somebody got, once there are so many."""
    return texts(await platform.wait_for_answers(who.chat_id, count))


async def count_waiting(store: HostStateStore) -> int:
    """How many events wait."""
    return len(await store.inbox.waiting("nobody"))
