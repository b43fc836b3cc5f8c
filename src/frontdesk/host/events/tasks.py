"""Names the runner's tasks that work through events: one for each conversation and kind."""

from collections.abc import Mapping
from typing import Any

from frontdesk.data.delivery import EventKind, InboxItem, WaitingEvent

TASKS: Mapping[EventKind, str] = {"turn": "answer", "control": "control", "resume": "resume"}
"""The names of the tasks that work through the events of each kind."""


def task_id(kind: EventKind, channel: str, conversation_id: str) -> str:
    """Return the id under which the events of a conversation are worked through."""
    # The length keeps two conversations apart whatever is in their names.
    return f"{TASKS[kind]}:{len(channel)}:{channel}:{conversation_id}"


def task_payload(event: InboxItem | WaitingEvent) -> Mapping[str, Any]:
    """Return what the task of an event's conversation is called with."""
    return {"channel": event.channel, "conversation_id": event.conversation_id}
