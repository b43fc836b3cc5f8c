"""Messages of the API, from the wire to those of the framework. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from agent_framework import Content, Message

from frontdesk.channels.chat_completions.config import Instructions
from frontdesk.errors import InvalidRequestError
from frontdesk.kit.framework.contents import refusal
from frontdesk.kit.names import is_named
from frontdesk.kit.openai.custom_tools import input_arguments
from frontdesk.kit.openai.parts import Item, Urls, read_parts

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LONGEST_AUTHOR = 64
_LONGEST_CALL_ID = 256
"""The API has no limit of its own, and clients of other services make longer ids than it does."""
_PARTS = {
    "system": ("text",),
    "developer": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
}
"""The parts that a message of each role may have."""


@dataclass
class Conversation:
    """All that was said so far."""

    messages: list[Message] = field(default_factory=list[Message])
    urls: Urls = field(default_factory=list[tuple[Content, str]])
    """The pictures that are named by their address, each with its place in the request."""
    waiting: dict[str, str] = field(default_factory=dict[str, str])
    """The calls without an output, each with its place in the request."""


def read_messages(
    given: Sequence[dict[str, Any]], host_tools: Sequence[str], instructions: Instructions
) -> Conversation:
    """Read the messages of a request; calls of the host's own tools are not among them."""
    said = Conversation()
    for place, body in enumerate(given):
        item = Item(body, f"messages[{place}]", host_tools)
        role = item.body.get("role")
        if not isinstance(role, str) or role not in _PARTS:
            message = "Use `tools`." if role == "function" else f"Unknown role: {role!r}."
            raise InvalidRequestError(message, param=f"{item.where}.role")
        if role == "tool":
            _tool(item, said)
            continue
        _need_outputs(said)
        if role == "assistant":
            _assistant(item, said)
        elif role == "user" or _takes_instructions(item, instructions):
            contents = _contents(item, role, said)
            said.messages.append(Message("user" if role == "user" else "system", contents, author_name=_author(item)))
    _need_outputs(said)
    if not said.messages:
        raise InvalidRequestError("The request needs a message.", param="messages")
    return said


def _takes_instructions(item: Item, instructions: Instructions) -> bool:
    if instructions == "refuse":
        raise InvalidRequestError("This host sets the instructions itself.", param=f"{item.where}.role")
    return instructions == "append"


def _need_outputs(said: Conversation) -> None:
    for call_id, where in said.waiting.items():
        raise InvalidRequestError(f"No tool output found for tool call {call_id}.", param=where)


def _author(item: Item) -> str | None:
    if item.body.get("name") is None:
        return None
    name = item.text("name")
    if not 1 <= len(name) <= _LONGEST_AUTHOR:
        raise InvalidRequestError(f"A name has 1 to {_LONGEST_AUTHOR} characters.", param=f"{item.where}.name")
    return name


def _contents(item: Item, role: str, said: Conversation) -> list[Content]:
    content, where = item.body.get("content"), f"{item.where}.content"
    if isinstance(content, str):
        return [Content.from_text(content)]
    if not isinstance(content, list) or not content:
        raise InvalidRequestError("`content` must be a string or a list of parts.", param=where)
    parts = cast("list[Any]", content)
    return read_parts([_part(part, role, f"{where}[{place}]") for place, part in enumerate(parts)], where, said.urls)


def _part(part: Any, role: str, where: str) -> Any:
    """Return a part in the form of the Responses API, which says the same in other words."""
    given: dict[str, Any] = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    kind = given.get("type")
    if kind not in _PARTS[role]:
        raise InvalidRequestError(f"A message of this role has no part of type {kind!r}.", param=f"{where}.type")
    if kind == "image_url":
        image = _inner(given, "image_url", where)
        return {"type": "input_image", "image_url": image.get("url"), "detail": image.get("detail")}
    if kind == "file":
        return {**_inner(given, "file", where), "type": "input_file", "file_url": None}
    return given


def _inner(part: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    inner: Any = part.get(name)
    if not isinstance(inner, dict):
        raise InvalidRequestError(f"`{name}` must be an object.", param=f"{where}.{name}")
    return cast("dict[str, Any]", inner)


def _assistant(item: Item, said: Conversation) -> None:
    body = item.body
    for name in ("function_call", "audio"):
        if body.get(name) is not None:
            raise InvalidRequestError(f"`{name}` is not served here.", param=f"{item.where}.{name}", code="unsupported")
    calls = body.get("tool_calls")
    contents: list[Content] = []
    if body.get("content") is not None or not (calls or body.get("refusal") is not None):
        contents += _contents(item, "assistant", said)
    if body.get("refusal") is not None:
        contents.append(refusal(item.text("refusal")))
    if calls is not None:
        contents += _calls(calls, item, said)
    # An empty text beside calls says nothing.
    kept = [content for content in contents if content.type != "text" or content.text] or contents
    said.messages.append(Message("assistant", kept, author_name=_author(item)))


def _calls(calls: Any, item: Item, said: Conversation) -> list[Content]:
    where = f"{item.where}.tool_calls"
    if not isinstance(calls, list):
        raise InvalidRequestError("`tool_calls` must be a list.", param=where)
    return [
        _call(call, f"{where}[{place}]", item.host_tools, said) for place, call in enumerate(cast("list[Any]", calls))
    ]


def _call(call: Any, where: str, host_tools: Sequence[str], said: Conversation) -> Content:
    if not isinstance(call, dict):
        raise InvalidRequestError("A call must be an object.", param=where)
    given = Item(cast("dict[str, Any]", call), where)
    kind = given.body.get("type", "function")
    if kind not in ("function", "custom"):
        raise InvalidRequestError(f"Unknown type of call: {kind!r}.", param=f"{where}.type")
    inner = Item(_inner(given.body, kind, where), f"{where}.{kind}")
    name, call_id = inner.text("name"), _call_id(given, "id")
    if not _NAME.fullmatch(name):
        raise InvalidRequestError("This is not the name of a tool.", param=f"{where}.{kind}.name")
    if is_named(name, host_tools):
        raise InvalidRequestError(f"{name!r} is a tool of the host's own.", param=f"{where}.{kind}.name")
    if call_id in said.waiting:
        raise InvalidRequestError(f"Two calls are called {call_id}.", param=f"{where}.id")
    said.waiting[call_id] = where
    arguments = inner.text("arguments") if kind == "function" else input_arguments(inner.text("input"))
    return Content.from_function_call(call_id, name, arguments=arguments)


def _tool(item: Item, said: Conversation) -> None:
    call_id = _call_id(item, "tool_call_id")
    if said.waiting.pop(call_id, None) is None:
        message = f"No tool call of the message before waits for an output with the id {call_id}."
        raise InvalidRequestError(message, param=f"{item.where}.tool_call_id")
    output = "".join(content.text or "" for content in _contents(item, "tool", said))
    said.messages.append(Message("tool", [Content.from_function_result(call_id, result=output)]))


def _call_id(item: Item, name: str) -> str:
    value = item.text(name)
    if not 1 <= len(value) <= _LONGEST_CALL_ID:
        message = f"The id of a call has 1 to {_LONGEST_CALL_ID} characters."
        raise InvalidRequestError(message, param=f"{item.where}.{name}")
    return value
