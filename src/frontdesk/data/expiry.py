"""The lifetimes of stored records."""

from frontdesk.data.noun import Value

_HOUR = 3600.0
_DAY = 24 * _HOUR
YEAR = 365 * _DAY
"""The default lifetime of a conversation after its last turn."""
_NOTES_PER_LIFETIME = 4
"""The least number of times that a person's presence is recorded within the lifetime of an identity."""


class Expiry(Value, frozen=True, kw_only=True):
    """Seconds after which a record of each kind may be dropped; `None` keeps it for good."""

    continuations: float | None = _DAY
    """Background runs and their events, after their end."""
    runs: float | None = 30 * _DAY
    """All other runs, after their end. Their messages stay in their sessions."""
    grants: float | None = _HOUR / 4
    """Proofs of identity that were begun and not completed; a proof may have a shorter time of its own."""
    last_seen: float | None = 30 * _DAY
    approvals: float | None = 30 * _DAY
    """Questions that were answered."""
    audit: float | None = YEAR
    """Lines of the audit log."""
    pending_approvals: float | None = YEAR
    """Questions without an answer, after the last turn of their session, which is kept as long."""
    inbox: float | None = 7 * _DAY
    """Finished events, kept so that a platform's retry is not run again."""
    deliveries: float | None = 30 * _DAY
    """Deliveries that have ended."""
    tasks: float | None = _DAY
    """Tasks that have ended."""
    sessions: float | None = YEAR
    """Sessions with their history, approvals and checkpoints, after the last turn."""
    conversations: float | None = YEAR
    """Conversations that callers made, with their items, after the last change."""
    identities: float | None = YEAR
    """Identities of people who were not seen since, whose links never changed, and who have no other records."""
    files: float | None = _DAY
    """Files that no record uses any more, after they were last used."""
    set_aside: float | None = YEAR
    """Records that could not be read, after they were set aside."""

    @property
    def seen_every(self) -> float | None:
        """Return the seconds after which a person's presence is recorded again; `None` if identities do not expire."""
        return None if self.identities is None else min(_DAY, self.identities / _NOTES_PER_LIFETIME)

    @property
    def identities_kept(self) -> float | None:
        """Return the seconds since a person's recorded presence after which they expire; `None` if they do not.

        There is no index of a person's runs, so identities are kept for as long as any run of theirs can exist. The
        recorded presence may be older than the real one, by the time between two records and by the time for which a
        process caches what it has read.
        """
        every, others = self.seen_every, (self.identities, self.runs, self.continuations)
        if every is None or None in others:
            return None
        return max(lifetime for lifetime in others if lifetime is not None) + 2 * every
