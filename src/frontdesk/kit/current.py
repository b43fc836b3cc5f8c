"""The turn that the present task works on, for code inside the target; and the run that was cancelled with its task."""

from contextvars import ContextVar

from frontdesk.abc.target import TargetTurn
from frontdesk.data.run import RunRecord

current_turn: ContextVar[TargetTurn | None] = ContextVar("frontdesk_turn", default=None)

cancelled_run: ContextVar[RunRecord | None] = ContextVar("frontdesk_cancelled_run", default=None)
"""The run that was cancelled together with the present task, for whoever still answers for the task."""
