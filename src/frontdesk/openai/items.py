"""Converts OpenAI items into framework messages. Pure."""

import base64
import binascii
import mimetypes
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, cast

from agent_framework import Content, Message

from frontdesk.errors import InvalidRequestError
from frontdesk.framework.contents import create_reasoning
from frontdesk.identifiers import is_named
from frontdesk.models.approval import ApprovalAnswer
from frontdesk.models.request import ClientOutput
from frontdesk.openai.tools import MAX_TOOLS, OUTPUTS, TOOL_KINDS, flat, function_name, input_arguments, tool_contents

Urls = list[tuple[Content, str]]
"""The pictures and files that are named by their address, each with its place in the request."""

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)((?:;[\w.+=-]+)*);base64,", re.ASCII)
_DETAILS = ("low", "high", "auto", "original")
_AUDIO = {"wav": "audio/wav", "mp3": "audio/mpeg"}


class Item:
    """An item or part with its path, for error messages."""

    def __init__(self, body: dict[str, Any], where: str, host_tools: Sequence[str] = ()) -> None:
        self.body = body
        self.where = where
        self.host_tools = host_tools

    def text(self, name: str) -> str:
        value = self.body.get(name)
        if not isinstance(value, str):
            raise InvalidRequestError(f"`{name}` must be a string.", param=f"{self.where}.{name}")
        return value

    def call_id(self) -> str:
        value = self.text("call_id")
        if not 1 <= len(value) <= 64:
            raise InvalidRequestError("`call_id` must have 1 to 64 characters.", param=f"{self.where}.call_id")
        return value


def read_parts(parts: Any, where: str, urls: Urls) -> list[Content]:
    if not isinstance(parts, list):
        raise InvalidRequestError("`content` must be a string or a list of parts.", param=where)
    return [_part(part, f"{where}[{place}]", urls) for place, part in enumerate(cast("list[Any]", parts))]


def _part(part: Any, where: str, urls: Urls) -> Content:
    if not isinstance(part, dict):
        raise InvalidRequestError("A part must be an object.", param=where)
    item = Item(cast("dict[str, Any]", part), where)
    kind = item.body.get("type")
    if kind in ("input_text", "output_text", "text", "summary_text", "reasoning_text"):
        return Content.from_text(item.text("text"))
    if kind == "refusal":
        return Content.from_text(item.text("refusal"), additional_properties={"core": {"model_output_kind": "refusal"}})
    if kind == "input_image":
        return _image(item, urls)
    if kind == "input_file":
        return _file(item, urls)
    if kind == "input_audio":
        return _audio(item)
    raise InvalidRequestError(f"Unknown content type: {kind!r}.", param=f"{where}.type")


def _image(item: Item, urls: Urls) -> Content:
    detail = item.body.get("detail")
    if detail is not None and detail not in _DETAILS:
        raise InvalidRequestError(f"`detail` must be one of {', '.join(_DETAILS)}.", param=f"{item.where}.detail")
    content = _media(item, "image_url", "image/png", urls)
    if detail is not None:
        content.additional_properties["detail"] = detail
    return content


def _media(item: Item, name: str, otherwise: str, urls: Urls) -> Content:
    if item.body.get("file_id") is not None:
        raise InvalidRequestError("File ids are not supported. Send the data or a URL.", param=f"{item.where}.file_id")
    url, where = item.text(name), f"{item.where}.{name}"
    if url.startswith("data:"):
        return Content.from_uri(url, media_type=_data_media_type(url, where))
    if not url.startswith(("https://", "http://")) or any(ord(character) <= 32 for character in url):
        raise InvalidRequestError("A URL must begin with https://, http:// or data:.", param=where)
    media_type = mimetypes.guess_type(url.partition("?")[0])[0] or otherwise
    content = Content.from_uri(url, media_type=media_type)
    urls.append((content, where))
    return content


def _data_media_type(url: str, where: str) -> str:
    head = _DATA_URL.match(url)
    if head is None:
        raise InvalidRequestError("A data URL requires a media type and base64.", param=where)
    _require_base64(url[head.end() :], where)
    return head.group(1)


