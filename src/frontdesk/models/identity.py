"""Identities, isolation keys and callers, and their reachable destinations."""

from collections.abc import Mapping
from typing import Any

from frontdesk.models.base import FrozenStruct, StoredRecord

ISOLATION_HEADER_USER = "x-agent-user-isolation-key"
ISOLATION_HEADER_CHAT = "x-agent-chat-isolation-key"


class IsolationKeys(StoredRecord, frozen=True, kw_only=True):
    """The keys that isolate the data of one person, and of one chat, from others."""

    user_key: str | None = None
    chat_key: str | None = None
    call_id: str | None = None
    """The platform's id of this request, to be sent with calls back to it."""


ANONYMOUS = "anonymous"


class ChannelIdentity(StoredRecord, frozen=True):
    """A user of one channel, never a chat or a group."""

    channel: str
    native_id: str
    attributes: Mapping[str, Any] = {}

    @property
    def key(self) -> tuple[str, str]:
        """Return the comparison key of the identity. Names and other attributes may change."""
        return (self.channel, self.native_id)


def identity_findings(given: object) -> list[str]:
    """List the errors of an identity, one line each. `ChannelIdentity` does not check its types itself."""
    if not isinstance(given, ChannelIdentity):
        return [f"expected a ChannelIdentity, got {type(given).__name__}"]
    fields: dict[str, Any] = {"channel": given.channel, "native_id": given.native_id}
    wrong = [
        f"ChannelIdentity: {name} must be a string, got {type(value).__name__} {value!r}"
        for name, value in fields.items()
        if not isinstance(value, str)
    ]
    wrong += [f"ChannelIdentity: {name} must not be empty" for name, value in fields.items() if value == ""]
    attributes: Any = given.attributes
    if not isinstance(attributes, Mapping):
        wrong.append(f"ChannelIdentity: attributes must be a mapping, got {type(attributes).__name__}")
    return wrong


class Caller(StoredRecord, frozen=True, kw_only=True):
    """The result of a channel's `verify`: the caller's identity and the proved claims."""

    identity: ChannelIdentity
    anonymous: bool = False
    claims: Mapping[str, Any] = {}
    claim_source: str | None = None
    may_name_sessions: bool = True
    """Whether the wire may choose the name of a new session (not for anonymous callers on a public address)."""
    isolation: IsolationKeys | None = None
    """The isolation keys from a trusted platform."""


class IdentityRecord(StoredRecord, frozen=True, kw_only=True):
    """The isolation key that was issued to an identity."""

    identity: ChannelIdentity
    isolation_key: str
    created_at: float
    archived: tuple[str, ...] = ()
    """The keys that the identity had before it was linked, under which it can still read its own records."""
    joined: tuple[str, ...] = ()
    """The keys of a principal on other channels, from the time before an operator joined them; read as `archived`."""
    version: int = 0
    """The number of changes to the links of the identity, and of those that share its key."""


class PushGroup(StoredRecord, frozen=True, kw_only=True):
    """A group through which a person is reached, because its members share one conversation."""

    conversation_id: str
    reference: Mapping[str, Any] = {}
    """The channel's reference to the group; as `Reach.reference`."""


class Reach(FrozenStruct, frozen=True, kw_only=True):
    """The data by which a person is reached on a channel, as the channel supplied it."""

    reference: Mapping[str, Any] = {}
    """The platform's data for reaching the direct chat: a conversation reference, a service URL, a thread."""
    group: PushGroup | None = None
    """The group of their last admitted message, where groups share a conversation."""


class LastSeen(StoredRecord, frozen=True, kw_only=True):
    """The location and time of a person's last message."""

    isolation_key: str
    identity: ChannelIdentity
    conversation_id: str | None
    at: float
