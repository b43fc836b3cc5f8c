"""A chat whose platform reaches nobody without a reference, and a host with such chats."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from frontdesk import AgentFrameworkHost, Channel, ChannelContribution, ChannelIdentity
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.interfaces.chat import PushesParts, PushPart
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller
from frontdesk.models.request import ChannelRequest, ConversationScope
from frontdesk.models.result import HostedRunResult
from tests.scenarios.stores import new_store


async def echo(text: str) -> str:
    return f"You said: {text}"


class ParcelChat(Channel, PushesParts):
    """Keeps what it was given to push; it has no `push` but only `push_part`."""

    session_family = "host_tracked"
    requires_auth_when_public = False

    def __init__(self, name: str = "chat", *, scope: ConversationScope = "per_user", run_hook: Any = None) -> None:
        self.name, self.path = name, f"/{name}"
        self.conversation_scope = scope
        self.run_hook = run_hook
        self.sent: list[PushPart] = []
        self._more = asyncio.Condition()
        self._events = 0

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self.context = context
        return ChannelContribution()

    def parts(self, result: HostedRunResult[Any]) -> Sequence[Any]:
        return [result.result.text]

    async def push_part(self, part: PushPart) -> str | None:
        async with self._more:
            self.sent.append(part)
            self._more.notify_all()
        return f"receipt {len(self.sent)}"

    def who(self, native_id: str, **attributes: Any) -> ChannelIdentity:
        return ChannelIdentity(self.name, native_id, attributes)

    async def hear(
        self,
        who: ChannelIdentity,
        text: str,
        *,
        reference: Mapping[str, Any] | None = None,
        group: str | None = None,
    ) -> PushPart:
        """Somebody writes, in a direct chat unless a group is named; returns the answer."""
        self._events += 1
        place, count = group or f"dm {who.native_id}", len(self.sent)
        request = ChannelRequest(
            channel=self.name,
            input=text,
            identity=who,
            conversation_id=place,
            group=group is not None,
            reference=reference or {},
        )
        await self.context.events.accept(
            InboxItem(
                channel=self.name,
                event_id=str(self._events),
                conversation_id=place,
                caller=Caller(identity=who),
                request=request,
                received_at=self.context.now(),
            )
        )
        return (await self.wait(count + 1))[-1]

    async def wait(self, count: int) -> list[PushPart]:
        """Wait until so many parts were pushed, and return all of them."""
        async with asyncio.timeout(60), self._more:
            await self._more.wait_for(lambda: len(self.sent) >= count)
        return self.sent


@asynccontextmanager
async def open_host(*channels: Channel, target: Any = echo, **options: Any) -> AsyncGenerator[AgentFrameworkHost]:
    """A host on the store that was chosen."""
    host = AgentFrameworkHost(target=target, channels=channels, store=new_store(), **options)
    async with host.app.router.lifespan_context(host.app):
        yield host
