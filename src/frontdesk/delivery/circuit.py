"""A circuit breaker for a platform that is down. Time is an argument."""


class Circuit:
    """Opens after some failures in a row; after a pause, one probe decides whether it closes."""

    def __init__(self, failures: int, pause: float, longest: float) -> None:
        self._most = failures
        self._first_pause = pause
        self._longest = max(pause, longest)
        self._failures = 0
        self._pause = pause
        self._until = 0.0
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Tell whether nothing but a probe is sent to the platform."""
        return self._failures >= self._most

    def free_at(self, now: float) -> float:
        """Return the time at which a part may be sent; `now` if it may."""
        if not self.is_open:
            return now
        return max(now, self._until) if not self._probing else max(now, self._until) + self._pause

    def enter(self) -> None:
        """Note that a part is being sent; if the circuit is open, it is the probe."""
        self._probing = self.is_open

    def leave(self) -> None:
        """Note that a part ended without telling anything about the platform."""
        self._probing = False

    def succeed(self) -> None:
        """Note that the platform has answered, and close the circuit."""
        self._failures = 0
        self._pause = self._first_pause
        self._probing = False

    def fail(self, now: float) -> bool:
        """Note that the platform could not be reached, or failed; tell whether that has opened the circuit."""
        was_open = self.is_open
        self._failures += 1
        if not self.is_open or (was_open and not self._probing):
            # A part that was sent before the circuit opened tells nothing new.
            return False
        if was_open:
            self._pause = min(2 * self._pause, self._longest)
        self._until = now + self._pause
        self._probing = False
        return not was_open
