"""Estimates how many tokens a model reads: nobody here knows its tokenizer. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from agent_framework import Content, Message

from frontdesk.data.request import ChannelRequest, ClientTool

_CHARACTERS = 4
"""The number of characters that a token has on average."""
_MEDIA_TOKENS = 1_000
"""The tokens of a picture or a file, about as many as a picture of the usual size takes."""
_MESSAGE_TOKENS = 4
"""The tokens with which a model is told that a message begins and ends."""


def text_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-len(text) // _CHARACTERS)


def message_tokens(messages: Iterable[Message]) -> int:
    """Estimate the tokens of messages."""
    return sum(_MESSAGE_TOKENS + sum(map(_content_tokens, message.contents)) for message in messages)


def request_tokens(request: ChannelRequest) -> int:
    """Estimate the tokens of what a request itself brings: input, outputs, answers, instructions and tools."""
    said: Any = request.input
    total = text_tokens(said) + _MESSAGE_TOKENS if isinstance(said, str) else message_tokens(said or ())
    for output in request.client_outputs:
        total += _MESSAGE_TOKENS + _value_tokens(output.output)
    total += _MESSAGE_TOKENS * len(request.approvals)
    total += text_tokens(str(request.options.get("instructions") or ""))
    return total + _tool_tokens(request.client_tools)


def _tool_tokens(tools: Sequence[ClientTool]) -> int:
    return sum(text_tokens(tool.name + tool.description) + _value_tokens(tool.parameters) for tool in tools)


def _content_tokens(content: Content) -> int:
    if content.type in ("data", "uri"):
        return _MEDIA_TOKENS
    if content.type == "function_call":
        return text_tokens(str(content.name)) + _value_tokens(content.arguments)
    if content.type == "function_result":
        return _value_tokens(content.result)
    return text_tokens(content.text or "")


def _value_tokens(value: Any) -> int:
    if isinstance(value, str):
        return text_tokens(value)
    if isinstance(value, (list, tuple)):
        return sum(_content_tokens(part) if isinstance(part, Content) else _value_tokens(part) for part in value)  # pyright: ignore[reportUnknownVariableType]
    return text_tokens(msgspec.json.encode(value, enc_hook=str).decode())
