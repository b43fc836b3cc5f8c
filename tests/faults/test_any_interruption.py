"""Whatever is said, cancelled and cut off, in any order: no turn is lost or doubled, and no cancelled one speaks."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Any

import pytest
from agent_framework import AgentResponseUpdate
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import AgentFrameworkHost, Caller, ChannelIdentity, ChannelRequest
from frontdesk.chat.session_commands import session_commands
from frontdesk.errors import StoreUnavailableError
from frontdesk.interfaces.channel import ChannelContext, ChannelContribution
from frontdesk.models.delivery import InboxItem
from frontdesk.models.session import SessionName
from frontdesk.stores.memory.store import InMemoryStateStore, MemoryTransaction
from frontdesk_testing import EchoAgent
from tests.examples import examples
from tests.scenarios.delivery.chats import OWNER, SpokenChat
from tests.scenarios.delivery.house import person
from tests.scenarios.desk import until

REPLIES = {"/cancel": ("I have stopped.", "There is nothing to stop."), "/new": ("We start anew.",)}


class Mortal(InMemoryStateStore):
    """A store as one host sees it: from its crash on, nothing that the host does is read or written."""

    def __init__(self, shared: InMemoryStateStore) -> None:
        super().__init__()
        self.shared, self.dead = shared, False
        for name in ("sessions", "identities", "runs", "background", "approvals", "inbox", "outbox", "tasks", "live"):
            setattr(self, name, Drawer(getattr(shared, name), self))

    def transaction(self) -> MemoryTransaction:
        return MortalTransaction(self)


class MortalTransaction(MemoryTransaction):
    """Writes nothing once its host has crashed."""

    def __init__(self, mortal: Mortal) -> None:
        super().__init__(mortal.shared)
        self._mortal = mortal

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await pause()
        if self._mortal.dead:
            raise StoreUnavailableError
        await super().__aexit__(kind, error, trace)
        # Whoever is told too late that it was written may have crashed by then.
        await pause()


class Drawer:
    """A drawer that can't be reached once its host has crashed."""

    def __init__(self, inner: Any, mortal: Mortal) -> None:
        self._inner, self._mortal = inner, mortal

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if inspect.iscoroutinefunction(found):
            return partial(self._call, found)
        return (lambda *_: None) if self._mortal.dead and callable(found) else found

    async def _call(self, call: Any, *given: Any, **named: Any) -> Any:
        await pause()
        if self._mortal.dead:
            raise StoreUnavailableError
        return await call(*given, **named)


async def pause() -> None:
    """Let others go on, as a store on disk does."""
    for _ in range(3):
        await asyncio.sleep(0)


class Gated(EchoAgent):
    """Repeats what it hears; a text that begins with `hold` waits until the end of the story."""

    def __init__(self) -> None:
        super().__init__()
        self.released = asyncio.Event()

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        if words[0].strip() == "hold":
            await self.released.wait()
        async for update in super().speak(words):
            yield update


class Talk(SpokenChat):
    """A chat with the usual commands."""

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self.commands = tuple(session_commands(context))
        return super().contribute(context)

    async def hear(self, text: str, number: int) -> None:
        """Accept something that Ann says."""
        identity = ChannelIdentity(channel=self.name, native_id="ann")
        command = text.startswith("/")
        request = ChannelRequest(
            channel=self.name,
            operation="command" if command else "message",
            input=text.removeprefix("/"),
            identity=identity,
            conversation_id="ann's",
        )
        await self.context.events.accept(
            InboxItem(
                channel=self.name,
                event_id=str(number),
                conversation_id="ann's",
                caller=Caller(identity=identity),
                request=request,
                received_at=self.context.now(),
                kind="control" if command else "turn",
            )
        )


