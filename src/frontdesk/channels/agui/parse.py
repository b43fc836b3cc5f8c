"""Parses the input of a run. Pure."""

import base64
import binascii
import hashlib
import mimetypes
from collections.abc import Mapping, Sequence, Sized
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
from agent_framework import Content, Message

from frontdesk.channels.agui.schema import (
    AudioPart,
    BinaryPart,
    ContextEntry,
    DataSource,
    DeveloperMessage,
    DocumentPart,
    FileSource,
    ImagePart,
    InputMessage,
    MediaPart,
    Part,
    ResumeEntry,
    RunInput,
    SystemMessage,
    Text,
    TextPart,
    ToolMessage,
    UrlSource,
    UserMessage,
    VideoPart,
)
from frontdesk.errors import BodyTooLargeError, InvalidRequestError
from frontdesk.framework.types import require_schema
from frontdesk.http.bodies import MAX_VALUES, decode_as
from frontdesk.identifiers import digest, plain_id
from frontdesk.models.approval import ApprovalAnswer
from frontdesk.models.request import ClientTool
from frontdesk.outbound.client import is_media_type

MAX_MESSAGES = 10_000
MAX_NEW_MESSAGES = 100
MAX_TOOLS = 128
MAX_CONTEXT_ENTRIES = 100
MAX_ANSWERS = 100
MAX_THREAD_ID_LENGTH = 128
MAX_TOOL_NAME_LENGTH = 128
MAX_MESSAGE_ID_LENGTH = 256

TEXT_DIGEST = "agui_text"
"""The property of a stored message with a digest of its text as the client has sent it. A hook may change the text."""
CONTEXT_DIGEST = "agui_context"
"""The property of the message with the context of the application."""

_decoder = msgspec.json.Decoder(RunInput)
_KINDS: Mapping[type[MediaPart], str] = {
    ImagePart: "image/*",
    AudioPart: "audio/*",
    VideoPart: "video/*",
    DocumentPart: "application/octet-stream",
}
_FORM = "The payload of an approval must be true, false, or an object with `approved` and perhaps `reason`."


def decode(raw: bytes, max_values: int = MAX_VALUES) -> RunInput:
    """Decode a body within all limits on numbers."""
    body = decode_as(_decoder, raw, max_values)
    _check_thread(body.thread_id)
    plain_id(body.run_id, "runId")
    _check_count(body.messages, MAX_MESSAGES, "messages")
    _check_count(body.tools or (), MAX_TOOLS, "tools")
    _check_count(body.context or (), MAX_CONTEXT_ENTRIES, "context")
    _check_count(body.resume or (), MAX_ANSWERS, "resume")
    for place, message in enumerate(body.messages):
        if not 0 < len(message.id) <= MAX_MESSAGE_ID_LENGTH:
            raise InvalidRequestError(
                f"A message id has 1 to {MAX_MESSAGE_ID_LENGTH} characters.", param=f"messages[{place}].id"
            )
    return body


def _check_thread(thread_id: str) -> None:
    if len(plain_id(thread_id, "threadId")) > MAX_THREAD_ID_LENGTH:
        raise InvalidRequestError(f"threadId has at most {MAX_THREAD_ID_LENGTH} characters.", param="threadId")


def parse_thread_id(given: str) -> str:
    """Return the id of a thread in a path."""
    _check_thread(given)
    return given


def _check_count(values: Sized, most: int, param: str) -> None:
    if len(values) > most:
        raise InvalidRequestError(f"A run can have at most {most} entries in `{param}`.", param=param)


def parse_state(body: RunInput, max_bytes: int) -> Any:
    """Return the state of the client. Return None for an empty one: the session then keeps its own."""
    if not body.state:
        return None if body.state in (None, "", {}, []) else body.state
    if len(msgspec.json.encode(body.state)) > max_bytes:
        raise BodyTooLargeError(f"The state is limited to {max_bytes} bytes.", param="state")
    return body.state


def parse_tools(body: RunInput, taken: Sequence[str]) -> tuple[ClientTool, ...]:
    """Return the frontend tools. `taken` are the names of the target's own tools."""
    own = {name.casefold() for name in taken}
    tools: dict[str, ClientTool] = {}
    for place, given in enumerate(body.tools or ()):
        where = f"tools[{place}]"
        if not 0 < len(given.name) <= MAX_TOOL_NAME_LENGTH:
            raise InvalidRequestError(f"A tool name has 1 to {MAX_TOOL_NAME_LENGTH} characters.", param=f"{where}.name")
        if given.name.casefold() in own:
            raise InvalidRequestError(
                f"The agent has its own tool named {given.name!r}. Rename the frontend tool.",
                param=f"{where}.name",
                code="tool_name_taken",
            )
        if given.name in tools:
            raise InvalidRequestError(f"Duplicate tool name: {given.name!r}.", param=f"{where}.name")
        require_schema(given.parameters or {}, f"{where}.parameters")
        tools[given.name] = ClientTool(
            name=given.name, description=given.description, parameters=given.parameters or _NO_PARAMETERS
        )
    return tuple(tools.values())


_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


