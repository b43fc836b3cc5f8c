"""Whoever is shown a question can answer it after a crash: it is stored at the moment when a channel shows it."""

import json
import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from agent_framework import WorkflowAgent
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from websockets.asyncio.client import connect

from frontdesk import AgentFrameworkHost, ApprovalOptions, ApproverRule, ChannelIdentity
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.errors import StoreError
from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
from frontdesk_testing.messages import MessageChannel
from frontdesk_testing.server import HostClient, serving_app
from frontdesk_testing.telegram import fake_telegram
from tests.channels.web.visiting import open_visitor
from tests.scenarios.cast import call
from tests.scenarios.pausing import Till
from tests.scenarios.test_approvals import Bank
from tests.testing.messages.starting import new_platform

ID = re.compile(r"apr_[0-9a-z]+")
PAY = [call("pay", amount=5)]
KINDS = ("agent", "workflow", "workflow as agent")


class Watch:
    """Looks into the store at each moment when a channel shows a question."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.shown: list[str] = []
        self.unstored: list[str] = []

    def list_stored(self) -> set[str]:
        """Return the ids of the questions that are on the disk."""
        with closing(sqlite3.connect(self._place)) as connection:
            return {name for (name,) in connection.execute("SELECT approval_id FROM approvals")}

    def look(self, text: str) -> None:
        """Look, if a text that is sent shows a question; buttons have no whole id."""
        names = ID.findall(text) or (["a button"] if "'Approve'" in text or '"Approve"' in text else [])
        if names:
            stored = self.list_stored()
            self.shown += names
            self.unstored += [name for name in names if not stored or (name != "a button" and name not in stored)]

    def app(self, app: ASGIApp) -> ASGIApp:
        """Return an app that looks at all that is sent over HTTP and WebSockets."""

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            async def seen(message: Message) -> None:
                self.look((message.get("body") or b"").decode(errors="replace") + (message.get("text") or ""))
                await send(message)

            await app(scope, receive, seen if scope["type"] != "lifespan" else send)

        return watched

    def channel(self, channel: Any) -> Any:
        """Return a channel of which all is looked at that it pushes."""
        plain = channel.push_part

        async def push(part: Any) -> Any:
            self.look(str(part.content))
            return await plain(part)

        channel.push_part = push
        return channel


class NoQuestions(SqliteStateStore):
    """A store that refuses to keep questions."""

    def transaction(self) -> Any:
        return _NoQuestions(super().transaction())


class _NoQuestions:
    def __init__(self, transaction: Any) -> None:
        self._transaction, self._asks = transaction, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)

    def add_approval(self, approval: Any) -> None:
        self._asks = True

    async def __aenter__(self) -> Any:
        await self._transaction.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._asks and kind is None:
            error = StoreError("the disk refuses this write")
            await self._transaction.__aexit__(StoreError, error, None)
            raise error
        await self._transaction.__aexit__(kind, error, trace)


def _target(kind: str) -> Any:
    if kind == "agent":
        return Bank().agent(PAY)
    till = Till(PAY)
    return till if kind == "workflow" else lambda: WorkflowAgent(till())


class Ask:
    """A host of which a question is asked, over one way."""

    def __init__(self, watch: Watch, store: SqliteStateStore, kind: str) -> None:
        self.watch, self._store, self._kind = watch, store, kind

    @asynccontextmanager
    async def open(self, *channels: Any, **settings: Any) -> AsyncIterator[HostClient]:
        """Serve a host with channels that are watched."""
        watched = [self.watch.channel(channel) if hasattr(channel, "push_part") else channel for channel in channels]
        host = AgentFrameworkHost(_target(self._kind), channels=watched, store=self._store, **settings)
        async with serving_app(self.watch.app(host.app)) as client:
            yield client

    async def post(self, channel: Any, path: str, body: Any) -> str:
        """Post a body, and return all that comes back."""
        async with self.open(channel) as client:
            return (await client.http.post(path, json=body)).text

    async def invocations(self) -> str:
        return await self.post(InvocationsChannel(), "/invocations", {"message": "pay", "session_id": "s"})

    async def invocations_stream(self) -> str:
        body = {"message": "pay", "session_id": "s", "stream": True}
        return await self.post(InvocationsChannel(), "/invocations", body)

    async def responses(self) -> str:
        return await self.post(ResponsesChannel(), "/responses", {"model": "any", "input": "pay"})

    async def responses_stream(self) -> str:
        return await self.post(ResponsesChannel(), "/responses", {"model": "any", "input": "pay", "stream": True})

    async def responses_socket(self) -> str:
        said: list[str] = []
        async with self.open(ResponsesChannel()) as client:
            url = client.base_url.replace("http", "ws", 1)
            async with connect(f"{url}/v1/responses", proxy=None) as socket:
                await socket.send(json.dumps({"type": "response.create", "model": "any", "input": "pay"}))
                while not said or json.loads(said[-1])["type"] not in ENDS:
                    said.append(str(await socket.recv()))
        return "".join(said)

    async def messages(self) -> str:
        async with new_platform() as platform:
            channel = MessageChannel(platform_url=platform.url, token=platform.token, intake="polling")
            async with self.open(channel):
                ada = await platform.user("Ada")
                await platform.say(ada, "pay")
                return str(await platform.wait_for_answers(ada.chat_id))

    async def telegram(self) -> str:
        async with fake_telegram() as fake:
            ada = fake.user("Ada")
            channel = TelegramChannel(bot_token=fake.token, api_url=fake.url, transport="polling")
            async with self.open(channel):
                fake.say(ada, "pay")
                await fake.until(lambda: fake.shown(fake.private(ada)).answers)
                return str(fake.shown(fake.private(ada)).messages[1:])

    async def web(self) -> str:
        async with (
            self.open(WebChatChannel()) as client,
            open_visitor(client.base_url) as visitor,
            visitor.feed() as page,
        ):
            await visitor.say("pay")
            await page.until(lambda page: self.watch.shown or "Something went wrong" in str(page.messages))
            return str(page.messages)

    async def an_approver(self) -> str:
        """Another person is asked, on Telegram; if there is no question, the caller is told."""
        async with fake_telegram() as fake:
            bob = fake.user("Bob")
            chat = fake.private(bob)
            identity = ChannelIdentity(channel="telegram", native_id=str(bob.id))
            rule = ApprovalOptions(default=ApproverRule(approvers=[identity]))
            channel = TelegramChannel(bot_token=fake.token, api_url=fake.url, transport="polling")
            async with self.open(InvocationsChannel(), channel, approvals=rule) as client:
                said = (await client.http.post("/invocations", json={"message": "pay", "session_id": "s"})).text
                if self.watch.list_stored():
                    await fake.until(lambda: fake.shown(chat).messages)
                return said + str(fake.shown(chat).messages)


ENDS = ("response.completed", "response.failed", "error")
WAYS: dict[str, Callable[[Ask], Awaitable[str]]] = {
    name: getattr(Ask, name)
    for name in (
        "invocations",
        "invocations_stream",
        "responses",
        "responses_stream",
        "responses_socket",
        "messages",
        "telegram",
        "web",
        "an_approver",
    )
}


def _cases() -> Sequence[Any]:
    """Every way with an agent, and every kind of target over a stream."""
    streamed = [(way, kind) for way in ("invocations_stream", "responses_stream", "web") for kind in KINDS[1:]]
    return [*((way, "agent") for way in WAYS), *streamed]


@pytest.mark.parametrize(("way", "kind"), _cases())
async def test_audit_286_a_question_is_stored_when_it_is_shown(way: str, kind: str, tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "frontdesk.db")
    watch = Watch(tmp_path / "frontdesk.db")
    await WAYS[way](Ask(watch, store, kind))
    assert watch.shown
    assert watch.unstored == []


@pytest.mark.parametrize(("way", "kind"), _cases())
async def test_audit_286_a_question_whose_commit_fails_is_not_shown(way: str, kind: str, tmp_path: Path) -> None:
    store = NoQuestions(tmp_path / "frontdesk.db")
    watch = Watch(tmp_path / "frontdesk.db")
    said = await WAYS[way](Ask(watch, store, kind))
    assert (watch.shown, watch.list_stored()) == ([], set())
    assert "Something went wrong" in said or "internal_error" in said or "failed" in said
