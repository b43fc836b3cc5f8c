"""How long what is kept is kept."""

from frontdesk.data.noun import Value

_HOUR = 3600.0
_DAY = 24 * _HOUR
YEAR = 365 * _DAY
"""After which a conversation that nobody has come back to is dropped, unless the operator says otherwise."""
_LOOKS = 4
"""How often it is noted at least that a person was seen, in the time after which they would be forgotten."""


class Expiry(Value, frozen=True, kw_only=True):
    """Seconds after which a record of each kind may be dropped; `None` keeps it for good."""

    continuations: float | None = _DAY
    """Background runs and their events, after their end."""
    runs: float | None = 30 * _DAY
    """All other runs, after their end. What a run has said stays in its session."""
    grants: float | None = _HOUR / 4
    """Proofs of identity that were begun and not completed; less, if they say so themselves."""
    last_seen: float | None = 30 * _DAY
    approvals: float | None = 30 * _DAY
    """Questions that were answered."""
    pending_approvals: float | None = YEAR
    """Questions that nobody has answered, after the last turn of their session, which they keep until then."""
    inbox: float | None = 7 * _DAY
    """Events that are done, kept so that a platform's retry is not run again."""
    deliveries: float | None = 30 * _DAY
    """Deliveries that came to an end."""
    tasks: float | None = _DAY
    """Tasks that came to an end."""
    sessions: float | None = YEAR
    """Sessions with their history, approvals and checkpoints, after the last turn."""
    conversations: float | None = YEAR
    """Conversations that callers made, with their items, after the last change."""
    identities: float | None = YEAR
    """Identities of people who were not seen since, whose links never changed, and of whom nothing else is left."""
    set_aside: float | None = YEAR
    """Records that could not be read, after they were put aside."""

    @property
    def seen_every(self) -> float | None:
        """Return after how long it is noted again that a person was seen; `None` if nobody is ever forgotten."""
        return None if self.identities is None else min(_DAY, self.identities / _LOOKS)

    @property
    def identities_kept(self) -> float | None:
        """Return how long ago it must have been noted that a person was seen; `None` if nobody is ever forgotten.

        No index knows the runs of a person, so that they are kept for as long as any run of theirs can be there. What
        was noted may be older than when they were last here, by the time between two notes and by that for which a
        process keeps what it has read.
        """
        every, others = self.seen_every, (self.identities, self.runs, self.continuations)
        if every is None or None in others:
            return None
        return max(one for one in others if one is not None) + 2 * every
