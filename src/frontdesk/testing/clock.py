"""A clock that a test moves."""


class FakeClock:
    """Stands still until it is told to go on."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def set(self, now: float) -> None:
        """Makes it that time, which may be earlier."""
        self._now = now

    def advance(self, seconds: float) -> float:
        """Lets time pass; returns the new time."""
        self._now += seconds
        return self._now
