"""The hosts that `bench.table` serves. They use public names only, so that other commits can serve them too."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)

from frontdesk import AgentFrameworkHost

STATE, TARGET, API_URL, BOT_TOKEN, PUBLIC_URL = (
    "BENCH_STATE",
    "BENCH_TARGET",
    "BENCH_API_URL",
    "BENCH_BOT_TOKEN",
    "BENCH_PUBLIC_URL",
)
ANSWER = "Hello, this is the answer."
WEBHOOK_SECRET = "the-secret-of-the-bench"


class FixedChatClient(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A chat client with one answer. The input `idle` is answered by one word, after which the stream stays open."""

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        if stream:
            return self._build_response_stream(_stream_answer(messages[-1].text == "idle"))
        return _answer()


async def _answer() -> ChatResponse[Any]:
    return ChatResponse(messages=[Message("assistant", [Content.from_text(ANSWER)])], response_id="answer")


async def _stream_answer(is_idle: bool) -> AsyncIterator[ChatResponseUpdate]:
    for word in ANSWER.split():
        contents = [Content.from_text(f"{word} ")]
        yield ChatResponseUpdate(role="assistant", contents=contents, response_id="answer", message_id="message")
        if is_idle:
            await asyncio.Event().wait()


def build_target() -> Any:
    """Return the target that the environment names."""
    if os.environ[TARGET] == "agent":
        client = FixedChatClient()
        client.function_invocation_configuration["enabled"] = False
        return Agent(client, "You are brief.", name="real")
    from bench.stub_agent import StubAgent

    return StubAgent()


def responses() -> AgentFrameworkHost:
    """Return a host with the Responses channel."""
    from bench.subjects.frontdesk import limits
    from frontdesk.channels.responses import ResponsesChannel

    return AgentFrameworkHost(
        build_target(), channels=[ResponsesChannel(limits=limits())], state_dir=os.environ[STATE] or None
    )


def invocations() -> AgentFrameworkHost:
    """Return a host with the Invocations channel."""
    from bench.subjects.frontdesk import limits
    from frontdesk.channels.invocations import InvocationsChannel

    return AgentFrameworkHost(
        build_target(), channels=[InvocationsChannel(limits=limits())], state_dir=os.environ[STATE] or None
    )


def chat_completions() -> AgentFrameworkHost:
    """Return a host with the Chat Completions channel."""
    from bench.subjects.frontdesk import limits
    from frontdesk.channels.chat_completions import ChatCompletionsChannel

    return AgentFrameworkHost(
        build_target(), channels=[ChatCompletionsChannel(limits=limits())], state_dir=os.environ[STATE] or None
    )


def mcp() -> AgentFrameworkHost:
    """Return a host with the MCP channel."""
    from bench.subjects.frontdesk import limits
    from bench.subjects.mcp import TOOL
    from frontdesk.channels.mcp import MCPChannel, MCPTool

    channel = MCPChannel(tools=[MCPTool(name=TOOL, description="Asks.")], limits=limits())
    return AgentFrameworkHost(build_target(), channels=[channel], state_dir=os.environ[STATE] or None)


async def echo(text: str) -> str:
    """Return the text."""
    return text


def telegram() -> AgentFrameworkHost:
    """Return a host with the Telegram channel, without rate limits and live messages."""
    from frontdesk.channels.telegram import TelegramChannel

    terms = TelegramChannel.push_terms
    channel = TelegramChannel(
        bot_token=os.environ[BOT_TOKEN],
        secret_token=WEBHOOK_SECRET,
        api_url=os.environ[API_URL],
        public_url=os.environ[PUBLIC_URL],
        max_connections=100,
        live="off",
        allowlist=None,
        push_terms=type(terms)(at_once=terms.at_once),
    )
    return AgentFrameworkHost(echo, channels=[channel], state_dir=os.environ[STATE])
