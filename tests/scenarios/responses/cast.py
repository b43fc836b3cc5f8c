"""The targets behind the Responses door."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
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
    tool,
)


@dataclass(frozen=True)
class Finish:
    """Why the model stopped."""

    reason: Any


Turn = Sequence[Content | str | Finish | Exception]
Script = Callable[[list[Message]], Turn] | Sequence[Turn]


class Model(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A chat client that answers from a script: a list of turns, or a function of the messages.

    `seen` has the messages of every call, `options` what it was told about each.
    """

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
        name, form = f"m{len(self.seen)}", options.get("response_format")
        if stream:
            return self._build_response_stream(_pieces(contents, name), response_format=form)
        return _whole(contents, name, form)

    def said(self) -> list[tuple[str, str]]:
        """The roles and texts of the last call."""
        return [(message.role, "".join(one.text or "" for one in message.contents)) for message in self.seen[-1]]


async def _pieces(contents: list[Any], name: str) -> AsyncIterator[ChatResponseUpdate]:
    for one in contents:
        await asyncio.sleep(0)
        if isinstance(one, Exception):
            raise one
        if isinstance(one, Finish):
            yield ChatResponseUpdate(role="assistant", finish_reason=one.reason, message_id=name, response_id=name)
        else:
            yield ChatResponseUpdate(role="assistant", contents=[one], message_id=name, response_id=name)


async def _whole(contents: list[Any], name: str, form: Any) -> ChatResponse:
    return await ChatResponse.from_update_generator(_pieces(contents, name), output_format_type=form)


def call(name: str, call_id: str = "call_1", **arguments: Any) -> Content:
    """A tool call, as a model makes it."""
    return Content.from_function_call(call_id, name, arguments=json.dumps(arguments))


def piece(call_id: str, arguments: str, name: str = "") -> Content:
    """A part of a tool call."""
    return Content.from_function_call(call_id, name, arguments=arguments)


def agent(*script: Turn, tools: Any = None, **options: Any) -> Any:
    """An `Agent` that says these turns, one after the other."""
    return Agent(Model(script), name="Concierge", description="Helps.", tools=tools, **options)


def build_answering(answer: Callable[[list[Message]], Turn], **options: Any) -> Any:
    """An `Agent` that thinks about what it was told."""
    return Agent(Model(answer), name="Concierge", description="Helps.", **options)


def parrot() -> Any:
    """An `Agent` that repeats the last words, in three pieces."""
    return build_answering(lambda messages: ["you ", "said ", messages[-1].text])


class Till:
    """Tools of the host's: one that just runs, and two that want to be asked about first."""

    def __init__(self) -> None:
        self.ran: list[Any] = []

    def tools(self) -> list[Any]:
        """The tools."""

        @tool
        def add(a: int, b: int) -> str:
            """Adds."""
            self.ran.append(("add", a, b))
            return str(a + b)

        @tool(approval_mode="always_require")
        def pay(amount: int) -> str:
            """Pays."""
            self.ran.append(("pay", amount))
            return f"paid {amount}"

        @tool(approval_mode="always_require")
        def refund(amount: int) -> str:
            """Refunds."""
            self.ran.append(("refund", amount))
            return f"refunded {amount}"

        return [add, pay, refund]

    def agent(self, *script: Turn) -> Any:
        """An agent with these tools."""
        return agent(*script, tools=self.tools())
