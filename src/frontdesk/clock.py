"""The only module that reads the clock."""

import time
from typing import NamedTuple, Protocol


class Clock(Protocol):
    """A wall clock and a monotonic clock.

    `now` is stored and displayed, and the operator can set it. Durations and waits within this process are differences
    of two `steady` readings.
    """

    def now(self) -> float:
        """Return the seconds since the Unix epoch."""
        ...

    def steady(self) -> float:
        """Return monotonic seconds since an arbitrary moment, which differs between processes."""
        ...


class Moment(NamedTuple):
    """A reading of both clocks. The steady clock may stop while the machine sleeps. The wall clock can be set."""

    steady: float
    now: float

    @classmethod
    def of(cls, clock: Clock) -> "Moment":
        return cls(clock.steady(), clock.now())

    def age(self, clock: Clock) -> float:
        """Return the elapsed seconds: the larger of the two clocks' differences."""
        return max(clock.steady() - self.steady, clock.now() - self.now)


class SystemClock:
    __slots__ = ()

    def now(self) -> float:
        return time.time()

    def steady(self) -> float:
        return time.monotonic()
