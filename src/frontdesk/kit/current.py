"""Context variables: the turn that the present task works on, and its caller."""

from contextvars import ContextVar

from frontdesk.abc.target import TargetTurn

current_turn: ContextVar[TargetTurn | None] = ContextVar("frontdesk_turn", default=None)
"""The turn, for code that runs inside the target."""

current_caller: ContextVar[tuple[str, str] | None] = ContextVar("frontdesk_caller", default=None)
"""The key of the caller, by which the callers share what there is only one of; `None` for work of the host's own."""
