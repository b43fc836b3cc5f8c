"""A clock that a test controls."""


class FakeClock:
    """Does not advance by itself."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._steady = 0.0

    def now(self) -> float:
        return self._now

    def steady(self) -> float:
        return self._steady

    def set(self, now: float) -> None:
        """Set the time of day, also backwards. Durations do not change."""
        self._now = now

    def jump(self, seconds: float) -> float:
        """Change the time of day by some seconds and return it. Durations do not change."""
        self._now += seconds
        return self._now

    def advance(self, seconds: float) -> float:
        """Advance the clock and return the new time."""
        self._now += seconds
        self._steady += seconds
        return self._now
