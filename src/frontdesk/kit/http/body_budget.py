"""Bounds the bytes of the bodies that callers have in flight, for each and in all.

Small bodies are not counted here: their number is bounded, and counting them would cost every request.
"""

from math import inf

from frontdesk.errors import TooManyRequestsError, UnavailableError

Who = tuple[str, str]

_RETRY = 1.0
_ALWAYS = 256 * 1024
"""The size up to which the only body of a caller is let in, however much the others have taken."""


SMALL_BODY = 10_000
"""The size below which a body does not count."""


def counted(size: int) -> int:
    """Return how many bytes of a body count."""
    return 0 if size < SMALL_BODY else size


class BodyBudget:
    """Counts the bytes in flight on one channel."""

    def __init__(self, max_bytes: int | None, max_bytes_per_caller: int | None) -> None:
        self._most = inf if max_bytes is None else max_bytes
        self._most_of_one = inf if max_bytes_per_caller is None else max_bytes_per_caller
        self._held: dict[Who, int] = {}
        self._total = 0

    def take(self, who: Who, size: int, own: int = 0) -> None:
        """Count bytes of a caller's body, of which `own` are counted already; or refuse them.

        A body that is alone is always let in: its own size has a limit of its own.
        """
        held = self._held.get(who, 0)
        if held > own and held + size > self._most_of_one:
            raise TooManyRequestsError("Your requests hold too many bytes at once.", retry_after=_RETRY)
        is_first_and_small = held == own and own + size <= _ALWAYS
        if self._total > own and self._total + size > self._most and not is_first_and_small:
            raise UnavailableError("Requests hold too many bytes at once here.", retry_after=_RETRY)
        self._held[who] = held + size
        self._total += size

    def give_back(self, who: Who, size: int) -> None:
        """Stop counting bytes of a caller."""
        self._total -= size
        left = self._held.get(who, 0) - size
        if left > 0:
            self._held[who] = left
        else:
            self._held.pop(who, None)


class BodyHold:
    """The bytes that one request, or one connection, holds of its caller's budget."""

    __slots__ = ("_budget", "_size", "_who")

    def __init__(self, budget: BodyBudget, who: Who) -> None:
        self._budget = budget
        self._who = who
        self._size = 0

    def add(self, size: int) -> None:
        """Hold more bytes, or refuse them."""
        self._budget.take(self._who, size, self._size)
        self._size += size

    def drop(self, size: int) -> None:
        """Hold fewer bytes."""
        self._size -= size
        self._budget.give_back(self._who, size)

    def split(self, size: int) -> "BodyHold":
        """Return a hold of its own for some of the bytes."""
        part = BodyHold(self._budget, self._who)
        part._size, self._size = size, self._size - size
        return part

    def release(self) -> None:
        """Hold nothing any more."""
        if self._size:
            self.drop(self._size)
