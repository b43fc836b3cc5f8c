"""Reduces a run that can't be stored to the parts that can, so that every end is written. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent_framework import Content, Message

from frontdesk.data.codec import encode
from frontdesk.data.run import RunRecord
from frontdesk.errors import CodecError

_LONGEST_TEXT = 10_000


def salvaged(run: RunRecord) -> RunRecord:
    """Return the run without the parts that can't be stored."""
    messages: Any = run.input
    return run.replace(
        input=salvaged_messages(cast("list[Message]", messages)) if isinstance(messages, list) else None,
        metadata=_storable_fields(run.metadata),
        details=_storable_fields(run.details),
    )


def salvaged_messages(messages: Sequence[Message]) -> list[Message]:
    """Return the messages; replace one that can't be stored by the beginning of its text."""
    return [message if _is_storable(message) else _shortened(message) for message in messages]


def _shortened(message: Message) -> Message:
    text = message.text[:_LONGEST_TEXT].encode(errors="replace").decode()
    hosting = message.additional_properties.get("hosting")
    properties = {"hosting": hosting} if _is_storable(hosting) else {}
    return Message(
        str(message.role),
        [Content.from_text(text)],
        message_id=message.message_id,
        additional_properties=properties,
    )


def _storable_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if _is_storable(value)}


def _is_storable(value: Any) -> bool:
    try:
        encode(value)
    except CodecError:
        return False
    return True
