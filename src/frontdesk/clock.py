"""The only module that reads the clock."""

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time, and how much of it has passed.

    The time of day is stored and shown, and can be set by the operator. Durations and waits in this process are the
    difference of two steady readings.
    """

    def now(self) -> float:
        """Return the seconds since the epoch."""
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
