"""Agents that follow a test's script."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from agent_framework import (
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)

Reply = str | Sequence[Content]
Answers = Iterable[Reply] | Callable[[Sequence[Message]], Reply]


class ScriptedChatClient(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A chat client without a model, for a real `Agent`.

    It gives one reply after the other, each a text or a list of contents, or calls a function for each. A streamed text
    comes word by word. `seen` has the messages of every call, `options` the options of each.
    """

    def __init__(self, replies: Answers) -> None:
        super().__init__()
        self._reply = replies if callable(replies) else _one_by_one(replies)
        self.seen: list[list[Message]] = []
        self.options: list[dict[str, Any]] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        self.seen.append(list(messages))
        self.options.append(dict(options))
        number = len(self.seen)
        reply = self._reply(messages)
        if stream:
            return self._build_response_stream(_pieces(reply, number), response_format=options.get("response_format"))
        return _whole(reply, number, options.get("response_format"))


def _one_by_one(replies: Iterable[Reply]) -> Callable[[Sequence[Message]], Reply]:
    script = iter(replies)

    def reply(messages: Sequence[Message]) -> Reply:
        for answer in script:
            return answer
        raise AssertionError("the script has no more replies")

    return reply


async def _pieces(reply: Reply, number: int) -> AsyncIterator[ChatResponseUpdate]:
    for content in _contents(reply):
        yield ChatResponseUpdate(
            role="assistant", contents=[content], response_id=f"response_{number}", message_id=f"message_{number}"
        )


async def _whole(reply: Reply, number: int, response_format: Any) -> ChatResponse[Any]:
    contents = [Content.from_text(reply)] if isinstance(reply, str) else list(reply)
    said = [content for content in contents if content.type != "usage"]
    usage = next((content.usage_details for content in contents if content.type == "usage"), None)
    return ChatResponse(
        messages=[Message("assistant", said, message_id=f"message_{number}")],
        response_id=f"response_{number}",
        usage_details=usage,
        response_format=response_format,
    )


def _contents(reply: Reply) -> list[Content]:
    return [Content.from_text(word) for word in _words(reply)] if isinstance(reply, str) else list(reply)


def _words(text: str) -> list[str]:
    """Split a text into pieces that together are the text again."""
    return [word + " " for word in text.split(" ")[:-1]] + [text.split(" ")[-1]]


class EchoAgent:
    """Repeats the last message. It has the shape `SupportsAgentRun` and nothing more; `seen` has what it was sent."""

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
        words = _words(inputs[-1].text if inputs else "")
        if stream:
            return ResponseStream(self.speak(words), finalizer=AgentResponse.from_updates)
        return self._answer(words)

    async def _answer(self, words: list[str]) -> AgentResponse[Any]:
        return AgentResponse.from_updates([update async for update in self.speak(words)])

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        """Yield the answer, word by word; subclasses change this."""
        for word in words:
            yield AgentResponseUpdate(contents=[Content.from_text(word)], role="assistant")

    def create_session(self, *, session_id: str | None = None) -> AgentSession:
        return AgentSession(session_id=session_id)

    def get_session(self, service_session_id: Any, *, session_id: str | None = None) -> AgentSession:
        return AgentSession(service_session_id=service_session_id, session_id=session_id)


class GatedAgent(EchoAgent):
    """An echo that says its first word and then waits, so that a test can hold a run half-way.

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
