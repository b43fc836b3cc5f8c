"""Framework messages: made from input, and stamped with where they came from."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent_framework import Content, Message

from frontdesk.errors import InvalidRequestError


def as_messages(value: Any) -> list[Message] | None:
    """Return the input as messages; `None` if it is something else, such as a workflow's typed input."""
    if isinstance(value, str):
        return [said(value)]
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


def need_messages(messages: Sequence[Message]) -> None:
    """Refuse an input without messages: an agent needs at least one."""
    if not messages:
        raise InvalidRequestError("The input must be a text or a list of messages.", param="input")


def stamped(message: Message, hosting: Mapping[str, Any], message_id: str | None = None) -> Message:
    """Return a copy that says where it came from; the contents are shared with the original."""
    fields = message.__dict__.copy()
    fields["additional_properties"] = {**message.additional_properties, "hosting": hosting}
    if message_id is not None:
        fields["message_id"] = message.message_id or message_id
    copied = _new(type(message))
    copied.__dict__ = fields
    return copied


_new = object.__new__
_TEXT = Content.from_text("")


def said(text: str, hosting: Mapping[str, Any] | None = None, message_id: str | None = None) -> Message:
    """Make a user's message of a plain text, stamped if there is something to stamp it with.

    Most messages are that, and the framework's constructors cost ten times as much as a copy of their work.
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
    message.additional_properties = {} if hosting is None else {"hosting": hosting}
    message.raw_representation = None
    return message
