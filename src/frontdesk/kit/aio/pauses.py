"""Names that are left alone for a while, because this process can do nothing about them."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from frontdesk.clock import Clock

K = TypeVar("K", bound=Hashable)

LEFT_ALONE = 30.0
"""The seconds for which work is left to processes that can read what it needs."""


class Pauses(Generic[K]):
    """Names and the times until which each is left alone; of too many the oldest is forgotten."""

    def __init__(self, clock: Clock, *, most: int = 10_000) -> None:
        self._clock = clock
        self._most = most
        self._until: OrderedDict[K, float] = OrderedDict()

    def begin(self, name: K, seconds: float | None = None) -> float:
        """Leave a name alone from now on, for as long as usual if no time is given; return until when."""
        seconds = LEFT_ALONE if seconds is None else seconds
        self._until[name] = self._clock.steady() + seconds
        self._until.move_to_end(name)
        if len(self._until) > self._most:
            self._until.popitem(last=False)
        return self._clock.now() + seconds

    def until(self, name: K) -> float | None:
        """Return until when a name is left alone, by the clock as it is set now, or `None` if it is not."""
        until = self._until.get(name)
        if until is None:
            return None
        left = until - self._clock.steady()
        if left > 0:
            return self._clock.now() + left
        del self._until[name]
        return None

    def names(self) -> Sequence[K]:
        """Return all names that are left alone at this moment."""
        return [name for name in tuple(self._until) if self.until(name) is not None]
