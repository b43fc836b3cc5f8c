"""A host with an HTTP door and chats on real platforms, for one test."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.interfaces.chat import PushTerms
from frontdesk.interfaces.hooks import ResponseHook, RunHook
from frontdesk.interfaces.runner import RetryPolicy
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import Delivery, DeliveryStatus
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.reply import ResponseTarget
from frontdesk.models.request import ChannelRequest
from frontdesk_testing.messages import MessageChannel, MessagePlatform, Person
from frontdesk_testing.server import HostClient, serving
from tests.scenarios.desk import until
from tests.scenarios.stores import new_store
from tests.testing.messages.starting import fork_platform

QUICK = PushTerms(retry=RetryPolicy(attempts=4, first_delay=0.02, longest_delay=0.1), pause=0.05, timeout=5.0)


def person(identity: ChannelIdentity) -> str:
    """Whoever has the same id on two channels is the same person."""
    return f"person {identity.native_id}"


def sends_to(target: ResponseTarget, **changes: Any) -> RunHook:
    """A hook that says where every answer goes."""

    def hook(request: ChannelRequest, **_: Any) -> ChannelRequest:
        return request.replace(response_target=target, **changes)

    return hook


async def answer(text: str) -> str:
    """The target: it repeats what it hears, in other words."""
    return f"You said: {text}"


@dataclass
class ChatHost:
    """A served host, and the platforms of its chats."""

    host: AgentFrameworkHost
    client: HostClient
    platforms: dict[str, MessagePlatform]
    store: HostStateStore

    async def meet(self, platform: str, name: str, user_id: str) -> Person:
        """Somebody who has spoken to the host on a platform, and was answered."""
        who = await self.platforms[platform].user(name, user_id=user_id)
        await self.platforms[platform].say(who, "hello")
        await self.platforms[platform].wait_for_answers(who.chat_id)
        return who

    async def wait_for_answers(self, platform: str, who: Person, count: int) -> list[str]:
        """What the host has said to somebody, once it is so much."""
        return [one.text for one in await self.platforms[platform].wait_for_answers(who.chat_id, count)]

    async def wait_for_ends(self, platform: str, *statuses: DeliveryStatus) -> list[Delivery]:
        """Deliveries to a platform, once all of them have come to an end."""

        async def all_ended() -> bool:
            found = await self.host.deliveries.list(channel=platform)
            return bool(found) and all(one.ended_at is not None for one in found)

        await until(all_ended)
        found = await self.host.deliveries.list(channel=platform)
        return [one for one in found if not statuses or one.status in statuses]


@asynccontextmanager
async def open_house(
    tmp_path: Path,
    *,
    chats: Sequence[str] = ("chat",),
    hook: RunHook | None = None,
    chat_hooks: dict[str, RunHook] | None = None,
    response_hooks: dict[str, ResponseHook] | None = None,
    target: Any = answer,
    store: HostStateStore | None = None,
    terms: PushTerms = QUICK,
    options: Sequence[str] = (),
    **channel: Any,
) -> AsyncGenerator[ChatHost]:
    """Starts a platform for each chat, and the host."""
    async with AsyncExitStack() as stack:
        platforms = {
            name: await stack.enter_async_context(fork_platform(tmp_path / f"{name}.log", *options)) for name in chats
        }
        doors: list[Any] = [InvocationsChannel(run_hook=hook), ResponsesChannel(run_hook=hook)]
        for name, platform in platforms.items():
            chat = MessageChannel(
                name=name,
                path=f"/{name}",
                platform_url=platform.url,
                token=platform.token,
                intake="polling",
                poll_seconds=1.0,
                call_timeout=2.0,
                run_hook=(chat_hooks or {}).get(name),
                response_hook=(response_hooks or {}).get(name),
                **channel,
            )
            chat.push_terms = terms
            doors.append(chat)
        kept = store or new_store()
        host = AgentFrameworkHost(target, channels=doors, store=kept, identity_resolver=person)
        client = await stack.enter_async_context(serving(host))
        yield ChatHost(host, client, platforms, kept)
