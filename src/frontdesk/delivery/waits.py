"""How long parts wait and have waited, when the clock of the machine may be set while they do."""

from collections import OrderedDict

from frontdesk.clock import Clock
from frontdesk.data.delivery import ANEW, Delivery

_NOTICED = 1.0
"""By how many seconds the time of day and the steady clock differ before it counts as set; less is read, or corrected."""
_MOST = 10_000


class Ages:
    """Measures what has passed since a time that was written down, and never too much.

    A time of day says little by itself: it may have been set since, or was written by another process. So no more counts
    than has passed on the steady clock since this process began, or since it last saw that the clock was set.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wall, self._steady = clock.now(), clock.steady()
        self._since = self._steady

    def since(self, at: float) -> float:
        """Return how many seconds have passed since a time, at least."""
        self.look()
        return max(0.0, min(self._clock.now() - at, self._clock.steady() - self._since))

    def look(self) -> None:
        """Notice whether the clock was set."""
        now, steady = self._clock.now(), self._clock.steady()
        if abs((now - self._wall) - (steady - self._steady)) > _NOTICED:
            self._wall, self._steady, self._since = now, steady, steady

    def of(self, row: Delivery) -> float:
        """Return how many seconds a part has waited since it was queued: what was counted at its tries, and the rest."""
        for tried in reversed(row.history):
            if tried.code == ANEW:
                break
            if tried.waited is not None:
                return tried.waited + self.since(tried.at)
        return self.since(_queued_at(row))


class Waits:
    """Until when the first part of each place waits, by the steady clock; of too many the oldest is forgotten."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._until: OrderedDict[str, tuple[str, int, float]] = OrderedDict()

    def begin(self, row: Delivery, until: float) -> None:
        """Have a part wait as long as nothing changes it."""
        self._until[row.place] = (row.delivery_id, row.fence, until)
        self._until.move_to_end(row.place)
        if len(self._until) > self._most:
            self._until.popitem(last=False)

    def until(self, row: Delivery) -> float | None:
        """Return until when a part waits; nothing, if that was never noted of it as it is now."""
        delivery_id, fence, until = self._until.get(row.place, ("", 0, 0.0))
        return until if (delivery_id, fence) == (row.delivery_id, row.fence) else None

    def end(self, place: str) -> None:
        """Forget a place at which nothing waits."""
        self._until.pop(place, None)


def pause(row: Delivery, now: float) -> float:
    """Return how long a part that is written down as waiting still waits: never longer than it was told to.

    If more than that is left, the clock was set back since, or it was another clock.
    """
    told_at = row.history[-1].at if row.history else _queued_at(row)
    return max(0.0, min(row.due_at - now, row.due_at - told_at))


def _queued_at(row: Delivery) -> float:
    return row.created_at if row.queued_at is None else row.queued_at
