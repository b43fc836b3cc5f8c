"""Completes OpenAI items for clients, each with its own id. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent_framework import Content, Message

from frontdesk.framework.approval_ids import get_shown_id
from frontdesk.framework.contents import call_arguments, call_outcome, file_name
from frontdesk.openai.tools import original_item

INCLUDES = frozenset(
    {
        "reasoning.encrypted_content",
        "message.output_text.logprobs",
        "message.input_image.image_url",
        "file_search_call.results",
        "web_search_call.results",
        "web_search_call.action.sources",
        "code_interpreter_call.outputs",
        "computer_call_output.output.image_url",
    }
)
"""The names of what a client may ask to be included."""

_ITEM = frozenset({"type", "id", "status"})
_FIELDS: dict[str, frozenset[str]] = {
    "message": _ITEM | {"role", "content", "phase"},
    "function_call": _ITEM | {"call_id", "name", "namespace", "arguments"},
    "function_call_output": _ITEM | {"call_id", "output"},
    "custom_tool_call": _ITEM | {"call_id", "name", "namespace", "input"},
    "custom_tool_call_output": _ITEM | {"call_id", "output"},
    "additional_tools": _ITEM | {"role", "tools"},
    "reasoning": _ITEM | {"summary", "content", "encrypted_content"},
    "mcp_approval_request": _ITEM | {"name", "arguments", "server_label"},
    "mcp_approval_response": _ITEM | {"approval_request_id", "approve", "reason"},
    "mcp_call": _ITEM | {"name", "arguments", "server_label", "output", "error", "approval_request_id"},
    "image_generation_call": _ITEM | {"result"},
    "compaction": _ITEM | {"encrypted_content"},
}
"""The fields that are kept of an item of each type."""
_PART = frozenset({"type"})
_PART_FIELDS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("input_text", "text", "summary_text", "reasoning_text"), _PART | {"text"}),
    "output_text": _PART | {"text", "annotations", "logprobs"},
    "refusal": _PART | {"refusal"},
    "input_image": _PART | {"image_url", "detail", "file_id"},
    "input_file": _PART | {"filename", "file_data", "file_url", "file_id", "detail"},
    "input_audio": _PART | {"input_audio"},
}
_HAVE_PARTS = ("content", "output", "summary")

_WITH_STATUS = ("message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output")
_STATUS = ("in_progress", "completed", "incomplete")


def trim(item: dict[str, Any]) -> dict[str, Any]:
    """Drop the fields that the item's type does not have. They are never read and could hold anything."""
    fields = _only(item, _FIELDS, "message")
    for name in _HAVE_PARTS:
        parts: Any = fields.get(name)
        if isinstance(parts, list):
            fields[name] = [_trim_part(part) for part in cast("list[Any]", parts)]
    return fields


def _trim_part(part: Any) -> Any:
    return _only(cast("dict[str, Any]", part), _PART_FIELDS) if isinstance(part, dict) else part


def _only(given: dict[str, Any], fields: Mapping[str, frozenset[str]], otherwise: str = "") -> dict[str, Any]:
    kind = given.get("type") or otherwise
    names = fields.get(kind) if isinstance(kind, str) else None
    return {name: value for name, value in given.items() if names is None or name in names}


def complete_item(item: dict[str, Any], item_id: str) -> dict[str, Any]:
    """Return a client's item in its output form."""
    kind = item.get("type") or "message"
    shown = {**{name: value for name, value in item.items() if value is not None}, "type": kind, "id": item_id}
    if kind in _WITH_STATUS and shown.get("status") not in _STATUS:
        shown["status"] = "completed"
    if kind == "message":
        content: Any = item["content"]
        parts: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        shown["content"] = [_part(part, assistant=item.get("role") == "assistant") for part in parts]
    return shown


def _part(part: dict[str, Any], *, assistant: bool) -> dict[str, Any]:
    if part["type"] == "input_image":
        return {**part, "image_url": part.get("image_url"), "detail": part.get("detail") or "auto"}
    if "text" not in part:
        return part
    if not assistant:
        return {"type": "input_text", "text": part["text"]}
    return {"type": "output_text", "text": part["text"], "annotations": part.get("annotations") or [], "logprobs": []}


def as_items(messages: Sequence[Message]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for message in messages:
        parts: list[dict[str, Any]] = []
        for content in message.contents:
            item = _parse_item(content)
            if item is not None:
                items += _message_items(message.role, parts)
                items.append(item)
                parts = []
            elif content.type == "text" and content.text:
                parts.append({"type": "input_text", "text": content.text})
            elif content.type in ("data", "uri") and content.uri:
                parts.append(_media(content))
        items += _message_items(message.role, parts)
    return items


def _message_items(role: str, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": role, "content": parts}] if parts else []


def _parse_item(content: Content) -> dict[str, Any] | None:
    if (item := original_item(content)) is not None:
        return item
    if content.type == "function_approval_response":
        answer = {"approval_request_id": get_shown_id(content), "approve": bool(content.approved)}
        return {"type": "mcp_approval_response", **answer}
    if content.type == "function_call":
        called = {"name": str(content.name), "arguments": call_arguments(content) or "{}"}
        return {"type": "function_call", "call_id": str(content.call_id), **called}
    if content.type == "function_result":
        return {"type": "function_call_output", "call_id": str(content.call_id), "output": call_outcome(content)}
    return None


def _media(content: Content) -> dict[str, Any]:
    uri = str(content.uri)
    if (content.media_type or "").startswith("image/"):
        detail = content.additional_properties.get("detail")
        return {"type": "input_image", "image_url": uri, **({"detail": detail} if detail else {})}
    where = "file_data" if uri.startswith("data:") else "file_url"
    return {"type": "input_file", "filename": file_name(content) or "file", where: uri}
