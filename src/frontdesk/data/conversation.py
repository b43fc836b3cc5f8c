"""Conversations that a caller made and named, apart from any run."""

from collections.abc import Mapping
from typing import Any

from frontdesk.data.noun import Noun


class Conversation(Noun, frozen=True, kw_only=True):
    """A conversation that a caller made."""

    conversation_id: str
    owner: str
    created_at: float
    metadata: Mapping[str, Any] = {}
    session_id: str = ""
    """The session in which its turns run."""


class ConversationItem(Noun, frozen=True, kw_only=True):
    """One item of a conversation, in the channel's own format."""

    item_id: str
    conversation_id: str
    created_at: float
    body: Mapping[str, Any]
    number: int = 0
    """The order within the conversation, given by the store."""
