"""What the framework's contents say, in plain words. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from agent_framework import Content, Message
from agent_framework.exceptions import ContentError

_KIND = "model_output_kind"
_REASONING = "reasoning_text"


def refusal(text: str) -> Content:
    """Words with which a model declines."""
    return Content.from_text(text, additional_properties={"core": {_KIND: "refusal"}})


def is_refusal(properties: Mapping[str, Any]) -> bool:
    """Whether a text with these properties declines."""
    core: Any = properties.get("core")
    kind: Any = cast("Mapping[str, Any]", core).get(_KIND) if isinstance(core, Mapping) else None
    return (properties.get(_KIND) if kind is None else kind) == "refusal"


def reasoning_text(text: str, item_id: str | None) -> Content:
    """What a model thought, in full."""
    return Content.from_text_reasoning(id=item_id, text=text, additional_properties={_REASONING: text})


def is_reasoning_text(content: Content) -> bool:
    """Whether a thought is the text itself, and no summary of it."""
    own: Any = content.additional_properties.get("openai")
    return _REASONING in content.additional_properties or (isinstance(own, Mapping) and _REASONING in own)


def open_calls(history: Sequence[Message]) -> list[Content]:
    """The tool calls of a history that have no result: each as the question that asks about it, or as itself."""
    found: dict[str, Content] = {}
    for message in history:
        for content in message.contents:
            if content.type == "function_call":
                found[str(content.call_id)] = content
            elif content.type == "function_result":
                found.pop(str(content.call_id), None)
            elif content.type == "function_approval_request" and content.function_call is not None:
                found[str(content.function_call.call_id)] = content
            elif content.type == "function_approval_response" and not content.approved and content.function_call:
                # It never runs.
                found.pop(str(content.function_call.call_id), None)
    return list(found.values())


def call_arguments(call: Content) -> str:
    """What a tool is called with, as JSON or as the piece of it that has come; empty if there is nothing."""
    given: Any = call.arguments
    if given is None and call.type == "code_interpreter_tool_call" and call.inputs:
        given = {"code": "".join(one.text or "" for one in call.inputs)}
    elif given is None and call.type == "shell_tool_call" and call.commands:
        given = {"commands": call.commands}
    elif given is None and call.type == "computer_tool_call" and call.actions:
        given = {"actions": call.actions}
    return given if isinstance(given, str) else "" if given is None else as_json(given)


def call_outcome(result: Content) -> str:
    """What a tool has returned, as text."""
    for value in (result.result, result.output, result.outputs, result.items, result.screenshot):
        if value is not None:
            return value if isinstance(value, str) else as_json(value)
    return ""


def asked_for(request: Content) -> tuple[str, str]:
    """What a question shows of the call that it is about: the tool's name, and its arguments as they came."""
    call = request.function_call
    return ("", "{}") if call is None else (call.name or "", call_arguments(call) or "{}")


def joined_call(known: Content, piece: Content) -> Content:
    """A call and another piece of it; one that does not fit is left out."""
    if known.type not in ("function_call", "code_interpreter_tool_call"):
        return piece
    try:
        return known + piece
    except (ContentError, TypeError):
        return known


def file_name(content: Content) -> str:
    """What a file is called, if it has a name."""
    given: Any = content.additional_properties.get("filename") or content.name
    return given if isinstance(given, str) else ""


def as_json(value: Any) -> str:
    """Anything as JSON; what JSON does not know is told in words."""
    return msgspec.json.encode(value, enc_hook=_told).decode()


def _told(value: Any) -> Any:
    return value.to_dict() if isinstance(value, Content) else str(value)