def _file(item: Item, urls: Urls) -> Content:
    name = None if item.body.get("filename") is None else item.text("filename")
    if item.body.get("file_url") is not None:
        content = _media(item, "file_url", "application/octet-stream", urls)
    elif item.body.get("file_id") is not None:
        raise InvalidRequestError("File ids are not supported. Send the data or a URL.", param=f"{item.where}.file_id")
    else:
        data, where = item.text("file_data"), f"{item.where}.file_data"
        media_type = mimetypes.guess_type(name or "")[0] or "application/octet-stream"
        if data.startswith("data:"):
            media_type = _data_media_type(data, where)
        else:
            _require_base64(data, where)
            data = f"data:{media_type};base64,{data}"
        content = Content.from_uri(data, media_type=media_type)
    if name is not None:
        content.additional_properties["filename"] = name
    return content


def _audio(item: Item) -> Content:
    audio: Any = item.body.get("input_audio")
    where = f"{item.where}.input_audio"
    if not isinstance(audio, dict):
        raise InvalidRequestError("`input_audio` must be an object.", param=where)
    inner = Item(cast("dict[str, Any]", audio), where)
    media_type = _AUDIO.get(inner.text("format"))
    if media_type is None:
        raise InvalidRequestError(f"`format` must be one of {', '.join(_AUDIO)}.", param=f"{where}.format")
    _require_base64(inner.text("data"), f"{where}.data")
    return Content.from_uri(f"data:{media_type};base64,{inner.text('data')}", media_type=media_type)


def _require_base64(data: str, where: str) -> None:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequestError("Invalid base64.", param=where) from None


_ROLES = ("user", "assistant", "system", "developer")
_PHASES = ("commentary", "final_answer")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True)
class Question:
    """A host question repeated by the caller. It must match the original."""

    approval_id: str
    tool: str
    arguments: str
    where: str


@dataclass
class Items:
    """The messages, outputs and answers in the input items of a request."""

    messages: list[Message] = field(default_factory=list[Message])
    outputs: list[ClientOutput] = field(default_factory=list[ClientOutput])
    approvals: list[ApprovalAnswer] = field(default_factory=list[ApprovalAnswer])
    earlier: list[ApprovalAnswer] = field(default_factory=list[ApprovalAnswer])
    """Answers with another question behind them: of the same response, or of one that came after them."""
    urls: Urls = field(default_factory=list[tuple[Content, str]])
    """The pictures and files that are named by their address, each with its place in the request."""
    questions: list[Question] = field(default_factory=list[Question])
    tools: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The tools of the client's that come as items."""
    calls: dict[str, bool] = field(default_factory=dict[str, bool])
    """The calls among the items, and whether each has its output."""
    asked: tuple[int, int] = (0, 0)
    """The number of messages and addresses before the last question."""


def read_items(items: Sequence[dict[str, Any]], *, host_tools: Sequence[str], replayed: bool) -> Items:
    """Read the items. `replayed` means that the request has its own history and names no previous response."""
    parsed = _read(items, "input", host_tools, replayed)
    open_calls = [call_id for call_id, answered in parsed.calls.items() if not answered]
    if open_calls:
        raise InvalidRequestError(f"No tool output found for function call {open_calls[0]}.", param="input")
    if not parsed.approvals:
        parsed.earlier.clear()
    if replayed and parsed.approvals:
        # The session that asked has everything up to the question; what came before it here is the same once more.
        del parsed.messages[: parsed.asked[0]]
        del parsed.urls[: parsed.asked[1]]
        kept = [output.replace(after=max(0, output.after - parsed.asked[0])) for output in parsed.outputs]
        parsed.outputs[:] = kept
    return parsed


def read_added(items: Sequence[dict[str, Any]], *, host_tools: Sequence[str]) -> Items:
    """Read items added to a conversation. A call among them may get its output later."""
    return _read(items, "items", host_tools, replayed=False)


def _read(items: Sequence[dict[str, Any]], where: str, host_tools: Sequence[str], replayed: bool) -> Items:
    parsed = Items()
    for place, body in enumerate(items):
        item = Item(body, f"{where}[{place}]", host_tools)
        kind = "message" if body.get("type") is None and "role" in body else body.get("type")
        reader = _READERS.get(kind) if isinstance(kind, str) else None
        if reader is None:
            raise InvalidRequestError(f"Unknown item type: {body.get('type')!r}.", param=f"{item.where}.type")
        if not isinstance(body.get("id"), (str, NoneType)):
            raise InvalidRequestError("`id` must be a string.", param=f"{item.where}.id")
        if replayed and kind == "mcp_approval_request":
            parsed.earlier += parsed.approvals
            parsed.approvals.clear()
        elif replayed and (kind in _ANSWERS or body.get("role") == "assistant"):
            # The conversation went on after these answers: they are history.
            parsed.approvals.clear()
            parsed.earlier.clear()
        reader(item, parsed)
    return parsed


