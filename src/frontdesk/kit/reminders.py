"""Timers of one length, looked after together.

A timer of the event loop's own costs more than parsing a small request, and nearly all of them are cancelled before
their time. Since all timers here are of the same length, they come due in the order in which they were set: a queue
and one loop timer serve them all, and setting or cancelling one costs next to nothing.
"""

import asyncio
from collections import deque
from collections.abc import Callable


class Reminder:
    """One timer; cancelled by taking away what it calls."""

    __slots__ = ("call", "due")

    def __init__(self, due: float, call: Callable[[], object]) -> None:
        self.due = due
        self.call: Callable[[], object] | None = call

    def cancel(self) -> None:
        """It will call nothing."""
        self.call = None


class Reminders:
    """All timers of one length."""

    __slots__ = ("_delay", "_loop", "_queue")

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: deque[Reminder] = deque()

    def set(self, call: Callable[[], object]) -> Reminder:
        """Calls a function after the delay, give or take a tenth of it, unless it is cancelled."""
        loop = asyncio.get_running_loop()
        reminder = Reminder(loop.time() + self._delay, call)
        if self._loop is not loop:
            self._queue.clear()
            self._loop = loop
        if not self._queue:
            loop.call_later(self._delay, self._look, loop)
        self._queue.append(reminder)
        return reminder

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not loop:
            return
        queue, now = self._queue, loop.time()
        try:
            while queue and (queue[0].due <= now or queue[0].call is None):
                call = queue.popleft().call
                if call is not None:
                    call()
        finally:
            if queue:
                loop.call_later(max(queue[0].due - now, self._delay / 10), self._look, loop)
