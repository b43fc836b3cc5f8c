"""Converts the outputs of workflows into messages, for all channels. Pure."""

import json
from typing import Any, cast

import msgspec
from agent_framework import AgentResponse, Content, Message, WorkflowEvent, WorkflowRunResult

from frontdesk.framework.types import is_response


def read_output(output: Any, *, with_data: bool = True) -> list[Message] | None:
    """Return the messages of an output, or None for data, which has only a JSON form.

    Consecutive contents in a list form one message of the assistant. Data in a list of messages becomes a message with
    its JSON, or is omitted without `with_data`.
    """
    if isinstance(output, str):
        return [Message("assistant", [output])]
    if isinstance(output, Content):
        return [Message("assistant", [output])]
    if isinstance(output, Message):
        return [output]
    if is_response(output):
        return list(output.messages)
    return _read_list(cast("list[Any]", output), with_data) if type(output) in (list, tuple) else None


def _read_list(parts: list[Any], with_data: bool) -> list[Message] | None:
    messages: list[Message] = []
    is_data, follows = bool(parts), False
    for part in parts:
        if isinstance(part, Content) and follows:
            messages[-1].contents.append(part)
            continue
        said, follows = read_output(part, with_data=with_data), isinstance(part, Content)
        is_data = is_data and said is None
        if said is None and with_data:
            said = [Message("assistant", [output_json(part)])]
        messages += said or ()
    return None if is_data else messages


def extract_messages(output: Any) -> list[Message]:
    """Return the messages of an output. Data becomes a message with its JSON."""
    said = read_output(output)
    return [Message("assistant", [output_json(output)])] if said is None else said


def as_result(value: Any) -> Any:
    """Convert the result of a response hook to one that every channel renders: a message, or data as an output."""
    if value is None or is_response(value) or isinstance(value, WorkflowRunResult):
        return cast("Any", value)
    said = read_output(value)
    if said is None:
        return WorkflowRunResult([WorkflowEvent("output", data=value, executor_id="response_hook")])
    return AgentResponse(messages=said)


def output_json(output: Any) -> str:
    """Return the JSON of data. Values without a JSON form become the name of their type, never a representation."""
    try:
        return msgspec.json.encode(output, enc_hook=json_form).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        # Keys that are no texts, integers beyond 64 bits, halves of surrogate pairs.
        try:
            return json.dumps(output, default=json_form, skipkeys=True)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return json.dumps(type(output).__name__)


def json_form(value: Any) -> Any:
    """Return the JSON-compatible part of a value of another type."""
    for name in ("to_dict", "model_dump"):
        if callable(convert := getattr(value, name, None)):
            return convert(mode="json") if name == "model_dump" else convert()
    # A type with a text of its own, such as a path, is that text.
    return type(value).__name__ if type(value).__str__ is object.__str__ else str(value)
