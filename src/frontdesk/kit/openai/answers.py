"""Answers of a target, as the channels of the OpenAI APIs read them. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from agent_framework import AgentResponse, Content, Message, WorkflowRunResult, add_usage_details

from frontdesk.kit.framework.types import is_response, whole_outputs

_encoder = msgspec.json.Encoder(enc_hook=str)
_HALVES = re.compile("[\ud800-\udfff]")


def encode(value: Any) -> bytes:
    """Return the JSON of a value. A model may cut a character in half, and halves can't be sent: they are replaced."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_mended(msgspec.to_builtins(value, enc_hook=str)))


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_mended(name): _mended(part) for name, part in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_mended(part) for part in cast("list[Any]", value)]
    return value


def answers(result: Any) -> Sequence[AgentResponse[Any]]:
    """Return a result as answers of agents, whatever kind of target it came from."""
    if is_response(result):
        return (result,)
    if not isinstance(result, WorkflowRunResult):
        return ()
    outputs = whole_outputs(result)
    return [output if is_response(output) else AgentResponse(messages=messages_of(output)) for output in outputs]


def messages_of(output: Any) -> list[Message]:
    """Return what a workflow's output says."""
    if is_response(output):
        return list(output.messages)
    if isinstance(output, Message):
        return [output]
    if isinstance(output, list):
        return [message for part in cast("list[Any]", output) for message in messages_of(part)]
    text = output if isinstance(output, str) else encode(output).decode()
    return [Message("assistant", [text])]


def finish_reason(said: Sequence[AgentResponse[Any]]) -> str | None:
    """Return why the last answer ended, if its model has told."""
    reason: Any = said[-1].finish_reason if said else None
    return reason


def counted(said: Sequence[AgentResponse[Any]]) -> Mapping[str, Any] | None:
    """Return what the framework has counted for all answers together; `None` if it has counted nothing."""
    if len(said) == 1 and said[0].usage_details is None:
        return None
    usage: dict[str, Any] = {}
    for answer in said:
        usage = dict(add_usage_details(cast(Any, usage), answer.usage_details) if usage else answer.usage_details or {})
    return usage or None


def piece(pieces: list[str], text: str, content: Content) -> str:
    """Return what a content adds to the pieces before it; a snapshot repeats them."""
    if content.merge_mode == "replace":
        said = "".join(pieces)
        if text.startswith(said):
            text = text[len(said) :]
        else:
            pieces.clear()
    pieces.append(text)
    return text
