"""An agent that costs as little as the framework's own types allow. The input text says what it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any

from agent_framework import AgentResponse, AgentResponseUpdate, AgentSession, Content, Message, ResponseStream

from bench.plan import STREAM_DELTAS


def build_update(number: int) -> AgentResponseUpdate:
    return AgentResponseUpdate(
        contents=[Content.from_text(text=f"word{number % 10} ")],
        role="assistant",
        response_id="answer",
        message_id="message",
    )


UPDATES = [build_update(number) for number in range(STREAM_DELTAS)]
ALL_OF_THEM = AgentResponse[Any].from_updates(UPDATES).messages[0]


class StubAgent:
    """`idle` sends one delta and waits, `stream` sends all, `paced` with a turn of the loop before each.

    Those are ready-made, so that what is measured is the host. `fresh` makes and collects them as an agent does.
    """

    id = "stub"
    name = "stub"
    description = "Costs nothing."

    def __init__(self) -> None:
        self._hello = Message(role="assistant", contents=[Content.from_text(text="Hello, this is the answer.")])

    def run(
        self, messages: Any = None, *, stream: bool = False, session: AgentSession | None = None, **kwargs: Any
    ) -> Awaitable[AgentResponse[Any]] | ResponseStream[AgentResponseUpdate, AgentResponse[Any]]:
        if not stream:
            return self._answer()
        kind = last_text(messages)
        if kind == "fresh":
            return ResponseStream(send_fresh(), finalizer=AgentResponse.from_updates)
        return ResponseStream(send_ready(kind), finalizer=give_ready)

    def create_session(self, *, session_id: str | None = None) -> AgentSession:
        return AgentSession(session_id=session_id)

    def get_session(self, service_session_id: Any, *, session_id: str | None = None) -> AgentSession:
        return AgentSession(service_session_id=service_session_id, session_id=session_id)

    async def _answer(self) -> AgentResponse[Any]:
        return AgentResponse(messages=[self._hello], response_id="answer")


def last_text(messages: Any) -> str:
    last = messages[-1] if isinstance(messages, list) else messages
    return last if isinstance(last, str) else last.text


def give_ready(updates: Sequence[AgentResponseUpdate]) -> AgentResponse[Any]:
    return AgentResponse(messages=[ALL_OF_THEM], response_id="answer")


async def send_ready(kind: str) -> AsyncIterator[AgentResponseUpdate]:
    if kind == "idle":
        yield UPDATES[0]
        await asyncio.Event().wait()
    for update in UPDATES:
        if kind == "paced":
            await asyncio.sleep(0)
        yield update


async def send_fresh() -> AsyncIterator[AgentResponseUpdate]:
    for number in range(STREAM_DELTAS):
        yield build_update(number)
