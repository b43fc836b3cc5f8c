"""Scenario 7 of the design: a trusted backend relays for its users, and no linker is there."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
from agent_framework import Agent, Message

from frontdesk import (
    AgentFrameworkHost,
    ApiKeyAuth,
    ChannelIdentity,
    ChannelRequest,
    ChannelSession,
    ResponseTarget,
)
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import serving
from frontdesk_testing.internals import get_store
from frontdesk_testing.telegram import FakeTelegram, fake_telegram
from tests.scenarios.design.telegram import TelegramUser, build_polling_chat
from tests.scenarios.stores import new_store

KEY = "the key of the backend, long enough"
USERS = {"42": "user_alice"}
"""Who has which account in the backend, by the sender of the chat."""


async def resolve(identity: ChannelIdentity) -> str:
    return identity.attributes["app_user_id"]


def relay(request: ChannelRequest, **_: Any) -> ChannelRequest:
    """The hook of the HTTP door."""
    hosting = request.attributes["hosting"]
    assert request.identity is not None
    attributes = {**request.identity.attributes, "app_user_id": hosting["app_user_id"]}
    request = replace(request, identity=replace(request.identity, attributes=attributes))
    chat_id = hosting.get("push_to_telegram_chat_id")
    if chat_id is None:
        return request
    target = ResponseTarget.identities([ChannelIdentity("telegram", chat_id)])
    return replace(request, response_target=target, background=True)


def look_up(request: ChannelRequest, **_: Any) -> ChannelRequest:
    """The hook of the chat."""
    identity = request.identity
    if identity is None or identity.native_id not in USERS:
        return request
    attributes = {**identity.attributes, "app_user_id": USERS[identity.native_id]}
    return replace(request, identity=replace(identity, attributes=attributes))


def recite(messages: Sequence[Message]) -> str:
    return " / ".join(one.text for one in messages if one.role == "user")


@dataclass
class Backend:
    """The host, the backend that calls it, and the chat of its user."""

    host: AgentFrameworkHost
    http: httpx.AsyncClient
    fake: FakeTelegram
    alice: TelegramUser

    async def call(self, text: str, **hosting: str) -> httpx.Response:
        headers = {"authorization": f"Bearer {KEY}"}
        return await self.http.post("/responses", json={"input": text, "hosting": hosting}, headers=headers)

    async def wait_for_answers(self, count: int) -> list[str]:
        return await self.alice.wait_for_answers(count)


@asynccontextmanager
async def open_backend() -> AsyncIterator[Backend]:
    async with fake_telegram() as fake:
        alice = TelegramUser.of(fake, "Alice", 42)
        telegram = build_polling_chat(fake, run_hook=look_up)
        host = AgentFrameworkHost(
            target=Agent(client=ScriptedChatClient(recite), name="Concierge"),
            channels=[ResponsesChannel(run_hook=relay, auth=ApiKeyAuth({"backend": KEY})), telegram],
            identity_resolver=resolve,
            store=new_store(),
        )
        async with serving(host) as client:
            yield Backend(host, client.http, fake, alice)


async def test_without_a_push_target_the_answer_comes_back_over_http() -> None:
    async with open_backend() as backend:
        answer = await backend.call("one", app_user_id="user_alice")
        assert answer.status_code == 200, answer.text
        assert answer.json()["output"][0]["content"][0]["text"] == "one"


async def test_with_one_http_gets_the_continuation_and_the_chat_the_answer() -> None:
    async with open_backend() as backend:
        queued = await backend.call("one", app_user_id="user_alice", push_to_telegram_chat_id="42")
        assert (queued.status_code, queued.json()["status"]) == (200, "queued")
        # An explicit recipient needs no link, and no earlier message from there.
        assert await backend.wait_for_answers(1) == ["one"]


async def test_both_sides_have_one_key() -> None:
    async with open_backend() as backend:
        backend.alice.say("from the chat")
        assert await backend.wait_for_answers(1) == ["from the chat"]
        answer = await backend.call("from the backend", app_user_id="user_alice")
        assert answer.status_code == 200
        kept = get_store(backend.host)
        seen = await kept.identities.of_owner("user_alice")
        assert [one.key for one in seen] == [("telegram", "42")]
        run = await kept.runs.get("user_alice", answer.json()["id"])
        assert run is not None


async def test_both_sides_have_one_conversation_where_the_hook_joins_the_tracked_one() -> None:
    """A call that names no session begins one; a hook that names the person joins the one that the chat has."""

    def joins(request: ChannelRequest, **more: Any) -> ChannelRequest:
        return replace(relay(request, **more), session=ChannelSession(isolation_key="user_alice"))

    async with open_backend() as backend:
        responses = backend.host.channels[0]
        responses.run_hook = joins
        backend.alice.say("one")
        assert await backend.wait_for_answers(1) == ["one"]
        answer = await backend.call("two", app_user_id="user_alice")
        assert answer.json()["output"][0]["content"][0]["text"] == "one / two"
        backend.alice.say("three")
        assert (await backend.wait_for_answers(2))[-1] == "one / two / three"


async def test_the_backend_speaks_for_nobody_without_a_name() -> None:
    async with open_backend() as backend:
        answer = await backend.http.post(
            "/responses", json={"input": "one", "hosting": {}}, headers={"authorization": f"Bearer {KEY}"}
        )
        assert answer.status_code == 422
        stranger = TelegramUser.of(backend.fake, "Eve", 666)
        stranger.say("hello")
        (said,) = await stranger.wait_for_answers(1)
        assert "can't use this assistant" in said
