"""A clock that runs, or that a test controls, with timers."""

import asyncio
from contextlib import suppress

from frontdesk.clock import SystemClock


class MovableClock:
    """The time of the platform. With `running=False` only `advance` changes it."""

    def __init__(self, *, running: bool = True, start: float | None = None) -> None:
        self._system = SystemClock()
        self._running = running
        self._steady = self._system.steady()
        self._start = self._system.now() if start is None else start
        self._ahead = 0.0
        self._moved = asyncio.Event()

    def now(self) -> float:
        """Return the time of day in seconds."""
        passed = self._system.steady() - self._steady if self._running else 0.0
        return self._start + self._ahead + passed

    def advance(self, seconds: float) -> float:
        """Advance the clock, wake its waiters, and return the new time."""
        self._ahead += seconds
        self._moved.set()
        self._moved = asyncio.Event()
        return self.now()

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for an event, at most some seconds of this clock. Return True if it was set."""
        until = self.now() + seconds
        while not event.is_set() and (left := until - self.now()) > 0:
            await _first(event, self._moved, left if self._running else None)
        return event.is_set()

    async def sleep(self, seconds: float) -> None:
        """Wait for some seconds of this clock."""
        await self.wait(asyncio.Event(), seconds)


async def _first(event: asyncio.Event, moved: asyncio.Event, seconds: float | None) -> None:
    waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(moved.wait())]
    try:
        with suppress(TimeoutError):
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
