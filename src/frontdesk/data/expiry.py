"""How long what is kept is kept."""

from frontdesk.data.noun import Value

_HOUR = 3600.0
_DAY = 24 * _HOUR


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
    """Questions that were answered; one that waits stays."""
    inbox: float | None = 7 * _DAY
    """Events that are done, kept so that a platform's retry is not run again."""
    deliveries: float | None = 30 * _DAY
    """Deliveries that came to an end."""
    tasks: float | None = _DAY
    """Tasks that came to an end."""
    sessions: float | None = None
    """Sessions and their history, after the last turn."""
