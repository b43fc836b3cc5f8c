"""Who is at the door."""

from collections.abc import Mapping
from typing import Any

from frontdesk.data.isolation import IsolationKeys
from frontdesk.data.noun import Noun, Value

ANONYMOUS = "anonymous"


class ChannelIdentity(Noun, frozen=True):
    """A user as one channel knows them; never a chat or a group."""

    channel: str
    native_id: str
    attributes: Mapping[str, Any] = {}

    @property
    def key(self) -> tuple[str, str]:
        """What makes two identities the same: names and other attributes may change."""
        return (self.channel, self.native_id)


class Caller(Noun, frozen=True, kw_only=True):
    """What a channel's `verify` found out about the wire: the identity, and the claims that were proved."""

    identity: ChannelIdentity
    anonymous: bool = False
    claims: Mapping[str, Any] = {}
    claim_source: str | None = None
    may_name_sessions: bool = True
    """Whether the wire may choose the name of a new session (not for anonymous callers on a public address)."""
    isolation: IsolationKeys | None = None
    """What a trusted platform said about whose data this is."""


class IdentityRecord(Noun, frozen=True, kw_only=True):
    """The isolation key that was issued to an identity."""

    identity: ChannelIdentity
    isolation_key: str
    created_at: float
    archived: tuple[str, ...] = ()
    """The keys that the identity had before it was linked, under which it can still read its own."""
    version: int = 0
    """How often the links of the identity, or of those who share its key, have changed."""


class PushGroup(Noun, frozen=True, kw_only=True):
    """A group in which somebody is reached, because the people in it share one conversation."""

    conversation_id: str
    reference: Mapping[str, Any] = {}
    """What the channel said of the group; as `Reach.reference`."""


class Reach(Value, frozen=True, kw_only=True):
    """How somebody is reached on a channel, as far as the channel has said."""

    reference: Mapping[str, Any] = {}
    """What the platform has to be told to reach the direct chat: a conversation reference, a service URL, a thread."""
    group: PushGroup | None = None
    """The group in which they were last accepted, where groups share a conversation."""


class LastSeen(Noun, frozen=True, kw_only=True):
    """Where and when a person was last active."""

    isolation_key: str
    identity: ChannelIdentity
    conversation_id: str | None
    at: float
