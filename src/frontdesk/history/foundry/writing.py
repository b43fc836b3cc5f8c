"""Converts framework messages into items of Foundry's response service. Pure except for random ids."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from agent_framework import Content, Message

from frontdesk.foundry.conventions import item_id
from frontdesk.framework.approval_ids import get_shown_id
from frontdesk.framework.contents import as_json, call_arguments, call_outcome, file_name, get_asked_call

OWN = "agent_framework"
"""The one key of an item that is ours; what it holds, the service and others leave as it is."""
EXTRAS = "extras"
"""The name below our key of what the parts of a message can't say, in the order of the parts."""
SERVER = "agent_framework"
"""The label of approval requests, which other code of the framework expects."""

Item = dict[str, Any]


def write(messages: Sequence[Message], response_id: str) -> tuple[list[Item], list[Item]]:
    border = _border(messages)
    given = [item for message in messages[:border] for item in _items(message, response_id)]
    return given, [item for message in messages[border:] for item in _items(message, response_id)]


def _border(messages: Sequence[Message]) -> int:
    """Return the start of the answer: after the last user message and the outputs of client-side tools."""
    asked = [place for place, message in enumerate(messages) if message.role not in ("assistant", "tool")]
    border = asked[-1] + 1 if asked else 0
    while border < len(messages) and messages[border].role == "tool":
        border += 1
    return border


def _items(message: Message, response_id: str) -> list[Item]:
    """Return the items of one message. Each text and image stays a separate part."""
    items: list[Item] = []
    extras: list[list[Item | None]] = []
    for content in message.contents:
        part = _part(content, message.role)
        if part is None:
            item = _item(content, response_id)
            if item is not None:
                items.append(item)
                extras.append([])
        elif items and items[-1]["type"] == "message":
            items[-1]["content"].append(part)
            extras[-1].append(_extra(content))
        else:
            role = "user" if message.role == "tool" else message.role
            said = {"type": "message", "role": role, "status": "completed", "content": [part]}
            items.append({"id": item_id("message", response_id), **said})
            extras.append([_extra(content)])
    for item, extra in zip(items, extras, strict=True):
        if any(part is not None for part in extra):
            item[OWN] = {EXTRAS: extra}
    for place, item in enumerate(items):
        own = _about(message) if place == 0 else {"joins": True}
        item[OWN] = {**own, **item.get(OWN, {})}
    return items


def _about(message: Message) -> dict[str, Any]:
    """Return the metadata of a message."""
    about = {"message_id": message.message_id, "author_name": message.author_name, "role": message.role}
    properties = {name: value for name, value in message.additional_properties.items() if name != "_attribution"}
    about["properties"] = _plain(properties) if properties else None
    return {name: value for name, value in about.items() if value is not None}


def _extra(content: Content) -> Item | None:
    """Return the data of a content that its part can't represent: citations and `additional_properties`."""
    if content.type == "text" and not content.annotations and not content.additional_properties:
        return None
    extra: Item = {"additional_properties": _plain(content.additional_properties)}
    if content.annotations:
        extra["annotations"] = _plain(content.annotations)
    return extra


def _plain(value: Any) -> Any:
    """Convert a value to plain JSON types."""
    return msgspec.json.decode(as_json(value))


def _part(content: Content, role: str) -> Item | None:
    if content.type == "text":
        if role == "assistant":
            return {"type": "output_text", "text": content.text or "", "annotations": [], "logprobs": []}
        return {"type": "input_text", "text": content.text or ""}
    if content.type not in ("data", "uri") or not content.uri or role == "assistant":
        return None
    if (content.media_type or "").startswith("image/"):
        detail = content.additional_properties.get("detail") or "auto"
        return {"type": "input_image", "image_url": content.uri, "detail": detail}
    where = "file_data" if content.uri.startswith("data:") else "file_url"
    return {"type": "input_file", "filename": file_name(content) or "file", where: content.uri}


