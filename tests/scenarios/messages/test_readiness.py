"""Whether a chat channel is ready, and whether its platform takes its credentials."""

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.cli.check import check_online
from frontdesk_testing import EchoAgent, serving
from frontdesk_testing.messages import MessageChannel
from tests.scenarios.messages.chat import SECRET, open_chat
from tests.testing.messages.starting import new_platform


async def test_a_channel_is_ready_once_its_platform_has_said_who_we_are() -> None:
    async with (
        open_chat(EchoAgent(), channels=[InvocationsChannel()]) as chat,
        httpx.AsyncClient(base_url=chat.base_url, trust_env=False) as client,
    ):
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()) == (200, {"status": "ok", "channels": {"messages": "ok"}})
        assert (await client.get("/healthz")).json() == {"status": "ok"}


async def test_a_platform_that_is_away_takes_no_other_channel_with_it() -> None:
    channel = MessageChannel(platform_url="http://127.0.0.1:9", token="t", secret=SECRET)
    host = AgentFrameworkHost(EchoAgent(), channels=[channel, InvocationsChannel()])
    async with serving(host) as client:
        ready = await client.http.get("/readyz")
    assert (ready.status_code, ready.json()) == (200, {"status": "ok", "channels": {"messages": "unavailable"}})


class Silent(MessageChannel):
    """A channel whose platform never answers."""

    async def check_online(self) -> Sequence[str]:
        await asyncio.Event().wait()
        return []


class Broken(MessageChannel):
    """A channel whose check fails."""

    async def check_online(self) -> Sequence[str]:
        raise RuntimeError("no luck")


async def test_platforms_are_asked_whether_they_take_the_credentials() -> None:
    async with new_platform() as platform:

        def channel(kind: Any, name: str, token: str) -> Any:
            return kind(platform_url=platform.url, token=token, secret=SECRET, name=name, path=f"/{name}")

        host = AgentFrameworkHost(
            EchoAgent(),
            channels=[
                channel(MessageChannel, "good", platform.token),
                channel(MessageChannel, "wrong", "another token"),
                channel(Broken, "broken", platform.token),
                InvocationsChannel(),
            ],
        )
        lines, wrong = await check_online(host)
    assert lines == ["  good  ok", "  wrong  wrong", "  broken  wrong", "  invocations  has nothing to ask"]
    refused, broken = wrong
    assert refused.startswith("channel 'wrong': the platform does not say who we are: ")
    assert "another token" not in refused
    assert broken == "channel 'broken': its check has failed: RuntimeError: no luck"


async def test_a_platform_that_does_not_answer_is_not_waited_for() -> None:
    silent = Silent(platform_url="http://127.0.0.1:9", token="t", secret=SECRET)
    _, wrong = await check_online(AgentFrameworkHost(EchoAgent(), channels=[silent]), seconds=0.01)
    assert wrong == ["channel 'messages': its platform has not answered in 0.01 seconds"]
