"""How much is done in one step of the event loop: counted in calls, because seconds depend on the machine."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Steps:
    """The calls of the longest step; everybody else waits for as long."""

    def __init__(self) -> None:
        self.longest = 0
        self._now = 0

    def _count_call(self, _frame: Any, event: str, _argument: Any) -> None:
        if event in ("call", "c_call"):
            self._now += 1

    def end_step(self) -> None:
        self.longest = max(self.longest, self._now)
        self._now = 0


@contextmanager
def count_steps() -> Iterator[Steps]:
    """Counts the calls of each step of the loop that runs in this thread; other threads are not counted."""
    steps = Steps()
    run = asyncio.events.Handle._run

    def counted(handle: asyncio.Handle) -> None:
        steps.end_step()
        run(handle)
        steps.end_step()

    before = sys.getprofile()
    asyncio.events.Handle._run = counted  # type: ignore[method-assign]
    sys.setprofile(steps._count_call)
    try:
        yield steps
    finally:
        sys.setprofile(before)
        asyncio.events.Handle._run = run  # type: ignore[method-assign]