def to_messages(items: Sequence[Mapping[str, Any]]) -> tuple[list[Message], dict[str, str]]:
    """Return the messages for a target, and the names of the calls that wait for outputs."""
    parsed = Items()
    for body in items:
        # Stored items were valid when they came; half of a pair, after the other was deleted, is ignored.
        before = len(parsed.messages)
        with suppress(InvalidRequestError):
            _READERS.get(body.get("type"), _host_call)(Item(dict(body), "items"), parsed)
        for message in parsed.messages[before:]:
            message.message_id = body.get("id")
    spoken = [place for place, message in enumerate(parsed.messages) if message.role != "tool"]
    last = spoken[-1] if spoken else 0
    for message in parsed.messages[:last]:
        message.contents = [content for content in message.contents if not _is_open(content, parsed)]
    messages = [message for message in parsed.messages if message.contents]
    waiting = [content for content in parsed.messages[last].contents if _is_open(content, parsed)] if spoken else []
    return messages, {str(call.call_id): str(call.name) for call in waiting}


def _is_open(content: Content, parsed: Items) -> bool:
    return content.type == "function_call" and not parsed.calls[str(content.call_id)]


def reference(item: dict[str, Any]) -> str | None:
    """Return the id of an earlier item, if the item is only a reference to it."""
    named = item.get("type") == "item_reference" or (item.get("type") is None and "role" not in item)
    return item["id"] if named and isinstance(item.get("id"), str) else None


def _message(item: Item, parsed: Items) -> None:
    role, content = item.text("role"), item.body.get("content")
    if role not in _ROLES:
        raise InvalidRequestError(f"Unknown role: {role!r}.", param=f"{item.where}.role")
    phase = item.body.get("phase")
    if phase is not None and phase not in _PHASES:
        raise InvalidRequestError(f"Unknown phase: {phase!r}.", param=f"{item.where}.phase")
    if isinstance(content, str):
        contents = [Content.from_text(content)]
    else:
        contents = read_parts(content, f"{item.where}.content", parsed.urls)
    properties = {} if phase is None else {"phase": phase}
    if role == "assistant" and _thinking(parsed):
        parsed.messages[-1].contents += contents
        parsed.messages[-1].additional_properties.update(properties)
        return
    message_role = "system" if role == "developer" else role
    parsed.messages.append(Message(message_role, contents, additional_properties=properties))


def _thinking(parsed: Items) -> bool:
    """Return True if the last message has only reasoning. The output that follows belongs to that message."""
    last = parsed.messages[-1] if parsed.messages else None
    return (
        last is not None
        and last.role == "assistant"
        and all(content.type == "text_reasoning" for content in last.contents)
    )


def _function_call(item: Item, parsed: Items) -> None:
    _call(item, parsed, item.text("arguments"))


def _custom_call(item: Item, parsed: Items) -> None:
    _call(item, parsed, input_arguments(item.text("input")))


def _call(item: Item, parsed: Items, arguments: str) -> None:
    name, namespace = item.text("name"), None if item.body.get("namespace") is None else item.text("namespace")
    for part, given in (("name", name), ("namespace", namespace)):
        if given is not None and not _NAME.fullmatch(given):
            raise InvalidRequestError("Invalid function name.", param=f"{item.where}.{part}")
    name = function_name(name, namespace)
    if is_named(name, item.host_tools):
        raise InvalidRequestError(f"{name!r} is a reserved tool name of the host.", param=f"{item.where}.name")
    call_id = item.call_id()
    if parsed.calls.get(call_id) is False:
        raise InvalidRequestError(f"Duplicate tool call id: {call_id}.", param=f"{item.where}.call_id")
    parsed.calls[call_id] = False
    call = Content.from_function_call(call_id, name, arguments=arguments)
    if parsed.messages and parsed.messages[-1].role == "assistant":
        # Calls that were made together belong to one message, together with what was said before them.
        parsed.messages[-1].contents.append(call)
    else:
        parsed.messages.append(Message("assistant", [call]))