def _item(content: Content, response_id: str) -> Item | None:
    """Return the separate item for a content, or None if it does not belong in a history."""
    if content.type == "usage":
        return None
    kind, write, exact = _KINDS.get(content.type, ("message", _write_unknown, True))
    body = write(content)
    # The same request has the same id each time: its answer, in a later turn, names it.
    asked = str(content.id) if kind == "mcp_approval_request" else None
    if kind == "mcp_approval_response":
        body["approval_request_id"] = item_id("mcp_approval_request", response_id, get_shown_id(content))
    item: Item = {"id": item_id(kind, response_id, asked), "type": kind, **body}
    if exact or content.additional_properties:
        item[OWN] = {"contents": [_plain(content.to_dict())]}
    return item


def _call(content: Content) -> Item:
    return {
        "call_id": str(content.call_id),
        "name": str(content.name),
        "arguments": call_arguments(content) or "{}",
        "status": "completed",
    }


def _output(content: Content) -> Item:
    return {"call_id": str(content.call_id), "output": call_outcome(content), "status": "completed"}


def _write_reasoning(content: Content) -> Item:
    item: Item = {"summary": [{"type": "summary_text", "text": content.text}] if content.text else []}
    if content.protected_data:
        item["encrypted_content"] = content.protected_data
    return item


def _question(content: Content) -> Item:
    name, arguments = get_asked_call(content)
    return {"server_label": SERVER, "name": name, "arguments": arguments}


def _answer(content: Content) -> Item:
    return {"approve": bool(content.approved)}


def _mcp_call(content: Content) -> Item:
    label = content.server_name or SERVER
    return {"server_label": label, "name": str(content.tool_name), "arguments": call_arguments(content) or "{}"}


def _search(content: Content) -> Item:
    return {"status": content.status or "completed", "action": {"type": "search", "query": call_arguments(content)}}


def _code(content: Content) -> Item:
    code = "".join(given.text or "" for given in content.inputs or ())
    return {"status": content.status or "completed", "code": code, "container_id": "", "outputs": []}


def _shell(content: Content) -> Item:
    action = {"commands": content.commands or []}
    return {"call_id": str(content.call_id), "status": content.status or "completed", "action": action}


def _shell_output(content: Content) -> Item:
    outputs = [
        {"stdout": output.stdout or "", "stderr": output.stderr or "", "outcome": _outcome(output)}
        for output in content.outputs or ()
        if isinstance(output, Content)
    ]
    return {"call_id": str(content.call_id), "output": outputs}


def _outcome(output: Content) -> Item:
    return {"type": "timeout"} if output.timed_out else {"type": "exit", "exit_code": output.exit_code or 0}


def _computer(content: Content) -> Item:
    return {
        "call_id": str(content.call_id),
        "status": content.status or "completed",
        "actions": content.actions or [],
        "pending_safety_checks": [],
    }


def _computer_output(content: Content) -> Item:
    url = None if content.screenshot is None else content.screenshot.uri
    return {"call_id": str(content.call_id), "output": {"type": "computer_screenshot", "image_url": url}}


def _image(content: Content) -> Item:
    return {"status": "completed", "result": None}


def _write_unknown(content: Content) -> Item:
    """Write a content without an item type at the service. Other readers see an empty message."""
    return {"role": "assistant", "status": "completed", "content": []}


_KINDS: dict[str, tuple[str, Callable[[Content], Item], bool]] = {
    "function_call": ("function_call", _call, False),
    "function_result": ("function_call_output", _output, True),
    "text_reasoning": ("reasoning", _write_reasoning, True),
    "function_approval_request": ("mcp_approval_request", _question, True),
    "function_approval_response": ("mcp_approval_response", _answer, True),
    "mcp_server_tool_call": ("mcp_call", _mcp_call, True),
    "mcp_server_tool_result": ("custom_tool_call_output", _output, True),
    "search_tool_call": ("web_search_call", _search, True),
    "code_interpreter_tool_call": ("code_interpreter_call", _code, True),
    "shell_tool_call": ("shell_call", _shell, True),
    "shell_tool_result": ("shell_call_output", _shell_output, True),
    "computer_tool_call": ("computer_call", _computer, True),
    "computer_tool_result": ("computer_call_output", _computer_output, True),
    "image_generation_tool_call": ("image_generation_call", _image, True),
    "image_generation_tool_result": ("image_generation_call", _image, True),
}
"""The type of item, what writes it, and whether our key keeps the content too, by the type of content."""
