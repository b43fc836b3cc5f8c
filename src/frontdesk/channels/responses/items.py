"""Input items, from the wire to framework messages. Pure."""

import base64
import binascii
import mimetypes
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, cast

from agent_framework import Content, Message

from frontdesk.data.approval import ApprovalAnswer
from frontdesk.data.request import ClientOutput
from frontdesk.errors import InvalidRequestError

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)((?:;[\w.+=-]+)*);base64,", re.ASCII)
_AUDIO = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_ROLES = ("user", "assistant", "system", "developer")
_PHASES = ("commentary", "final_answer")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True)
class Question:
    """A question of the host's that the caller repeats: it must be the one that was asked."""

    approval_id: str
    tool: str
    arguments: str
    where: str


@dataclass
class Items:
    """What the input items of a request come to."""

    messages: list[Message] = field(default_factory=list[Message])
    outputs: list[ClientOutput] = field(default_factory=list[ClientOutput])
    approvals: list[ApprovalAnswer] = field(default_factory=list[ApprovalAnswer])
    urls: list[tuple[Content, str]] = field(default_factory=list[tuple[Content, str]])
    """The pictures and files that are named by their address, each with its place in the request."""
    questions: list[Question] = field(default_factory=list[Question])
    calls: dict[str, bool] = field(default_factory=dict[str, bool])
    """The calls among the items, and whether each has its output."""
    asked: tuple[int, int] = (0, 0)
    """How many messages and addresses came before the last question."""


def read_items(items: Sequence[dict[str, Any]], *, host_tools: Sequence[str], replayed: bool) -> Items:
    """The items; `replayed` when the request brings its own history instead of naming a response to continue."""
    found = Items()
    for place, body in enumerate(items):
        item = _Item(body, f"input[{place}]", host_tools)
        kind = "message" if body.get("type") is None and "role" in body else body.get("type")
        reader = _READERS.get(kind) if isinstance(kind, str) else None
        if reader is None:
            raise InvalidRequestError(f"Unknown item type: {body.get('type')!r}.", param=f"{item.where}.type")
        if not isinstance(body.get("id"), (str, NoneType)):
            raise InvalidRequestError("`id` must be a string.", param=f"{item.where}.id")
        if replayed and (kind in _ANSWERS or body.get("role") == "assistant"):
            # The conversation went on after these answers: they are history.
            found.approvals.clear()
        reader(item, found)
    open_calls = [call_id for call_id, answered in found.calls.items() if not answered]
    if open_calls:
        raise InvalidRequestError(f"No tool output found for function call {open_calls[0]}.", param="input")
    if replayed and found.approvals:
        # The session that asked has everything up to the question; what came before it here is the same once more.
        del found.messages[: found.asked[0]]
        del found.urls[: found.asked[1]]
    return found


def reference(item: dict[str, Any]) -> str | None:
    """The id of an item that was said before, if the item is nothing else."""
    named = item.get("type") == "item_reference" or (item.get("type") is None and "role" not in item)
    return item["id"] if named and isinstance(item.get("id"), str) else None


class _Item:
    """One item and its place, for errors that name it."""

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
            raise InvalidRequestError("A call_id has 1 to 64 characters.", param=f"{self.where}.call_id")
        return value


def _message(item: _Item, found: Items) -> None:
    role, content = item.text("role"), item.body.get("content")
    if role not in _ROLES:
        raise InvalidRequestError(f"Unknown role: {role!r}.", param=f"{item.where}.role")
    phase = item.body.get("phase")
    if phase is not None and phase not in _PHASES:
        raise InvalidRequestError(f"Unknown phase: {phase!r}.", param=f"{item.where}.phase")
    if isinstance(content, str):
        contents = [Content.from_text(content)]
    else:
        contents = read_parts(content, f"{item.where}.content", found)
    properties = {} if phase is None else {"phase": phase}
    if role == "assistant" and _thinking(found):
        found.messages[-1].contents += contents
        found.messages[-1].additional_properties.update(properties)
        return
    said_as = "system" if role == "developer" else role
    found.messages.append(Message(said_as, contents, additional_properties=properties))


def _thinking(found: Items) -> bool:
    """Whether the last message is nothing but a thought: what it led to is the rest of the message."""
    last = found.messages[-1] if found.messages else None
    return last is not None and last.role == "assistant" and all(one.type == "text_reasoning" for one in last.contents)


def read_parts(parts: Any, where: str, found: Items) -> list[Content]:
    """The parts of a message or of a function's output."""
    if not isinstance(parts, list):
        raise InvalidRequestError("`content` must be a string or a list of parts.", param=where)
    return [_part(part, f"{where}[{place}]", found) for place, part in enumerate(cast("list[Any]", parts))]


def _part(part: Any, where: str, found: Items) -> Content:
    if not isinstance(part, dict):
        raise InvalidRequestError("A part must be an object.", param=where)
    item = _Item(cast("dict[str, Any]", part), where)
    kind = item.body.get("type")
    if kind in ("input_text", "output_text", "text", "summary_text", "reasoning_text"):
        return Content.from_text(item.text("text"))
    if kind == "refusal":
        return Content.from_text(item.text("refusal"), additional_properties={"core": {"model_output_kind": "refusal"}})
    if kind == "input_image":
        return _media(item, "image_url", "image/png", found)
    if kind == "input_file":
        return _file(item, found)
    if kind == "input_audio":
        return _audio(item)
    raise InvalidRequestError(f"Unknown content type: {kind!r}.", param=f"{where}.type")


