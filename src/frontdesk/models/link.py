"""Links between a person's identities."""

from collections.abc import Mapping
from typing import Any, Literal

from frontdesk.models.base import FrozenStruct, StoredRecord
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import ChannelIdentity


class LinkChallenge(StoredRecord, frozen=True, kw_only=True):
    """The steps by which a person proves that two identities are theirs."""

    challenge_id: str
    identity: ChannelIdentity
    """The identity that asked; no other may complete it."""
    instructions: str
    """Instructions for the person; to be shown in a direct chat only."""
    url: str | None = None
    """The address to open, if the proof is made in a browser."""
    code: str | None = None
    """The code to enter elsewhere, if the proof is a code."""
    expires_at: float

    def __repr__(self) -> str:
        # A reader of the log must not be able to complete it.
        return f"LinkChallenge(identity={self.identity!r}, expires_at={self.expires_at!r})"


class LinkProof(StoredRecord, frozen=True, kw_only=True):
    """A proof that a linker has accepted. The host makes a link of it."""

    grant_id: str | None = None
    """The grant of the proof; it is used up in the transaction that links. A verified claim needs none."""
    linker: str
    identity: ChannelIdentity
    survivor: ChannelIdentity | None = None
    """The identity whose key is kept; without one, the first that was linked with the same subject, or `identity`."""
    subject: str | None = None
    """The proved name of the person, such as the issuer and subject of a token."""
    claims: Mapping[str, Any] = {}


class LinkRecord(StoredRecord, frozen=True, kw_only=True):
    """An identity proved to belong to a person. It has that person's isolation key from then on."""

    link_id: str
    isolation_key: str
    identity: ChannelIdentity
    linked_at: float
    linker: str
    subject: str | None = None
    claims: Mapping[str, Any] = {}
    previous_key: str | None = None
    """The key that the identity had before, and gets back when it is unlinked; none if the shared key was its own."""
    via: str | None = None
    """The link of the identity to which this one was linked; this one ends with it."""


class Whoami(StoredRecord, frozen=True, kw_only=True):
    """A person's account, as visible to that person."""

    identity: ChannelIdentity
    linked: bool
    others: tuple[ChannelIdentity, ...] = ()
    """The other identities that were linked with this one."""


class LinkQuestion(FrozenStruct, frozen=True, kw_only=True):
    """A question about a link that is unanswered, or waits for the other side."""

    challenge_id: str
    other: ChannelIdentity
    """The identity to be linked with; its name was chosen by its owner."""
    waits_for: Literal["you", "other"]
    """The side that has to confirm next; `you` can refuse in either case."""
    expires_at: float


class LinkStatus(FrozenStruct, frozen=True, kw_only=True):
    """A person's account, with everything that a page shows about it."""

    account: Whoami
    name: str | None = None
    """The name that a provider has verified, if one has."""
    way: Literal["code", "sign_in"]
    """The way in which the host links accounts."""
    question: LinkQuestion | None = None


class Grant(StoredRecord, frozen=True, kw_only=True):
    """A pending proof, with the data that its completion must match. It is used once, and expires."""

    grant_id: str
    identity: ChannelIdentity
    expires_at: float
    data: Mapping[str, Any] = {}
    begun_at: float | None = None
    """The time when it was first stored; the host sets it."""
    requests: tuple[InboxItem, ...] = ()
    """The events to process when its identity is linked."""

    def lasts(self, now: float) -> bool:
        """Return True until it expires, and never for more than twice its lifetime.

        If the clock was set back, it expires later. If the clock was set back by more than the lifetime, it is unknown
        whether the grant should have expired, and it is rejected.
        """
        if self.begun_at is not None and self.begun_at - now > self.expires_at - self.begun_at:
            return False
        return now < self.expires_at
