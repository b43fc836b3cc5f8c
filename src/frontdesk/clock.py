"""The only place that knows what time it is."""

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time, and how much of it has passed.

    The time of day is what is written down and shown, and somebody can set it. How long something takes or waits in
    this process is the difference of two steady readings.
    """

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def steady(self) -> float:
        """Return the seconds since some moment, which no setting of the clock changes; each process has its own."""
        ...


class SystemClock:
    """The machine's own clock."""

    __slots__ = ()

    def now(self) -> float:
        return time.time()

    def steady(self) -> float:
        return time.monotonic()
