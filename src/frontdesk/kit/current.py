"""The turn that the present task works on, for code that runs inside the target."""

from contextvars import ContextVar

from frontdesk.abc.target import TargetTurn

current_turn: ContextVar[TargetTurn | None] = ContextVar("frontdesk_turn", default=None)
