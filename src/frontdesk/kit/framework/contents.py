"""Reads and makes contents of the framework. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from agent_framework import Content, Message
from agent_framework.exceptions import ContentError

_KIND = "model_output_kind"
_REASONING = "reasoning_text"


def refusal(text: str) -> Content:
    """Make a text with which a model declines."""
    return Content.from_text(text, additional_properties={"core": {_KIND: "refusal"}})


def is_refusal(properties: Mapping[str, Any]) -> bool:
    """Tell whether a text with these properties declines."""
    core: Any = properties.get("core")
    kind: Any = cast("Mapping[str, Any]", core).get(_KIND) if isinstance(core, Mapping) else None
    return (properties.get(_KIND) if kind is None else kind) == "refusal"


def reasoning_text(text: str, item_id: str | None) -> Content:
    """Make a content with the whole reasoning of a model."""
    return Content.from_text_reasoning(id=item_id, text=text, additional_properties={_REASONING: text})


def is_reasoning_text(content: Content) -> bool:
    """Tell whether a reasoning content is the text itself, and no summary of it."""
    own: Any = content.additional_properties.get("openai")
    return _REASONING in content.additional_properties or (isinstance(own, Mapping) and _REASONING in own)


def open_calls(history: Sequence[Message]) -> list[Content]:
    """Return the tool calls of a history without a result: each as its approval request, or as itself."""
    calls: dict[str, Content] = {}
    for message in history:
        for content in message.contents:
            if content.type == "function_call":
                calls[str(content.call_id)] = content
            elif content.type == "function_result":
                calls.pop(str(content.call_id), None)
            elif content.type == "function_approval_request" and content.function_call is not None:
                calls[str(content.function_call.call_id)] = content
            elif content.type == "function_approval_response" and not content.approved and content.function_call:
                # It never runs.
                calls.pop(str(content.function_call.call_id), None)
    return list(calls.values())


def call_arguments(call: Content) -> str:
    """Return the arguments of a tool call, as JSON or as the piece of it that has come; empty if there are none."""
    given: Any = call.arguments
    if given is None and call.type == "code_interpreter_tool_call" and call.inputs:
        given = {"code": "".join(content.text or "" for content in call.inputs)}
    elif given is None and call.type == "shell_tool_call" and call.commands:
        given = {"commands": call.commands}
    elif given is None and call.type == "computer_tool_call" and call.actions:
        given = {"actions": call.actions}
    return given if isinstance(given, str) else "" if given is None else as_json(given)


def call_outcome(result: Content) -> str:
    """Return the result of a tool call, as text."""
    for value in (result.result, result.output, result.outputs, result.items, result.screenshot):
        if value is not None:
            return value if isinstance(value, str) else as_json(value)
    return ""


def asked_for(request: Content) -> tuple[str, str]:
    """Return the name and the arguments, as they came, of the call that an approval request is about."""
    call = request.function_call
    return ("", "{}") if call is None else (call.name or "", call_arguments(call) or "{}")


def joined_call(call: Content, piece: Content) -> Content:
    """Return a call with another piece of it; a piece that does not fit is left out."""
    if call.type not in ("function_call", "code_interpreter_tool_call"):
        return piece
    try:
        return call + piece
    except (ContentError, TypeError):
        return call


def file_name(content: Content) -> str:
    """Return the name of a file; empty if it has none."""
    given: Any = content.additional_properties.get("filename") or content.name
    return given if isinstance(given, str) else ""


def as_json(value: Any) -> str:
    """Encode anything as JSON; a value that JSON has no form for becomes a string."""
    return msgspec.json.encode(value, enc_hook=_encodable).decode()


def _encodable(value: Any) -> Any:
    return value.to_dict() if isinstance(value, Content) else str(value)
