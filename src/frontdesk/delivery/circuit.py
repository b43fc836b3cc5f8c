"""Leaves a platform alone that is down. Time is an argument."""


class Circuit:
    """Opens after some failures in a row; after a pause one goes first, and shows whether the rest may follow."""

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
        """Whether the platform is left alone."""
        return self._failures >= self._most

    def free_at(self, now: float) -> float:
        """When one may go; that is now, if it may."""
        if not self.is_open:
            return now
        return max(now, self._until) if not self._probing else max(now, self._until) + self._pause

    def enter(self) -> None:
        """One goes; of an open circuit it is the one that shows."""
        self._probing = self.is_open

    def leave(self) -> None:
        """The one that went came to nothing that says anything about the platform."""
        self._probing = False

    def succeed(self) -> None:
        """The platform has answered."""
        self._failures = 0
        self._pause = self._first_pause
        self._probing = False

    def fail(self, now: float) -> bool:
        """The platform could not be reached, or could not do it; tells whether that has opened the circuit."""
        was_open = self.is_open
        self._failures += 1
        if not self.is_open or (was_open and not self._probing):
            # What had left before the circuit opened says nothing new.
            return False
        if was_open:
            self._pause = min(2 * self._pause, self._longest)
        self._until = now + self._pause
        self._probing = False
        return not was_open
