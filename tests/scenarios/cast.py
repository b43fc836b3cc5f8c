"""The targets that the scenarios play with."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from agent_framework import (
    Agent,
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    Executor,
    FunctionInvocationLayer,
    Message,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)

Turn = Sequence[Content | str]
Script = Callable[[list[Message]], Turn] | Sequence[Turn]


class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A chat client that answers from a script: a list of turns, or a function of the messages."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script if callable(script) else iter(script)
        self.seen: list[list[Message]] = []
        self.options: list[dict[str, Any]] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        self.seen.append(list(messages))
        self.options.append(dict(options))
        turn = self._script(list(messages)) if callable(self._script) else next(self._script)
        contents = [Content.from_text(one) if isinstance(one, str) else one for one in turn]
        if stream:
            return self._build_response_stream(_pieces(contents), response_format=options.get("response_format"))
        return _whole(contents, options.get("response_format"))


async def _pieces(contents: list[Content]) -> AsyncIterator[ChatResponseUpdate]:
    for content in contents:
        await asyncio.sleep(0)
        yield ChatResponseUpdate(role="assistant", contents=[content], message_id="m", response_id="r")


async def _whole(contents: list[Content], response_format: Any) -> ChatResponse:
    await asyncio.sleep(0)
    return ChatResponse(messages=[Message("assistant", contents)], response_id="r", response_format=response_format)


def call(name: str, call_id: str = "call-1", **arguments: Any) -> Content:
    """A tool call, as a model makes it."""
    return Content.from_function_call(call_id, name, arguments=json.dumps(arguments))


def build_scripted(script: Script, *, tools: Any = None, **options: Any) -> Any:
    """An `Agent` over a scripted client."""
    return Agent(ScriptedClient(script), name="Concierge", description="Helps.", tools=tools, **options)


def parrot() -> Any:
    """An `Agent` that repeats the last words, in three pieces."""
    return build_scripted(lambda messages: ["you ", "said ", messages[-1].text])


async def echo(text: str) -> str:
    """Says what it heard."""
    await asyncio.sleep(0)
    return f"you said {text}"


async def spell(text: str) -> AsyncIterator[str]:
    """Says it letter by letter."""
    for letter in text:
        await asyncio.sleep(0)
        yield letter


class PlainAgent:
    """Anything of the shape `SupportsAgentRun`, with no help from the framework."""

    id = "plain"
    name = "Plain"
    description = "Counts what it was told."

    def __init__(self) -> None:
        self.heard: list[list[str]] = []

    def run(self, messages: Any = None, *, stream: bool = False, session: Any = None, **_: Any) -> Any:
        self.heard.append([message.text for message in messages])
        words = [f"{len(messages)} ", "messages"]
        return _updates(words) if stream else _response(words)

    def create_session(self, **options: Any) -> AgentSession:
        return AgentSession(**options)

    def get_session(self, service_session_id: str, **options: Any) -> AgentSession:
        return AgentSession(service_session_id=service_session_id, **options)


async def _updates(words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
    for word in words:
        yield AgentResponseUpdate(contents=[Content.from_text(word)], role="assistant", message_id="m")


async def _response(words: list[str]) -> AgentResponse[Any]:
    return AgentResponse(messages=[Message("assistant", ["".join(words)])])


class Upper(Executor):
    """Shouts, and counts how often this very instance was used."""

    def __init__(self) -> None:
        super().__init__("upper")
        self.used = 0

    @handler
    async def shout(self, text: str, context: WorkflowContext[str, str]) -> None:
        self.used += 1
        await asyncio.sleep(0)
        await context.yield_output(f"{text.upper()} {self.used}")
        await context.send_message(text)


class Lower(Executor):
    """Sends ephemeral messages."""

    @handler
    async def whisper(self, text: str, context: WorkflowContext[str, str]) -> None:
        await asyncio.sleep(0)
        await context.yield_output(text.lower())


def two_voices() -> WorkflowBuilder:
    """A workflow with two outputs for one input."""
    upper, lower = Upper(), Lower("lower")
    return WorkflowBuilder(name="voices", start_executor=upper, output_from=[upper, lower]).add_edge(upper, lower)


def voices() -> Workflow:
    return two_voices().build()
