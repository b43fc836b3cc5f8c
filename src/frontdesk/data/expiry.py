"""How long what is kept is kept."""

from frontdesk.data.noun import Value

_HOUR = 3600.0
_DAY = 24 * _HOUR
YEAR = 365 * _DAY
"""After which a conversation that nobody has come back to is dropped, unless the operator says otherwise."""


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
    set_aside: float | None = YEAR
    """Records that could not be read, after they were put aside."""
