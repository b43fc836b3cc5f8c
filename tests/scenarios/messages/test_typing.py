"""While an answer is written the platform shows that; it is renewed, and it ends with the run."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from agent_framework import AgentResponseUpdate

from frontdesk import AgentFrameworkHost, NativeIdAllowlist
from frontdesk_testing import GatedAgent, serving
from frontdesk_testing.messages import MessagePlatform, TypingMessageChannel
from tests.scenarios.desk import until
from tests.scenarios.messages.chat import SECRET, MessagesHost, connect
from tests.testing.messages.starting import new_platform


def list_typed(platform: MessagePlatform, chat_id: str) -> list[str]:
    entries = platform.log_on_disk()
    return [entry.text for entry in entries if entry.method == "typing" and entry.chat_id == chat_id]


class TypingHost:
    """A host that types, on a platform of its own."""

    def __init__(self, agent: Any, **settings: Any) -> None:
        self._agent = agent
        self._settings = settings

    async def talk(self, talk: Any) -> None:
        async with new_platform() as platform:
            channel = TypingMessageChannel(
                platform_url=platform.url, token=platform.token, secret=SECRET, **self._settings
            )
            channel.typing_interval = 0.01
            host = AgentFrameworkHost(self._agent, channels=[channel])
            async with serving(host) as client:
                chat = MessagesHost(platform, host, channel, client.base_url)
                await chat.wait_until_known()
                await connect(chat)
                await talk(platform)


async def test_it_is_renewed_and_ends_with_the_answer() -> None:
    agent = GatedAgent()

    async def talk(platform: MessagePlatform) -> None:
        ada = await platform.user("Ada")
        await platform.say(ada, "one two")
        await until(lambda: list_typed(platform, ada.chat_id)[:3] == ["on"] * 3)
        agent.release.set()
        await platform.wait_for_answers(ada.chat_id)
        await until(lambda: list_typed(platform, ada.chat_id)[-1] == "off")

    await TypingHost(agent).talk(talk)


class LateFailure(GatedAgent):
    """Fails when it is let go on."""

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        async for update in super().speak(words[:1]):
            yield update
        raise RuntimeError("the secret reason")


async def test_it_ends_with_a_failure() -> None:
    agent = LateFailure()

    async def talk(platform: MessagePlatform) -> None:
        ada = await platform.user("Ada")
        await platform.say(ada, "one two")
        await until(lambda: list_typed(platform, ada.chat_id)[:1] == ["on"])
        agent.release.set()
        await platform.wait_for_answers(ada.chat_id)
        await until(lambda: list_typed(platform, ada.chat_id)[-1:] == ["off"])

    await TypingHost(agent).talk(talk)


@pytest.mark.parametrize("kind", ["error", "blocked", "cut_after"])
async def test_a_failure_of_typing_is_none_of_the_answer(kind: Any) -> None:
    agent = GatedAgent()

    async def talk(platform: MessagePlatform) -> None:
        ada = await platform.user("Ada")
        await platform.fail(kind, method="typing", times=1)
        await platform.say(ada, "one two")
        await until(lambda: list_typed(platform, ada.chat_id)[:1] == ["on"])
        agent.release.set()
        (answer,) = await platform.wait_for_answers(ada.chat_id)
        assert answer.text == "one two"

    await TypingHost(agent).talk(talk)


async def test_a_stranger_makes_nobody_type() -> None:
    async def talk(platform: MessagePlatform) -> None:
        ada = await platform.user("Ada")
        await platform.say(ada, "one two")
        await platform.wait_for_answers(ada.chat_id)
        assert list_typed(platform, ada.chat_id) == []

    await TypingHost(GatedAgent(), allowlist=NativeIdAllowlist(["nobody"])).talk(talk)