def get_text(content: Text) -> str:
    """Return the text of a message without its files."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content if isinstance(part, TextPart))


def to_message(given: UserMessage, place: int) -> Message:
    """Return a message of the user under the client's id."""
    where = f"messages[{place}].content"
    if isinstance(given.content, str):
        contents = [Content.from_text(given.content)]
    elif given.content:
        contents = [_content(part, f"{where}[{number}]") for number, part in enumerate(given.content)]
    else:
        raise InvalidRequestError("The message is empty.", param=where)
    properties = {TEXT_DIGEST: text_digest(given.content)}
    return Message("user", contents, message_id=given.id, additional_properties=properties)


def text_digest(content: Text) -> str:
    return hashlib.sha256(get_text(content).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def to_output(given: ToolMessage, place: int) -> str:
    """Return the result of a frontend tool."""
    content = given.content
    if isinstance(content, list) and not all(isinstance(part, TextPart) for part in content):
        raise InvalidRequestError("The result of a frontend tool must be text.", param=f"messages[{place}].content")
    return get_text(content) or given.error or ""


def to_context(body: RunInput, known: Sequence[Any]) -> Message | None:
    """Return the context of the application as a marked message of the user's side, or None if it has not changed.

    `known` are the messages of the session. System and developer messages of a client are context too: they come from
    the browser, so they must not instruct the agent.
    """
    entries = [*(body.context or ()), *_instructions(body.messages)]
    if not entries:
        return None
    lines = [f"- {entry.description}: {entry.value}" if entry.description else f"- {entry.value}" for entry in entries]
    text = "\n".join(("Context from the application:", *lines))
    mark = digest(text)[:16]
    for message in reversed(known):
        if (last := message.additional_properties.get(CONTEXT_DIGEST)) is not None:
            if last == mark:
                return None
            break
    return Message("user", [text], additional_properties={CONTEXT_DIGEST: mark})


def _instructions(messages: Sequence[InputMessage]) -> list[ContextEntry]:
    given = (message for message in messages if isinstance(message, (SystemMessage, DeveloperMessage)))
    return [ContextEntry(description="", value=text) for message in given if (text := get_text(message.content))]


def _content(part: Part, where: str) -> Content:
    if isinstance(part, TextPart):
        return Content.from_text(part.text)
    if isinstance(part, BinaryPart):
        return _binary(part, where)
    source = part.source
    if isinstance(source, FileSource):
        raise _no_handles(where)
    if isinstance(source, DataSource):
        return _data(source.value, source.mime_type, None, where)
    return _url(source, _KINDS[type(part)], where)


def _binary(part: BinaryPart, where: str) -> Content:
    if part.data is not None:
        return _data(part.data, part.mime_type, part.filename, where)
    if part.url is None:
        raise _no_handles(where)
    return _url(UrlSource(value=part.url, mime_type=part.mime_type), part.mime_type, where)


def _no_handles(where: str) -> InvalidRequestError:
    # They would open every file of the operator's account at the provider.
    return InvalidRequestError("File handles are not accepted. Send the data or a URL.", param=where)


def _data(value: str, media_type: str, name: str | None, where: str) -> Content:
    if not is_media_type(media_type):
        raise InvalidRequestError("Invalid media type.", param=f"{where}.source.mimeType")
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequestError("Invalid base64.", param=f"{where}.source.value") from None
    properties = None if name is None else {"filename": name}
    uri = f"data:{media_type};base64,{value}"
    return Content.from_uri(uri, media_type=media_type, additional_properties=properties)


def _url(source: UrlSource, kind: str, where: str) -> Content:
    if not source.value.startswith(("https://", "http://")):
        raise InvalidRequestError("A URL must begin with https:// or http://.", param=f"{where}.source.value")
    media_type = source.mime_type or mimetypes.guess_type(urlsplit(source.value).path)[0] or kind
    if media_type != kind and not is_media_type(media_type):
        raise InvalidRequestError("Invalid media type.", param=f"{where}.source.mimeType")
    return Content.from_uri(source.value, media_type=media_type)


def to_answer(entry: ResumeEntry, where: str) -> ApprovalAnswer:
    """Return the answer to an approval."""
    payload = entry.payload
    if entry.status == "cancelled":
        return ApprovalAnswer(approval_id=entry.interrupt_id, approved=False)
    if isinstance(payload, bool):
        return ApprovalAnswer(approval_id=entry.interrupt_id, approved=payload)
    given = cast("dict[str, Any]", payload) if isinstance(payload, dict) else {}
    approved, reason = given.get("approved"), given.get("reason")
    if not isinstance(approved, bool) or not isinstance(reason, str | None) or given.keys() - {"approved", "reason"}:
        raise InvalidRequestError(_FORM, param=f"{where}.payload")
    return ApprovalAnswer(approval_id=entry.interrupt_id, approved=approved, reason=reason)


def request_digest(body: RunInput) -> str:
    """Return a hash of what a run is asked: its thread, its messages by people and tools, and its answers.

    A client that repeats a request may have received a part of the answer, so other fields may differ.
    """
    asked = [message for message in body.messages if isinstance(message, (UserMessage, ToolMessage))]
    text = msgspec.json.encode([body.thread_id, asked, body.resume], order="sorted")
    return hashlib.sha256(text).hexdigest()
