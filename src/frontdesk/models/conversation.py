"""Conversations of callers, their items, aliases and transcripts."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from frontdesk.models.base import FrozenStruct, StoredRecord


class Conversation(StoredRecord, frozen=True, kw_only=True):
    """A conversation created by a caller."""

    conversation_id: str
    owner: str
    created_at: float
    metadata: Mapping[str, Any] = {}
    session_id: str = ""
    """The session in which its turns run."""


class ConversationItem(StoredRecord, frozen=True, kw_only=True):
    """One item of a conversation, in the channel's own format."""

    item_id: str
    conversation_id: str
    created_at: float
    body: Mapping[str, Any]
    number: int = 0
    """The order within the conversation, given by the store."""


class ConversationAlias(FrozenStruct, frozen=True, kw_only=True):
    name: str
    first_name: str
    """The name by which the host knows the conversation: its sessions, events and deliveries."""
    current_name: str
    """The name by which the platform knows it now."""
    next_name: str | None = None
    """The name that followed this one; none, if it is the current one."""


class AliasMerge(FrozenStruct, frozen=True, kw_only=True):
    """The change that an alias makes: all names of two conversations become names of one."""

    old: str
    new: str
    first_name: str
    current_name: str
    merged_first_name: str
    """The first name of what the new name stood for."""


def merge_aliases(
    old: str, new: str, known_old: ConversationAlias | None, known_new: ConversationAlias | None
) -> AliasMerge | None:
    """Return the change for a conversation's new name, or `None` if the name is known.

    Raise `ValueError` if a conversation would return to an earlier name, or get two successors.
    """
    if known_old is not None and known_old.next_name == new:
        return None
    if known_old is not None and known_old.next_name is not None:
        raise ValueError("the conversation already has another alias")
    first = old if known_old is None else known_old.first_name
    merged = new if known_new is None else known_new.first_name
    if first == merged:
        raise ValueError("the new name is an earlier name of the conversation")
    current = new if known_new is None else known_new.current_name
    return AliasMerge(old=old, new=new, first_name=first, current_name=current, merged_first_name=merged)


class HistoryPage(FrozenStruct, frozen=True, kw_only=True):
    """Consecutive messages of a session, in their stored form."""

    messages: Sequence[Any] = ()
    before: int | None = None
    """The position before which the page before this one ends; `None` if the session begins here."""


_MAX_TURN_MESSAGES = 20


def build_page(messages: Sequence[Any], before: int | None, limit: int) -> HistoryPage:
    """Return the last turns before a position, from a complete history. Each turn begins with a question."""
    end = len(messages) if before is None else max(0, min(before, len(messages)))
    start, turns = end, 0
    while start > 0 and turns < limit and end - start < limit * _MAX_TURN_MESSAGES:
        start -= 1
        turns += messages[start].role == "user"
    return HistoryPage(messages=messages[start:end], before=start or None)


_ANSWER_ID = re.compile(r"msg_(.+)_([0-9]+)", re.DOTALL)


def answer_message_id(run_id: str, number: int) -> str:
    """Return the id of a message of an answer, by its position among the messages that the run has added."""
    return f"msg_{run_id}_{number}"


def run_of_answer(message_id: str) -> str | None:
    """Return the run that a message id names, or None for the id of another message. The run may not exist."""
    found = _ANSWER_ID.fullmatch(message_id)
    return None if found is None else found[1]


class TranscriptMessage(FrozenStruct, frozen=True, kw_only=True):
    """A message of a session, with the host's metadata."""

    message: Any
    """The framework's `Message`."""
    channel: str | None
    """The channel on which was asked; `None` if nobody has noted that."""
    at: float | None
    """When it was said, or when its turn began; `None` if nothing tells that."""
    shown_on: frozenset[str]
    """The channels on which it was said, or to which it was sent."""
    message_id: str | None = None
    """The id under which channels show it: the client's own for an input, if it gave one. `PieceAssembler` uses the
    same ids. None for a message of an older version that had no id."""
    run_id: str | None = None
    """The run that it belongs to. None for a message of an older version."""


class TranscriptPage(FrozenStruct, frozen=True, kw_only=True):
    """An ordered part of a transcript."""

    messages: tuple[TranscriptMessage, ...] = ()
    before: int | None = None
    """The position with which the part before this one is asked for; `None` if the session begins here."""
