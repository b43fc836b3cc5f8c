"""A clock that a test moves."""


class FakeClock:
    """Stands still until a test moves it."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._steady = 0.0

    def now(self) -> float:
        return self._now

    def steady(self) -> float:
        return self._steady

    def set(self, now: float) -> None:
        """Set the time of day, which may be earlier; no time passes by that."""
        self._now = now

    def jump(self, seconds: float) -> float:
        """Move the time of day ahead, or back; no time passes by that. Return the new time."""
        self._now += seconds
        return self._now

    def advance(self, seconds: float) -> float:
        """Let time pass; return the new time."""
        self._now += seconds
        self._steady += seconds
        return self._now
