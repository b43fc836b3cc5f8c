"""Context variables of the current task: its turn, caller, memory budget and cancellation."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Protocol

from frontdesk.interfaces.target import TargetTurn
from frontdesk.models.run import RunRecord

current_turn: ContextVar[TargetTurn | None] = ContextVar("frontdesk_turn", default=None)
"""The turn, for code that runs inside the target."""

current_caller: ContextVar[tuple[str, str] | None] = ContextVar("frontdesk_caller", default=None)
"""The key of the caller, so that callers share evenly what exists once; `None` for work of the host's own."""


class MemoryBudget(Protocol):
    """Accounts for the memory that a request uses besides its body."""

    def charge(self, size: int) -> Callable[[], None]:
        """Reserve bytes until the returned function is called. Raises `RequestError` if the budget is exceeded."""
        ...


current_memory: ContextVar[MemoryBudget | None] = ContextVar("frontdesk_memory", default=None)
"""The budget of the caller's channel; `None` for events and background runs, which wait for room instead."""

# Called for every request: looked up once, and not each time.
set_turn = current_turn.set
set_caller = current_caller.set
set_memory = current_memory.set

incoming_trace: ContextVar[str | None] = ContextVar("frontdesk_trace", default=None)
"""The trace that a trusted platform has begun with the present request, as its header `traceparent` has it."""

cancelled_run: ContextVar[RunRecord | None] = ContextVar("frontdesk_cancelled_run", default=None)
"""The run that was cancelled together with the present task, for the code that still answers its caller."""
