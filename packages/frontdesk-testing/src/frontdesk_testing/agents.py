"""Agents that follow a test's script."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

from agent_framework import AgentResponse, AgentResponseUpdate, AgentSession, Content, Message, ResponseStream

from frontdesk.scripted import split_words


class EchoAgent:
    """Repeats the last message, with the shape of `SupportsAgentRun`. `seen` has the received messages."""

    def __init__(self, name: str = "echo") -> None:
        self.id = name
        self.name = name
        self.description = "Says what it heard."
        self.seen: list[list[Message]] = []

    def run(
        self, messages: Any = None, *, stream: bool = False, session: AgentSession | None = None
    ) -> Awaitable[AgentResponse[Any]] | ResponseStream[AgentResponseUpdate, AgentResponse[Any]]:
        inputs: list[Message] = [Message("user", [messages])] if isinstance(messages, str) else list(messages or ())
        self.seen.append(inputs)
        words = split_words(inputs[-1].text if inputs else "")
        if stream:
            return ResponseStream(self.speak(words), finalizer=AgentResponse.from_updates)
        return self._answer(words)

    async def _answer(self, words: list[str]) -> AgentResponse[Any]:
        return AgentResponse.from_updates([update async for update in self.speak(words)])

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        """Yield the answer, word by word. Subclasses override this."""
        for word in words:
            yield AgentResponseUpdate(contents=[Content.from_text(word)], role="assistant")

    def create_session(self, *, session_id: str | None = None) -> AgentSession:
        return AgentSession(session_id=session_id)

    def get_session(self, service_session_id: Any, *, session_id: str | None = None) -> AgentSession:
        return AgentSession(service_session_id=service_session_id, session_id=session_id)


class GatedAgent(EchoAgent):
    """An echo that yields its first word and then waits, so that a test can pause a run.

    `started` is set when a run waits, `release` lets all of them go on, `cancelled` is set when one was cancelled.
    """

    def __init__(self, name: str = "gated") -> None:
        super().__init__(name)
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.running = 0
        self.most_at_once = 0

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            first = True
            async for update in super().speak(words):
                yield update
                if first:
                    self.started.set()
                    await self.release.wait()
                first = False
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled.set()
            raise
        finally:
            self.running -= 1


class FailingAgent(EchoAgent):
    """Fails, at once or after some words."""

    def __init__(self, error: Exception | None = None, *, after: int = 0, name: str = "failing") -> None:
        super().__init__(name)
        self.error = error or RuntimeError("the secret reason")
        self.after = after

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        async for update in super().speak(words[: self.after]):
            yield update
        raise self.error
