"""The context variables of one caller: what runs later, and for others, must not see them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from contextvars import Context, ContextVar, copy_context
from pathlib import Path
from typing import Any

import pytest
from agent_framework import tool

from frontdesk import AgentFrameworkHost, InMemoryStateStore, NativeIdAllowlist, get_current_isolation_keys
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.clock import SystemClock
from frontdesk.concurrency.current import current_turn
from frontdesk.interfaces.runner import DurableTaskRunner
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import ChannelIdentity, IsolationKeys
from frontdesk.models.request import ChannelRequest
from frontdesk.runners.base import InProcessTaskRunner
from frontdesk.runners.procrastinate import ProcrastinateTaskRunner
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing import serving
from frontdesk_testing.internals import get_components
from tests.databases import short_lease
from tests.host.link_door import Loud
from tests.scenarios.cast import build_scripted, call

KEYS = IsolationKeys(user_key="alice's own")
MARK: ContextVar[str] = ContextVar("mark", default="")


def visible() -> list[str]:
    """What can be seen here of the caller who has set the mark."""
    found = [MARK.get(), "her turn" if current_turn.get() is not None else ""]
    return [one for one in (*found, str(get_current_isolation_keys() or "")) if one]


class ContextNotingChat(Loud):
    """A chat that notes what can be seen while somebody is told something."""

    def __init__(self) -> None:
        super().__init__("chat")
        self.seen: list[list[str]] = []

    async def push(self, identity: ChannelIdentity, result: Any) -> str | None:
        self.seen.append(visible())
        return await super().push(identity, result)


@pytest.fixture(params=["memory", "sqlite", "postgres", "procrastinate"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def store(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> HostStateStore:
    if kind == "memory":
        return InMemoryStateStore()
    if kind == "sqlite":
        return SqliteStateStore(tmp_path / "frontdesk.db")
    return short_lease(request.getfixturevalue("postgres"), 2.0)


@pytest.fixture
def runner(kind: str, store: Any) -> DurableTaskRunner:
    return ProcrastinateTaskRunner(store) if kind == "procrastinate" else InProcessTaskRunner(store)


@pytest.mark.parametrize("pause", [0.0, 0.2])
async def test_a_reminder_that_a_tool_scheduled_failed_with_own_turn(
    pause: float, store: HostStateStore, runner: DurableTaskRunner
) -> None:
    seen: list[list[str]] = []
    chat, host = ContextNotingChat(), None

    async def remind(payload: Mapping[str, Any]) -> None:
        seen.append(visible())
        assert host is not None
        await host.deliver(chat.by(payload["who"]).identity, payload["what"])

    @tool(approval_mode="never_require")
    async def remind_me(what: str) -> str:
        """Reminds of something."""
        assert visible() == ["her turn", str(KEYS)]
        at = SystemClock().now() + pause if pause else None
        await runner.schedule("remind", {"who": "alice", "what": what}, task_id="reminder", at=at)
        return "I will."

    def script(messages: Any) -> Any:
        return ["done"] if messages[-1].role == "tool" else [call("remind_me", what="the train")]

    runner.register("remind", remind)
    host = AgentFrameworkHost(build_scripted(script, tools=[remind_me]), channels=[chat], store=store, runner=runner)
    async with host.app.router.lifespan_context(host.app):
        asked = ChannelRequest(channel="chat", input="remind me of the train")
        await chat.context.run(asked, chat.by("alice", isolation=KEYS))
        async with asyncio.timeout(60):
            assert await chat.hears("alice", 1) == ["the train"]
    assert (seen, chat.seen) == ([[]], [[]])


@asynccontextmanager
async def start_host(target: Any, chat: ContextNotingChat, **options: Any) -> AsyncIterator[AgentFrameworkHost]:
    host = AgentFrameworkHost(target, channels=[chat], **options)
    async with host.app.router.lifespan_context(host.app):
        yield host


def event(chat: ContextNotingChat, text: str) -> InboxItem:
    caller, request = chat.by("bob"), ChannelRequest(channel="chat", input=text, conversation_id="bob")
    return InboxItem(
        channel="chat", event_id=text, conversation_id="bob", caller=caller, request=request, received_at=0.0
    )


class Story:
    """A marked caller sets off all that runs later, and each piece of it notes what it can see."""

    def __init__(self) -> None:
        self.chat = ContextNotingChat()
        self.seen: dict[str, list[str]] = {}
        self.news = asyncio.Event()

    def note(self, what: str) -> None:
        self.seen[what] = [one for one in visible() if one != "her turn"]
        self.news.set()

    async def target(self, text: str) -> str:
        self.note(text)
        return text

    def load(self) -> Collection[str]:
        self.note("allowlist")
        return ["alice", "bob"]

    async def wait_for_notes(self, *what: str) -> None:
        async with asyncio.timeout(60):
            while not self.seen.keys() >= set(what):
                self.news.clear()
                await self.news.wait()

    async def play(self, host: AgentFrameworkHost) -> None:
        context, alice = self.chat.context, self.chat.by("alice")
        MARK.set("alice")
        await context.run(ChannelRequest(channel="chat", input="a turn of her own"), alice)
        for text, stream in (("background", False), ("background stream", True)):
            await context.submit(ChannelRequest(channel="chat", input=text, stream=stream), alice)
        await self.wait_for_notes("background", "background stream")
        await context.events.accept(event(self.chat, "event"))
        await self.wait_for_notes("event")
        await host.deliver(self.chat.by("bob").identity, "a delivery")
        await get_components(host).notifier.tell(self.chat.by("bob").identity, "a notification")
        async with asyncio.timeout(60):
            # With the answer to the event.
            await self.chat.hears("bob", 3)
        run = await context.submit(ChannelRequest(channel="chat", input="cancelled"), alice)
        await context.runs.cancel(alice, run.run_id)
        MARK.set("")


async def test_what_runs_later_saw_the_context_of_who_set_it_off(
    store: HostStateStore, runner: DurableTaskRunner
) -> None:
    story = Story()
    MARK.set("the one who started the host")
    allowed = NativeIdAllowlist(story.load)
    async with start_host(story.target, story.chat, store=store, runner=runner, default_allowlist=allowed) as host:
        await story.play(host)
    assert story.seen.pop("a turn of her own") == ["alice"]
    assert {what: seen for what, seen in story.seen.items() if seen} == {}
    assert story.chat.seen == [[]] * 3


async def test_no_task_of_the_host_carried_the_context_of_a_caller(
    store: HostStateStore, runner: DurableTaskRunner
) -> None:
    """Asked of every task that is started on the way, whoever starts it."""
    story, marked, clean = Story(), set[str](), set[str]()

    def start(loop: Any, coro: Any, context: Context | None = None, **more: Any) -> Any:
        found = (copy_context() if context is None else context).get(MARK)
        if "frontdesk" in coro.cr_code.co_filename:
            (marked if found else clean).add(coro.__qualname__)
        return asyncio.Task(coro, loop=loop, context=context, **more)

    loop = asyncio.get_running_loop()
    MARK.set("the one who started the host")
    loop.set_task_factory(start)
    try:
        async with start_host(story.target, story.chat, store=store, runner=runner) as host:
            await story.play(host)
            MARK.set("the one who stops the host")
    finally:
        loop.set_task_factory(None)
        MARK.set("")
    assert "Wakes._run" in clean
    assert "RunWorker.do" in clean
    assert not marked


async def _send_pipelined(target: Callable[[str], Awaitable[str]], texts: Collection[str]) -> None:
    """Sends requests on one connection, all at once."""
    host = AgentFrameworkHost(target, channels=[InvocationsChannel()])
    async with serving(host) as client:
        port = int(client.base_url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number, text in enumerate(texts, 1):
            body = b'{"message": "%b"}' % text.encode()
            end = "close" if number == len(texts) else "keep-alive"
            head = f"POST /invocations HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: {end}\r\n"
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        async with asyncio.timeout(60):
            assert (await reader.read()).count(b"200 OK") == len(texts)
        writer.close()


async def test_a_request_saw_the_context_of_the_one_before_it_on_its_connection() -> None:
    """Behind a proxy the two are different people's."""
    seen: list[str] = []

    async def target(text: str) -> str:
        seen.append(MARK.get())
        MARK.set(text)
        return text

    await _send_pipelined(target, ["one", "two", "three"])
    assert seen == ["", "", ""]
