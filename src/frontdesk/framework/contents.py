"""Reads and creates contents of the agent framework. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
from agent_framework import AgentResponseUpdate, Content, Message
from agent_framework.exceptions import ContentError

from frontdesk.display.escaping import display_arguments, escape_line
from frontdesk.errors import InvalidRequestError
from frontdesk.framework.outputs import read_output
from frontdesk.framework.types import is_event

_KIND = "model_output_kind"
_REASONING = "reasoning_text"


def refusal(text: str) -> Content:
    """Create the text content of a model's refusal."""
    return Content.from_text(text, additional_properties={"core": {_KIND: "refusal"}})


def is_refusal(properties: Mapping[str, Any]) -> bool:
    core: Any = properties.get("core")
    kind: Any = cast("Mapping[str, Any]", core).get(_KIND) if isinstance(core, Mapping) else None
    return (properties.get(_KIND) if kind is None else kind) == "refusal"


def create_reasoning(text: str, item_id: str | None) -> Content:
    """Create a content with the complete reasoning of a model."""
    return Content.from_text_reasoning(id=item_id, text=text, additional_properties={_REASONING: text})


def is_reasoning_text(content: Content) -> bool:
    """Return True if a reasoning content is the text itself and not a summary."""
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
    """Return the arguments of a tool call as (possibly partial) JSON. Empty if there are none."""
    given: Any = call.arguments
    if given is None and call.type == "code_interpreter_tool_call" and call.inputs:
        given = {"code": "".join(content.text or "" for content in call.inputs)}
    elif given is None and call.type == "shell_tool_call" and call.commands:
        given = {"commands": call.commands}
    elif given is None and call.type == "computer_tool_call" and call.actions:
        given = {"actions": call.actions}
    return given if isinstance(given, str) else "" if given is None else as_json(given)


def call_outcome(result: Content) -> str:
    """Return the result of a tool call as text."""
    for value in (result.result, result.output, result.outputs, result.items, result.screenshot):
        if value is not None:
            return value if isinstance(value, str) else as_json(value)
    return ""


def get_asked_call(request: Content) -> tuple[str, str]:
    """Return the name and the raw arguments of the call of an approval request."""
    call = request.function_call
    return ("", "{}") if call is None else (call.name or "", call_arguments(call) or "{}")


def display_call(request: Content) -> tuple[str, str]:
    """Return the name and the displayed arguments of the call of an approval request."""
    name, arguments = get_asked_call(request)
    return escape_line(name), display_arguments(arguments)


def join_call(call: Content, piece: Content) -> Content:
    """Append a fragment to a call. A fragment that does not fit is ignored."""
    if call.type not in ("function_call", "code_interpreter_tool_call"):
        return piece
    try:
        return call + piece
    except (ContentError, TypeError):
        return call


def file_name(content: Content) -> str:
    given: Any = content.additional_properties.get("filename") or content.name
    return given if isinstance(given, str) else ""


def as_json(value: Any) -> str:
    """Encode any value as JSON. A value without a JSON form becomes a string."""
    return msgspec.json.encode(value, enc_hook=_encodable).decode()


def _encodable(value: Any) -> Any:
    return value.to_dict() if isinstance(value, Content) else str(value)


def as_messages(value: Any) -> list[Message] | None:
    """Return the input as messages, or None for other input, such as a workflow's typed input."""
    if isinstance(value, str):
        return [build_said(value)]
    if isinstance(value, Message):
        return [value]
    if isinstance(value, Content):
        return [Message("user", [value])]
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        many = cast(Sequence[Any], value)
        # One level only: an input may be nested deeper than the stack is.
        if many and all(isinstance(part, (str, Message, Content)) for part in many):
            return [message for part in many for message in as_messages(part) or ()]
    return None


def require_messages(messages: Sequence[Message]) -> None:
    """Reject an input without messages: an agent needs at least one."""
    if not messages:
        raise InvalidRequestError("The input must be a string or a list of messages.", param="input")


RUN_ID = "hosting_run_id"
"""The property by which the first messages of a run name it. The answers that follow them belong to it too."""


def stamp(
    message: Message, hosting: Mapping[str, Any], message_id: str | None = None, run_id: str | None = None
) -> Message:
    """Return a copy with origin metadata. The contents are shared with the original."""
    fields = message.__dict__.copy()
    fields["additional_properties"] = {**message.additional_properties, "hosting": hosting}
    if run_id is not None:
        fields["additional_properties"][RUN_ID] = run_id
    if message_id is not None:
        fields["message_id"] = message.message_id or message_id
    copied = _new(type(message))
    copied.__dict__ = fields
    return copied


_new = object.__new__
_TEXT = Content.from_text("")


def build_said(
    text: str, hosting: Mapping[str, Any] | None = None, message_id: str | None = None, run_id: str | None = None
) -> Message:
    """Build a user message from plain text, with origin metadata if given.

    Most messages are plain text, and the framework's constructors cost ten times as much as a copy of their work.
    """
    # A dictionary copied whole is a block of memory; one filled key by key costs four times as much.
    fields = _TEXT.__dict__.copy()
    fields["text"] = text
    fields["additional_properties"] = {}
    content = _new(Content)
    content.__dict__ = fields
    # Of a few fields, set in the order in which the framework sets them, it is the other way round.
    message = _new(Message)
    message.role = "user"
    message.contents = [content]
    message.author_name = None
    message.message_id = message_id
    if run_id is not None:
        message.additional_properties = {"hosting": hosting, RUN_ID: run_id}
    else:
        message.additional_properties = {} if hosting is None else {"hosting": hosting}
    message.raw_representation = None
    return message


_BETWEEN = "\n\n"


class LiveText:
    """The assistant's text received so far. Messages are separated by an empty line."""

    def __init__(self) -> None:
        self.text = ""
        self._source: object = None

    def add(self, update: Any) -> bool:
        """Add an update. Return True if it contained text."""
        source, piece = _piece(update)
        if not piece:
            return False
        if self.text and source != self._source:
            self.text += _BETWEEN
        self._source = source
        self.text += piece
        return True


def _piece(update: Any, executor: str | None = None) -> tuple[object, str]:
    """Return the message that an update belongs to, and its displayable text, which may be empty."""
    if is_event(update):
        return _piece(update.data, update.executor_id) if update.type == "output" else (None, "")
    if isinstance(update, str):
        return executor, update
    if not isinstance(update, AgentResponseUpdate):
        return (executor, None), _text_of_output(update)
    if update.role not in (None, "assistant"):
        return None, ""
    text = "".join(content.text or "" for content in update.contents if content.type == "text")
    return (executor, update.message_id), text


def _text_of_output(output: Any) -> str:
    messages = [message for message in read_output(output) or () if message.role == "assistant"]
    texts = (
        "".join(content.text or "" for content in message.contents if content.type == "text") for message in messages
    )
    return _BETWEEN.join(filter(None, texts))


def transcript(messages: Iterable[Message]) -> str:
    """Return the messages as text: one paragraph each, prefixed with the role."""
    paragraphs = ((message.role, "\n".join(filter(None, map(_text, message.contents)))) for message in messages)
    return "\n\n".join(f"{role}: {text}" for role, text in paragraphs if text)


def _text(content: Content) -> str:
    if content.type == "text":
        return content.text or ""
    if content.type == "function_call":
        return f"[calls {content.name} with {call_arguments(content)}]"
    if content.type == "function_result":
        return f"[result: {call_outcome(content)}]"
    if content.type in ("data", "uri"):
        return f"[{content.media_type or 'a file'}]"
    return ""
