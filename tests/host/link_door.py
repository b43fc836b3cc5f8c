"""Message channels without a platform, on a host with a linker: a test says what comes in, and hears what goes out."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from frontdesk import AgentFrameworkHost
from frontdesk.interfaces.channel import Channel, ChannelCommand, ChannelContext, ChannelContribution, ChannelPush
from frontdesk.linkers.one_time_code import OneTimeCodeIdentityLinker
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.reply import Reply, as_reply
from frontdesk.models.request import ChannelRequest, ChannelSession
from frontdesk_testing import EchoAgent
from tests.scenarios.stores import new_store


class Call:
    """One call of a command."""

    def __init__(self, caller: Caller, args: str, *, group: bool = False) -> None:
        self.caller = caller
        self.request = ChannelRequest(
            channel=caller.identity.channel, operation="command", input=args, group=group, identity=caller.identity
        )
        self.session: ChannelSession | None = None
        self.state: Any = None
        self.raw_event: Any = None
        self.event: Any = None
        self.replies: list[str] = []

    async def reply(self, reply: Reply | str, /) -> None:
        self.replies.append(as_reply(reply).full_text)

    async def run(self, request: ChannelRequest) -> Any:
        raise AssertionError


class Mute(Channel):
    """A message channel that can't speak first."""

    session_family = "host_tracked"
    requires_auth_when_public = False
    context: ChannelContext

    def __init__(self, name: str, *, commands: Sequence[ChannelCommand] = (), **options: Any) -> None:
        self.name, self.path = name, f"/{name}"
        self.pushed: list[tuple[str, str]] = []
        self.own = commands
        self.news = asyncio.Event()
        for option, value in options.items():
            setattr(self, option, value)

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self.context = context
        return ChannelContribution(commands=self.own)

    def by(self, native_id: str, **options: Any) -> Caller:
        """Somebody on this channel."""
        identity = ChannelIdentity(channel=self.name, native_id=native_id, attributes={"name": native_id.title()})
        return Caller(identity=identity, **options)

    async def says(self, native_id: str, words: str, **options: Any) -> str | None:
        """What somebody is answered to a command; `None` where there is no such command."""
        name, _, args = words.removeprefix("/").partition(" ")
        call = Call(self.by(native_id), args, **options)
        if not await self.context.run_command(name, call):
            return None
        (reply,) = call.replies
        return reply

    async def asks(self, native_id: str, text: str) -> str:
        """The id of the run of a turn."""
        request = ChannelRequest(channel=self.name, input=text)
        return (await self.context.run(request, self.by(native_id))).run.run_id


class Loud(Mute, ChannelPush):
    """One that can."""

    broken: Exception | None = None

    async def push(self, identity: ChannelIdentity, result: Any) -> str | None:
        if self.broken is not None:
            raise self.broken
        self.pushed.append((identity.native_id, result.result.text))
        self.news.set()
        return None

    async def hears(self, native_id: str, count: int) -> list[str]:
        """Waits until somebody was told so many things."""
        while len(self.list_heard(native_id)) < count:
            self.news.clear()
            await self.news.wait()
        return self.list_heard(native_id)

    def list_heard(self, native_id: str) -> list[str]:
        """What somebody was told first."""
        return [text for told, text in self.pushed if told == native_id]


@asynccontextmanager
async def open_host(channels: Sequence[Channel], **options: Any) -> AsyncIterator[AgentFrameworkHost]:
    """A started host."""
    target = options.pop("target", None) or EchoAgent()
    settings: dict[str, Any] = {"linker": OneTimeCodeIdentityLinker(), "store": new_store(), **options}
    host = AgentFrameworkHost(target, channels=channels, **settings)
    async with host.app.router.lifespan_context(host.app):
        yield host


def code_in(text: str | None) -> str:
    """The code that a text shows."""
    assert text is not None
    return text.removeprefix("Your code is ").partition(". ")[0]
