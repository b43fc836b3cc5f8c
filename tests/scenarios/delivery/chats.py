"""Chats without a platform, and a target that a test holds half-way."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from agent_framework import AgentResponseUpdate, Message

from frontdesk import AgentFrameworkHost, Caller, ChannelIdentity, ChannelRequest, Reply, ResponseTarget
from frontdesk.errors import RequestError
from frontdesk.interfaces.channel import ChannelCommand, ChannelContext, ChannelContribution
from frontdesk.interfaces.context import AnswersEvents
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import InboxItem
from frontdesk.models.session import SessionName
from frontdesk_testing import EchoAgent
from tests.delivery.scripted import ScriptedChannel
from tests.scenarios.delivery.house import person
from tests.scenarios.desk import until
from tests.scenarios.stores import new_store
from tests.test_pipeline import Probe

OWNER = "person ann"


class Holding(EchoAgent):
    """Repeats what it hears; a text that begins with `count` is held until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.started: dict[str, asyncio.Event] = {}
        self.released: dict[str, asyncio.Event] = {}

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        text = "".join(words)
        if text.startswith("count"):
            self.started.setdefault(text, asyncio.Event()).set()
            await self.released.setdefault(text, asyncio.Event()).wait()
        async for update in super().speak(words):
            yield update

    async def begins(self, text: str) -> None:
        """Wait until a text is being worked on."""
        await self.started.setdefault(text, asyncio.Event()).wait()

    def release(self, text: str) -> None:
        """Let a text be answered."""
        self.released.setdefault(text, asyncio.Event()).set()

    def list_heard(self, text: str) -> list[str]:
        """Tell all that the target was told when it was asked a text."""
        return next([one.text for one in said] for said in self.seen if said[-1].text == text)


class SpokenChat(ScriptedChannel, AnswersEvents):
    """A chat in which the test speaks for people."""

    context: ChannelContext

    def __init__(self, name: str, *commands: ChannelCommand) -> None:
        super().__init__(name)
        self.commands = commands
        self._said = 0

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self.context = context
        return ChannelContribution(commands=self.commands)

    async def prepare(self, item: InboxItem) -> ChannelRequest | None:
        if item.request.operation != "command":
            return item.request
        call: Any = SimpleNamespace(caller=item.caller, request=item.request, session=None, event=item)
        await self.context.run_command(item.request.input, call)
        return None

    async def refuse(self, item: InboxItem, error: RequestError) -> Sequence[Reply]:
        return [Reply(error.message)]

    async def say(self, text: str, who: str = "ann", **fields: Any) -> None:
        """Accept a message of somebody's."""
        self._said += 1
        caller = Caller(identity=ChannelIdentity(channel=self.name, native_id=who))
        await self.context.events.accept(
            InboxItem(
                channel=self.name,
                event_id=f"{self.name} {self._said}",
                conversation_id=f"{self.name} of {who}",
                caller=caller,
                request=ChannelRequest(
                    channel=self.name, input=text, conversation_id=f"{self.name} of {who}", **fields
                ),
                received_at=self.context.now(),
            )
        )

    async def hears(self, *texts: str) -> None:
        """Wait until exactly this was said in the chat."""
        await until(lambda: len(self.texts()) >= len(texts))
        assert self.texts() == list(texts)


@dataclass
class Chats:
    """A host with two chats and a door on which nobody can be spoken to first."""

    host: AgentFrameworkHost
    a: SpokenChat
    b: SpokenChat
    door: Probe
    store: HostStateStore

    async def read_tracked(self) -> list[Message]:
        """Read what the person's present session has kept."""
        record = await self.store.sessions.find(SessionName(owner=OWNER, kind="tracked"))
        return [] if record is None else list(await self.store.sessions.history(OWNER, record.session_id))

    async def list_said(self) -> list[str]:
        return [one.text for one in await self.read_tracked()]

    async def find_last_channel(self) -> str | None:
        """Tell on which channel the person was last seen."""
        seen = await self.store.identities.last_seen(OWNER)
        return None if seen is None else seen.identity.channel


def in_background(target: ResponseTarget, **changes: Any) -> Any:
    """Make a hook that sends what is counted elsewhere, and lets all else be answered where it is asked."""

    def hook(request: ChannelRequest, **_: Any) -> ChannelRequest:
        counts = isinstance(request.input, str) and request.input.startswith(("count", "pay"))
        return request.replace(background=True, response_target=target, **changes) if counts else request

    return hook


@asynccontextmanager
async def open_chats(
    agent: Any,
    target: ResponseTarget = ResponseTarget.active,
    *,
    store: Any = None,
    commands: Sequence[ChannelCommand] = (),
    **options: Any,
) -> AsyncIterator[Chats]:
    """Start a host whose first chat sends what is counted to a target."""
    a, b, door = SpokenChat("a", *commands), SpokenChat("b", *commands), Probe()
    a.run_hook = in_background(target)
    kept = store or new_store()
    host = AgentFrameworkHost(agent, channels=[a, b, door], store=kept, identity_resolver=person, **options)
    async with host.app.router.lifespan_context(host.app):
        yield Chats(host, a, b, door, kept)
