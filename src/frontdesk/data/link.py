"""Ties between a person's identities."""

from collections.abc import Mapping
from typing import Any

from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.noun import Noun


class LinkChallenge(Noun, frozen=True, kw_only=True):
    """What a person has to do to prove that two identities are theirs."""

    challenge_id: str
    identity: ChannelIdentity
    """Who asked, and who alone may go on with it."""
    instructions: str
    """What to do, in words for the person; to be shown in a direct chat only."""
    url: str | None = None
    """Where to go, if the proof is made in a browser."""
    code: str | None = None
    """What to enter elsewhere, if the proof is a code."""
    expires_at: float

    def __repr__(self) -> str:
        # Whoever reads a log must not be able to go on with it.
        return f"LinkChallenge(identity={self.identity!r}, expires_at={self.expires_at!r})"


class LinkProof(Noun, frozen=True, kw_only=True):
    """What a linker has found proved; the host makes a link of it."""

    grant_id: str | None = None
    """The proof that was begun; it is used up in the transaction that links. A verified claim needs none."""
    linker: str
    identity: ChannelIdentity
    survivor: ChannelIdentity | None = None
    """Whose memory goes on; without, that of whoever was linked first with the same subject, or the identity's own."""
    subject: str | None = None
    """Who the person was proved to be, such as the issuer and subject of a token."""
    claims: Mapping[str, Any] = {}


class LinkRecord(Noun, frozen=True, kw_only=True):
    """An identity that was proved to belong to a person, whose isolation key it has from then on."""

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
    """The link of the identity to which this one was linked; when that one goes, so does this one."""


class Whoami(Noun, frozen=True, kw_only=True):
    """What a person may be told of themselves."""

    identity: ChannelIdentity
    linked: bool
    others: tuple[ChannelIdentity, ...] = ()
    """The other identities that were linked with this one."""


class Grant(Noun, frozen=True, kw_only=True):
    """A proof that was begun: what its completion must match. It is used once, and ends by itself."""

    grant_id: str
    identity: ChannelIdentity
    expires_at: float
    data: Mapping[str, Any] = {}
    begun_at: float | None = None
    """When it was kept first; the host writes it."""

    def lasts(self, now: float) -> bool:
        """Tell whether it can be used: until it ends, and never in more than twice the time that it was made for.

        A clock that was set back makes it end later. By more than its own time, and nobody can say any more whether it
        should have ended.
        """
        if self.begun_at is not None and self.begun_at - now > self.expires_at - self.begun_at:
            return False
        return now < self.expires_at
