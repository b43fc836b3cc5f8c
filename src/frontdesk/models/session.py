"""Stored sessions, their names, forks, checkpoints and leases."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from frontdesk.models.base import FrozenStruct, StoredRecord

MAX_TITLE_LENGTH = 100
"""The most characters that the title of a session may have."""


class SessionName(StoredRecord, frozen=True, kw_only=True):
    """The typed name of a session. No name from a request can equal one that the host created."""

    owner: str
    kind: Literal["named", "tracked"]
    """`named` by a caller, or `tracked` by the host as the person's current one."""
    value: str = ""
    channel: str = ""
    conversation_id: str = ""


class ForkPoint(StoredRecord, frozen=True, kw_only=True):
    """The point at which a branch left its parent. They share the parent's first `messages` messages."""

    session_id: str
    messages: int


class ClientCall(StoredRecord, frozen=True, kw_only=True):
    """A pending call of a client function."""

    call_id: str
    name: str
    root_run_id: str | None = None
    """The chain of the run that made it. None in records of earlier versions."""


class CheckpointRef(StoredRecord, frozen=True, kw_only=True):
    """A workflow checkpoint and the session that saved it. A branch starts from one of its parent's."""

    session_id: str
    checkpoint_id: str


class SessionRecord(StoredRecord, frozen=True, kw_only=True):
    """A session in its stored form."""

    session_id: str
    owner: str
    key: str
    """The caller's name for it."""
    created_at: float
    updated_at: float
    turns: int = 0
    messages: int = 0
    """The number of messages in its history, those shared with its parent included."""
    state: Mapping[str, Any] = {}
    """The framework's `AgentSession.to_dict()`, without history."""
    parent: ForkPoint | None = None
    client_calls: tuple[ClientCall, ...] = ()
    """The calls that the last turn has handed out to the client."""
    checkpoint: CheckpointRef | None = None
    """The last checkpoint of the session's workflow; the next turn continues from it."""
    openai_conversation_id: str | None = msgspec.field(default=None, name="conversation_id")
    """The conversation of the OpenAI APIs whose session it is: its turns are items of the conversation too."""
    ignored: int = msgspec.field(default=0, name="unheard")
    """The number of first messages that no longer count; if all, the items of the conversation are the history."""

    shared_state: str | None = None
    """The state shared with the client, as JSON."""

    def count_ignored(self, messages: int) -> int:
        """Return `ignored` for a branch after that many messages. A branch from before the change ignores none."""
        return self.ignored if messages > self.ignored else 0


class SessionSummary(FrozenStruct, frozen=True, kw_only=True):
    """A session in a list, as visible to its owner."""

    session_id: str
    created_at: float
    updated_at: float
    messages: int
    is_current: bool
    """Whether the next message continues it."""
    title: str | None = None
    """The title that it was given."""
    first_words: str = ""
    """The beginning of its first message; only of a session without a title."""


class Lease(StoredRecord, frozen=True, kw_only=True):
    """The right to write one session, until a newer lease is granted."""

    session_id: str
    fence: int
