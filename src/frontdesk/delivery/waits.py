"""Measures how long parts wait and have waited, although the time of day may be set meanwhile."""

from collections import OrderedDict

from frontdesk.clock import Clock
from frontdesk.data.delivery import ANEW, Delivery

_NOTICED = 1.0
"""The seconds by which the two clocks must differ before one counts as set; less than that is drift."""
_MOST = 10_000


class Waits:
    """Keeps until when the first part of each place waits, by the steady clock; forgets the oldest of too many."""

    def __init__(self, clock: Clock, most: int = _MOST) -> None:
        self._clock = clock
        self._most = most
        self._noted: OrderedDict[str, tuple[str, int, float, float]] = OrderedDict()

    def begin(self, row: Delivery, until: float) -> None:
        """Note until when a part waits, as long as nothing changes it."""
        self._noted[row.place] = (row.delivery_id, row.fence, until, self._clock.steady())
        self._noted.move_to_end(row.place)
        if len(self._noted) > self._most:
            self._noted.popitem(last=False)

    def until(self, row: Delivery) -> float | None:
        """Return until when a part waits; `None` if that was not noted for its present fence."""
        noted = self._of(row)
        return None if noted is None else noted[0]

    def since(self, row: Delivery) -> float | None:
        """Return since when a part is known with its present fence."""
        noted = self._of(row)
        return None if noted is None else noted[1]

    def _of(self, row: Delivery) -> tuple[float, float] | None:
        delivery_id, fence, *times = self._noted.get(row.place, ("", 0, 0.0, 0.0))
        return (times[0], times[1]) if (delivery_id, fence) == (row.delivery_id, row.fence) else None

    def end(self, place: str) -> None:
        """Forget a place at which nothing waits."""
        self._noted.pop(place, None)


class Ages:
    """Measures how long parts have waited, and never too much.

    A time of day is not reliable: it may have been set since, or come from a machine with another clock. So an age is
    limited to the time on the steady clock since this process began, or since it last saw that the clock was set. Where
    other processes write parts too, it is counted from when this process has seen the part as it is.

    The time before this process can't be measured: there the time of day is used, until it is seen to be set.
    """

    def __init__(self, clock: Clock, *, shared: bool) -> None:
        self._clock = clock
        self._shared = shared
        self._wall, self._steady = clock.now(), clock.steady()
        self._began = self._steady
        self._believed = True

    def look(self) -> None:
        """Detect whether the clock was set."""
        now, steady = self._clock.now(), self._clock.steady()
        if abs((now - self._wall) - (steady - self._steady)) > _NOTICED:
            self._wall, self._steady, self._began = now, steady, steady
            self._believed = False

    def of(self, row: Delivery, known_since: float | None) -> float:
        """Return the seconds that a part has waited since it was queued: counted at its tries, and since the last."""
        self.look()
        counted, at = _counted(row)
        steady = self._clock.steady()
        began = self._began
        if self._shared:
            began = steady if known_since is None else max(began, known_since)
        age = counted + max(0.0, min(self._clock.now() - at, steady - began))
        if self._believed and (before := self._wall - _queued_at(row)) > 0:
            return max(age, before + steady - self._steady)
        return age


def _counted(row: Delivery) -> tuple[float, float]:
    """Return how long a part had waited at the last try that recorded it, and the time of that try."""
    for attempt in reversed(row.history):
        if attempt.code == ANEW:
            break
        if attempt.waited is not None:
            return attempt.waited, attempt.at
    return 0.0, _queued_at(row)


def pause(row: Delivery, now: float) -> float:
    """Return how long a part still waits as recorded: never longer than the delay that was set.

    If more than that is left, the clock was set back since, or it is another clock.
    """
    set_at = row.history[-1].at if row.history else _queued_at(row)
    return max(0.0, min(row.due_at - now, row.due_at - set_at))


def _queued_at(row: Delivery) -> float:
    return row.created_at if row.queued_at is None else row.queued_at