def _function_output(item: Item, parsed: Items) -> None:
    call_id, output = item.call_id(), item.body.get("output")
    if not isinstance(output, str):
        output = read_parts(output, f"{item.where}.output", parsed.urls)
    answered = parsed.calls.get(call_id)
    if answered:
        raise InvalidRequestError(f"Duplicate output for call {call_id}.", param=f"{item.where}.call_id")
    if answered is None:
        parsed.outputs.append(ClientOutput(call_id=call_id, output=output, after=len(parsed.messages)))
        return
    parsed.calls[call_id] = True
    parsed.messages.append(Message("tool", [Content.from_function_result(call_id, result=output)]))


def _read_reasoning(item: Item, parsed: Items) -> None:
    text = _join(item, "summary", parsed)
    sealed = None if item.body.get("encrypted_content") is None else item.text("encrypted_content")
    item_id: str | None = item.body.get("id")
    thoughts = [Content.from_text_reasoning(id=item_id, text=text, protected_data=sealed)]
    if item.body.get("content") is not None:
        raw = _join(item, "content", parsed)
        # A summary that is empty and holds nothing besides would say nothing.
        thoughts = [*(thoughts if text or sealed else ()), create_reasoning(raw, item_id)] if raw else thoughts
    parsed.messages.append(Message("assistant", thoughts))


def _join(item: Item, name: str, parsed: Items) -> str:
    given: Any = item.body.get(name)
    if not isinstance(given, list):
        raise InvalidRequestError(f"`{name}` must be a list.", param=f"{item.where}.{name}")
    parts = read_parts(cast("list[Any]", given), f"{item.where}.{name}", parsed.urls)
    return "\n".join(part.text or "" for part in parts)


def _approval_request(item: Item, parsed: Items) -> None:
    parsed.asked = (len(parsed.messages), len(parsed.urls))
    parsed.questions.append(Question(item.text("id"), item.text("name"), item.text("arguments"), item.where))


def _approval_response(item: Item, parsed: Items) -> None:
    approve, reason = item.body.get("approve"), item.body.get("reason")
    if not isinstance(approve, bool):
        raise InvalidRequestError("`approve` must be true or false.", param=f"{item.where}.approve")
    if reason is not None and not isinstance(reason, str):
        raise InvalidRequestError("`reason` must be a string.", param=f"{item.where}.reason")
    approval_id = item.text("approval_request_id")
    parsed.approvals.append(ApprovalAnswer(approval_id=approval_id, approved=approve, reason=reason))


def _additional_tools(item: Item, parsed: Items) -> None:
    tools: Any = item.body.get("tools")
    if item.text("role") != "developer":
        raise InvalidRequestError("Only items with the role developer can have tools.", param=f"{item.where}.role")
    if not isinstance(tools, list):
        raise InvalidRequestError("`tools` must be a list.", param=f"{item.where}.tools")
    given = cast("list[Any]", tools)
    if sum(1 for _ in flat(given, f"{item.where}.tools")) > MAX_TOOLS:
        raise InvalidRequestError(f"A request can have at most {MAX_TOOLS} tools.", param=f"{item.where}.tools")
    parsed.tools += given


def _host_call(item: Item, parsed: Items) -> None:
    """Skip a call that the host has made and shown. The host's own record is authoritative."""


def _tool_item(item: Item, parsed: Items) -> None:
    """Read a hosted tool call, or its outcome. It is history, and nothing is executed again."""
    kind = item.text("type")
    _check_ids(item)
    contents = tool_contents(item.body)
    if not contents:
        return
    if kind in OUTPUTS:
        parsed.messages.append(Message("tool", contents))
    elif parsed.messages and parsed.messages[-1].role == "assistant":
        parsed.messages[-1].contents += contents
    else:
        parsed.messages.append(Message("assistant", contents))


def _check_ids(item: Item) -> None:
    """Reject an item whose call has no id that an outcome could refer to."""
    if item.body.get("call_id") is not None or item.body.get("type") in OUTPUTS:
        item.call_id()


_ANSWERS = TOOL_KINDS - OUTPUTS | {
    "function_call",
    "custom_tool_call",
    "reasoning",
    "mcp_call",
    "image_generation_call",
}
_READERS: dict[Any, Callable[[Item, Items], None]] = {
    "message": _message,
    "function_call": _function_call,
    "function_call_output": _function_output,
    "custom_tool_call": _custom_call,
    "custom_tool_call_output": _function_output,
    "additional_tools": _additional_tools,
    "reasoning": _read_reasoning,
    "mcp_approval_request": _approval_request,
    "mcp_approval_response": _approval_response,
    "mcp_call": _host_call,
    "image_generation_call": _host_call,
    **dict.fromkeys(TOOL_KINDS, _tool_item),
}