class Story:
    """A chat whose host crashes and comes back, and what was said in it."""

    def __init__(self, on_busy: Any, gather: float) -> None:
        self.shared, self.agent = InMemoryStateStore(), Gated()
        self._on_busy, self._gather = on_busy, gather
        self.said: list[str] = []
        self._open = AsyncExitStack()

    async def begin(self) -> None:
        self._store, self._chat = Mortal(self.shared), Talk("a")
        self._chat.on_busy, self._chat.gather_seconds = self._on_busy, self._gather
        host = AgentFrameworkHost(
            self.agent,
            channels=[self._chat],
            store=self._store,
            identity_resolver=person,
            shutdown_grace_seconds=0.01,
        )
        await self._open.enter_async_context(host.app.router.lifespan_context(host.app))

    async def do(self, act: str, steps: int) -> None:
        """Do the next thing, and let some steps of everything else pass."""
        if act == "crash":
            self._store.dead = True
            await self._open.aclose()
            await self.begin()
        else:
            self.said.append(act if act.startswith("/") else f"{act} {len(self.said)}")
            await self._chat.hear(self.said[-1], len(self.said))
        for _ in range(steps):
            await asyncio.sleep(0)

    async def end(self) -> list[str]:
        """Let all be answered; return what was said to Ann, in the order in which it was written."""
        self.agent.released.set()
        await until(self._is_done)
        await self._open.aclose()
        rows = await self.shared.outbox.find(limit=1000)
        # Messages that were answered together are the lines of one answer.
        return [line for row in sorted(rows, key=lambda row: row.number) for line in row.payload.split("\n")]

    async def _is_done(self) -> bool:
        return not self.shared.inbox.queues

    async def list_asked(self) -> list[str]:
        """Return the questions in all sessions of Ann's."""
        sessions, name = self.shared.sessions, SessionName(owner=OWNER, kind="tracked")
        current = await sessions.find(name)
        records = [*await sessions.past(name), *([] if current is None else [current])]
        histories = [await sessions.history(OWNER, record.session_id) for record in records]
        asked = [message.text for history in histories for message in history if message.role == "user"]
        return [line for text in asked for line in text.split("\n")]


def wrong(said: Sequence[str], heard: Sequence[str], asked: Sequence[str], *, interrupts: bool) -> list[str]:
    """List what no run of the rules allows, in what was said, heard and kept."""
    messages = [text for text in said if text not in REPLIES]
    answered = [text for text in heard if text in messages]
    found = [
        f"{text} was answered twice or out of order"
        for text in answered
        if answered != sorted(set(answered), key=messages.index)
    ]
    found += [f"{text} is kept {asked.count(text)} times" for text in messages if asked.count(text) > 1]
    found += [f"the question of {text} is lost" for text in answered if text not in asked]
    for command, replies in REPLIES.items():
        if said.count(command) != sum(text in replies for text in heard):
            found.append(f"{command} was replied to wrongly")
    commands = [place for place, text in enumerate(said) if text in REPLIES]
    told = [place for place, text in enumerate(heard) if text not in messages]
    for place, reply in zip(commands, told, strict=False):
        late = [text for text in said[:place] if text in heard[reply:]]
        found += [f"{text} was cancelled, and spoke" for text in late if text in messages]
    survivors = [text for text in said[commands[-1] + 1 if commands else 0 :] if text in messages]
    # Each message interrupts those before it, which may have been answered by then or not.
    certain = survivors[-1:] if interrupts else survivors
    return found + [f"{text} was not answered" for text in certain if text not in answered]


ACTS = st.tuples(st.sampled_from(("quick", "hold", "/cancel", "/new", "crash")), st.integers(0, 120))
MOST_CRASHES = 2
"""An event that is at work in more crashes may be given up."""


@pytest.mark.parametrize(("on_busy", "gather"), [("queue", 0.0), ("interrupt", 0.0), ("queue", 0.002)])
@examples(60)
@given(acts=st.lists(ACTS, min_size=1, max_size=8))
def test_any_story_ends_as_the_rules_allow(acts: list[tuple[str, int]], on_busy: str, gather: float) -> None:
    async def tell() -> None:
        story = Story(on_busy, gather)
        await story.begin()
        crashes = 0
        for act, steps in acts:
            crashes += act == "crash"
            if act != "crash" or crashes <= MOST_CRASHES:
                await story.do(act, steps)
        heard = await story.end()
        assert wrong(story.said, heard, await story.list_asked(), interrupts=on_busy == "interrupt") == []

    asyncio.run(tell())
