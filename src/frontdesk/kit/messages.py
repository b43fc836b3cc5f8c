"""Framework messages: made from input, and stamped with where they came from."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent_framework import Content, Message

from frontdesk.errors import InvalidRequestError


def as_messages(value: Any) -> list[Message] | None:
    """The input as messages; `None` if it is something else, such as a workflow's typed input."""
    if isinstance(value, str):
        return [Message("user", [value])]
    if isinstance(value, Message):
        return [value]
    if isinstance(value, Content):
        return [Message("user", [value])]
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        many = [as_messages(one) for one in cast(Sequence[Any], value)]
        return [one for some in many if some is not None for one in some] if many and None not in many else None
    return None


def need_messages(messages: Sequence[Message]) -> None:
    """A target that talks needs something said to it."""
    if not messages:
        raise InvalidRequestError("The input must be a text or a list of messages.", param="input")


def stamped(message: Message, hosting: Mapping[str, Any], message_id: str | None = None) -> Message:
    """A copy that says where it came from; the contents are shared with the original."""
    copy = object.__new__(type(message))
    fields = dict(message.__dict__)
    fields["additional_properties"] = {**message.additional_properties, "hosting": hosting}
    if message_id is not None and message.message_id is None:
        fields["message_id"] = message_id
    copy.__dict__.update(fields)
    return copy
