"""Context variables: the turn that the present task works on, its caller, and what was cancelled with it."""

from contextvars import ContextVar

from frontdesk.abc.target import TargetTurn
from frontdesk.data.run import RunRecord

current_turn: ContextVar[TargetTurn | None] = ContextVar("frontdesk_turn", default=None)
"""The turn, for code that runs inside the target."""

current_caller: ContextVar[tuple[str, str] | None] = ContextVar("frontdesk_caller", default=None)
"""The key of the caller, so that callers share evenly what exists once; `None` for work of the host's own."""

# Called for every request: looked up once, and not each time.
set_turn = current_turn.set
set_caller = current_caller.set

incoming_trace: ContextVar[str | None] = ContextVar("frontdesk_trace", default=None)
"""The trace that a trusted platform has begun with the present request, as its header `traceparent` has it."""

cancelled_run: ContextVar[RunRecord | None] = ContextVar("frontdesk_cancelled_run", default=None)
"""The run that was cancelled together with the present task, for the code that still answers its caller."""
