"""Identities and callers."""

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
        """Return the key by which identities are compared: names and other attributes may change."""
        return (self.channel, self.native_id)


class Caller(Noun, frozen=True, kw_only=True):
    """The result of a channel's `verify`: the identity of the caller, and the claims that were proved."""

    identity: ChannelIdentity
    anonymous: bool = False
    claims: Mapping[str, Any] = {}
    claim_source: str | None = None
    may_name_sessions: bool = True
    """Whether the wire may choose the name of a new session (not for anonymous callers on a public address)."""
    isolation: IsolationKeys | None = None
    """The isolation keys from a trusted platform."""


class IdentityRecord(Noun, frozen=True, kw_only=True):
    """The isolation key that was issued to an identity."""

    identity: ChannelIdentity
    isolation_key: str
    created_at: float
    archived: tuple[str, ...] = ()
    """The keys that the identity had before it was linked, under which it can still read its own records."""
    version: int = 0
    """The number of changes to the links of the identity, and of those that share its key."""


class PushGroup(Noun, frozen=True, kw_only=True):
    """A group in which a person is reached, because its members share one conversation."""

    conversation_id: str
    reference: Mapping[str, Any] = {}
    """The channel's reference to the group; as `Reach.reference`."""


class Reach(Value, frozen=True, kw_only=True):
    """The data by which a person is reached on a channel, as the channel has given it."""

    reference: Mapping[str, Any] = {}
    """The platform's data for reaching the direct chat: a conversation reference, a service URL, a thread."""
    group: PushGroup | None = None
    """The group of their last admitted message, where groups share a conversation."""


class LastSeen(Noun, frozen=True, kw_only=True):
    """The place and time of a person's last message."""

    isolation_key: str
    identity: ChannelIdentity
    conversation_id: str | None
    at: float