def _media(item: _Item, name: str, otherwise: str, found: Items) -> Content:
    if item.body.get("file_id") is not None:
        raise InvalidRequestError("File ids are not known here: send the data or a URL.", param=f"{item.where}.file_id")
    url, where = item.text(name), f"{item.where}.{name}"
    if url.startswith("data:"):
        return Content.from_uri(url, media_type=_data_media_type(url, where))
    if not url.startswith(("https://", "http://")) or any(ord(one) <= 32 for one in url):
        raise InvalidRequestError("A URL must begin with https://, http:// or data:.", param=where)
    media_type = mimetypes.guess_type(url.partition("?")[0])[0] or otherwise
    content = Content.from_uri(url, media_type=media_type)
    found.urls.append((content, where))
    return content


def _data_media_type(url: str, where: str) -> str:
    head = _DATA_URL.match(url)
    if head is None:
        raise InvalidRequestError("A data URL needs a media type and base64.", param=where)
    _need_base64(url[head.end() :], where)
    return head.group(1)


def _file(item: _Item, found: Items) -> Content:
    name = None if item.body.get("filename") is None else item.text("filename")
    if item.body.get("file_url") is not None:
        content = _media(item, "file_url", "application/octet-stream", found)
    elif item.body.get("file_id") is not None:
        raise InvalidRequestError("File ids are not known here: send the data or a URL.", param=f"{item.where}.file_id")
    else:
        data, where = item.text("file_data"), f"{item.where}.file_data"
        media_type = mimetypes.guess_type(name or "")[0] or "application/octet-stream"
        if data.startswith("data:"):
            media_type = _data_media_type(data, where)
        else:
            _need_base64(data, where)
            data = f"data:{media_type};base64,{data}"
        content = Content.from_uri(data, media_type=media_type)
    if name is not None:
        content.additional_properties["filename"] = name
    return content


def _audio(item: _Item) -> Content:
    audio: Any = item.body.get("input_audio")
    where = f"{item.where}.input_audio"
    if not isinstance(audio, dict):
        raise InvalidRequestError("`input_audio` must be an object.", param=where)
    inner = _Item(cast("dict[str, Any]", audio), where)
    media_type = _AUDIO.get(inner.text("format"))
    if media_type is None:
        raise InvalidRequestError(f"`format` must be one of {', '.join(_AUDIO)}.", param=f"{where}.format")
    _need_base64(inner.text("data"), f"{where}.data")
    return Content.from_uri(f"data:{media_type};base64,{inner.text('data')}", media_type=media_type)


def _need_base64(data: str, where: str) -> None:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequestError("This is not base64.", param=where) from None


def _function_call(item: _Item, found: Items) -> None:
    name = item.text("name")
    if not _NAME.fullmatch(name):
        raise InvalidRequestError("This is not the name of a function.", param=f"{item.where}.name")
    if name in item.host_tools:
        raise InvalidRequestError(f"{name!r} is a tool of the host's own.", param=f"{item.where}.name")
    call_id = item.call_id()
    if found.calls.get(call_id) is False:
        raise InvalidRequestError(f"Two calls are called {call_id}.", param=f"{item.where}.call_id")
    found.calls[call_id] = False
    call = Content.from_function_call(call_id, name, arguments=item.text("arguments"))
    if found.messages and found.messages[-1].role == "assistant":
        # Calls that were made together belong to one message, together with what was said before them.
        found.messages[-1].contents.append(call)
    else:
        found.messages.append(Message("assistant", [call]))


def _function_output(item: _Item, found: Items) -> None:
    call_id, output = item.call_id(), item.body.get("output")
    if not isinstance(output, str):
        output = read_parts(output, f"{item.where}.output", found)
    answered = found.calls.get(call_id)
    if answered:
        raise InvalidRequestError(f"The call {call_id} has two outputs.", param=f"{item.where}.call_id")
    if answered is None:
        found.outputs.append(ClientOutput(call_id=call_id, output=output))
        return
    found.calls[call_id] = True
    found.messages.append(Message("tool", [Content.from_function_result(call_id, result=output)]))


def _reasoning(item: _Item, found: Items) -> None:
    summary: Any = item.body.get("summary")
    if not isinstance(summary, list):
        raise InvalidRequestError("`summary` must be a list.", param=f"{item.where}.summary")
    parts = read_parts(cast("list[Any]", summary), f"{item.where}.summary", found)
    text = "\n".join(part.text or "" for part in parts)
    sealed = None if item.body.get("encrypted_content") is None else item.text("encrypted_content")
    thought = Content.from_text_reasoning(id=item.body.get("id"), text=text, protected_data=sealed)
    found.messages.append(Message("assistant", [thought]))


def _approval_request(item: _Item, found: Items) -> None:
    found.asked = (len(found.messages), len(found.urls))
    found.questions.append(Question(item.text("id"), item.text("name"), item.text("arguments"), item.where))


def _approval_response(item: _Item, found: Items) -> None:
    approve, reason = item.body.get("approve"), item.body.get("reason")
    if not isinstance(approve, bool):
        raise InvalidRequestError("`approve` must be true or false.", param=f"{item.where}.approve")
    if reason is not None and not isinstance(reason, str):
        raise InvalidRequestError("`reason` must be a string.", param=f"{item.where}.reason")
    approval_id = item.text("approval_request_id")
    found.approvals.append(ApprovalAnswer(approval_id=approval_id, approved=approve, reason=reason))


def _host_call(item: _Item, found: Items) -> None:
    """A call that the host has made and shown: the host knows it better than the wire does."""


_ANSWERS = frozenset({"function_call", "reasoning", "mcp_approval_request", "mcp_call", "image_generation_call"})
_READERS: dict[Any, Callable[[_Item, Items], None]] = {
    "message": _message,
    "function_call": _function_call,
    "function_call_output": _function_output,
    "reasoning": _reasoning,
    "mcp_approval_request": _approval_request,
    "mcp_approval_response": _approval_response,
    "mcp_call": _host_call,
    "image_generation_call": _host_call,
}
