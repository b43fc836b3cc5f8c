"""Foundry's storage fails, hangs and comes back while people talk: turns go on, and what is missing is counted."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from agent_framework import Agent, Message

from frontdesk import (
    AgentFrameworkHost,
    FoundryHostedAgentHistoryProvider,
    InMemoryStateStore,
    PlatformAuth,
    foundry_response_id,
)
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import HostClient, serving
from tests.foundry.fake import FakeStorage, HttpStorage

ADA = {"x-agent-user-id": "ada", "x-agent-foundry-call-id": "call-ada"}


class Shared(InMemoryStateStore):
    """A store that counts as one of many processes."""

    lease_seconds = 30.0


@pytest.fixture
def fake() -> FakeStorage:
    fake = FakeStorage()
    fake.calls["call-ada"] = "ada"
    return fake


def _join_said(messages: Sequence[Message]) -> str:
    return " | ".join(message.text for message in messages if message.role == "user")


def _provider(fake: FakeStorage, seconds: float = 30) -> FoundryHostedAgentHistoryProvider:
    return FoundryHostedAgentHistoryProvider(storage=HttpStorage(fake), timeout_seconds=seconds)


def _host(provider: FoundryHostedAgentHistoryProvider, **options: Any) -> AgentFrameworkHost:
    agent = Agent(ScriptedChatClient(_join_said), name="Echo", context_providers=[provider])
    auth = PlatformAuth(trusted="anyone_who_can_connect")
    channel = ResponsesChannel(auth=auth, response_id_factory=foundry_response_id)
    return AgentFrameworkHost(agent, channels=[channel], **options)


async def _ask(client: HostClient, text: str, **body: Any) -> dict[str, Any]:
    answer = await client.http.post("/responses", json={"input": text, **body}, headers=ADA)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _text(response: dict[str, Any]) -> str:
    return response["output"][0]["content"][0]["text"]


async def test_a_turn_that_was_not_written_is_all_that_is_missing(fake: FakeStorage) -> None:
    provider = _provider(fake)
    async with serving(_host(provider)) as client:
        one = await _ask(client, "one")
        # Reading goes on, so that the turn itself runs.
        fake.fails_with, fake.fails_only = 503, "responses"
        two = await _ask(client, "two", previous_response_id=one["id"])
        three = await _ask(client, "three", previous_response_id=two["id"])
        fake.fails_with = None
        four = await _ask(client, "four", previous_response_id=three["id"])
        five = await _ask(client, "five", previous_response_id=four["id"])
    assert [_text(response) for response in (two, three, four, five)] == [
        *("one | two", "one | three", "one | four", "one | four | five")
    ]
    assert provider.failed_writes == 2
    assert len(fake.of("ada")) == 3


async def test_a_mirror_that_is_away_takes_nothing_from_anybody(fake: FakeStorage) -> None:
    provider = _provider(fake)
    async with serving(_host(provider, store=Shared())) as client:
        fake.fails_with = 500
        one = await _ask(client, "one")
        two = await _ask(client, "two", previous_response_id=one["id"])
        fake.fails_with = None
        three = await _ask(client, "three", previous_response_id=two["id"])
    assert _text(three) == "one | two | three"
    assert provider.failed_writes == 2


async def test_people_who_talk_at_once_wait_no_longer_than_one(fake: FakeStorage) -> None:
    provider = _provider(fake, seconds=0.05)
    async with serving(_host(provider)) as client, asyncio.timeout(60):
        fake.hangs = True
        answers = await asyncio.gather(*(_ask(client, f"turn {number}") for number in range(20)))
        assert [_text(answer) for answer in answers] == [f"turn {number}" for number in range(20)]
        assert provider.failed_writes == 20


async def test_a_stream_is_whole_while_the_storage_hangs(fake: FakeStorage) -> None:
    provider = _provider(fake, seconds=0.05)
    async with serving(_host(provider)) as client, asyncio.timeout(60):
        fake.hangs = True
        asked = {"input": "one", "stream": True}
        async with client.http.stream("POST", "/responses", json=asked, headers=ADA) as stream:
            text = (await stream.aread()).decode()
        assert "response.completed" in text
        assert provider.failed_writes == 1


async def test_a_host_stops_while_the_storage_hangs(fake: FakeStorage) -> None:
    provider = _provider(fake)
    async with asyncio.timeout(60):
        async with serving(_host(provider, shutdown_grace_seconds=0)) as client:
            fake.hangs = True
            asked = asyncio.ensure_future(client.http.post("/responses", json={"input": "one"}, headers=ADA))
            await fake.was_asked.wait()
        await asyncio.gather(asked, return_exceptions=True)
