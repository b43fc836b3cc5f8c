"""Two places kept the history, and each turn doubled it: the host's store, and the agent or its service."""

from pathlib import Path
from typing import Any, ClassVar

import pytest
from agent_framework import Agent, InMemoryHistoryProvider

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent, serving

TURNS = ("yes", "yes", "no", "yes")
"""Two of them are the same on purpose: a memory that drops what it has seen would lose one."""


class StoringService(ScriptedChatClient):
    """A model whose service keeps what it is sent, unless it is told not to."""

    STORES_BY_DEFAULT: ClassVar[bool] = True

    def __init__(self, replies: Any) -> None:
        super().__init__(replies)
        self.kept: list[Any] = []

    def _inner_get_response(self, *, messages: Any, options: Any, **more: Any) -> Any:
        known = list(self.kept)
        if options.get("store", True):
            self.kept += messages
        return super()._inner_get_response(messages=[*known, *messages], options=options, **more)


def _answer(messages: Any) -> str:
    return f"re: {messages[-1].text}"


def _plain() -> tuple[Any, Any]:
    client = ScriptedChatClient(_answer)
    return Agent(client, name="Clerk"), client


def _with_memory() -> tuple[Any, Any]:
    client = ScriptedChatClient(_answer)
    return Agent(client, name="Clerk", context_providers=[InMemoryHistoryProvider()]), client


def _with_service() -> tuple[Any, Any]:
    client = StoringService(_answer)
    return Agent(client, name="Clerk"), client


def _of_the_shape_only() -> tuple[Any, Any]:
    agent = EchoAgent()
    return agent, agent


@pytest.mark.parametrize("cast", [_plain, _with_memory, _with_service, _of_the_shape_only])
async def test_each_turn_doubled_the_history(cast: Any, tmp_path: Path) -> None:
    heard: list[list[str]] = []
    for text in TURNS:
        # Each turn in a host of its own, on the state that the one before has left.
        agent, model = cast()
        host = AgentFrameworkHost(agent, channels=[InvocationsChannel()], state_dir=tmp_path / "state")
        async with serving(host) as client:
            await client.invoke(text, session_id="s")
        heard.append([message.text for message in model.seen[0] if message.role == "user"])
    assert heard == [list(TURNS[: number + 1]) for number in range(len(TURNS))]


@pytest.mark.parametrize("cast", [_plain, _with_memory, _with_service, _of_the_shape_only])
async def test_each_turn_of_one_host_doubled_the_history(cast: Any, tmp_path: Path) -> None:
    agent, model = cast()
    host = AgentFrameworkHost(agent, channels=[InvocationsChannel()], state_dir=tmp_path / "state")
    async with serving(host) as client:
        for text in TURNS:
            await client.invoke(text, session_id="s")
    heard = [[message.text for message in seen if message.role == "user"] for seen in model.seen]
    assert heard == [list(TURNS[: number + 1]) for number in range(len(TURNS))]
