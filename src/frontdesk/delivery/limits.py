"""Rate limits of a channel, and the pauses that its platform requests. Time is an argument."""

from collections import OrderedDict, deque
from collections.abc import Sequence

from frontdesk.clock import Clock
from frontdesk.models.delivery import ANEW, Delivery, DestinationKind
from frontdesk.models.operations import RateLimit

_MAX_DESTINATIONS = 10_000
"""The number of destinations that are remembered; a forgotten one may be pushed at once, or waits once more."""

_SLOTS = 16


class RateWindows:
    """Counts what was sent under some names in sliding windows. Bounded: forgets the names that were idle longest.

    A window is counted in slots of a sixteenth, so that a name takes little memory. What was sent counts until the
    whole slot has left the window.
    """

    def __init__(self, windows: Sequence[RateLimit], most: int = _MAX_DESTINATIONS) -> None:
        self._windows = tuple(windows)
        self._most = most
        self._sent: OrderedDict[str, tuple[deque[list[float]], ...]] = OrderedDict()

    def free_at(self, name: str, now: float) -> float:
        """Return the time at which all windows of a name allow one more, or `now`."""
        known = self._sent.get(name)
        if known is None:
            return now
        return max(
            now, *(_find_next_slot(slots, window, now) for slots, window in zip(known, self._windows, strict=True))
        )

    def count(self, name: str, now: float) -> None:
        if not self._windows:
            return
        known = self._sent.get(name)
        if known is None:
            known = self._sent[name] = tuple(deque() for _ in self._windows)
            if len(self._sent) > self._most:
                self._sent.popitem(last=False)
        self._sent.move_to_end(name)
        for slots, window in zip(known, self._windows, strict=True):
            length = window.per_seconds / _SLOTS
            if slots and slots[-1][0] > now - length:
                slots[-1][1] += 1
            else:
                slots.append([now, 1])


def _find_next_slot(slots: "deque[list[float]]", window: RateLimit, now: float) -> float:
    """Return the time at which one more fits. Drops the slots that have left the window."""
    kept = window.per_seconds * (1 + 1 / _SLOTS)
    while slots and slots[0][0] + kept <= now:
        slots.popleft()
    surplus = sum(count for _, count in slots) - window.requests + 1
    for begun, count in slots:
        if surplus <= 0:
            break
        surplus -= count
        now = begun + kept
    return now


class SendLimits:
    """The rate limits of one channel, in total and for each destination.

    Destinations that wait for the channel get distinct times so that they do not resume all at once.
    """

    def __init__(
        self,
        per_second: float | None,
        per_destination: float | None,
        most: int = _MAX_DESTINATIONS,
        *,
        per_group: float | None = None,
        windows: Sequence[RateLimit] = (),
        key_windows: Sequence[RateLimit] = (),
    ) -> None:
        """`per_group` replaces `per_destination` for groups. `key_windows` are shared by destinations with one key."""
        self._windows, self._key_windows = RateWindows(windows, most), RateWindows(key_windows, most)
        self._has_windows = bool(windows or key_windows)
        self._gap = 0.0 if per_second is None else 1.0 / per_second
        own_gap = 0.0 if per_destination is None else 1.0 / per_destination
        group_gap = own_gap if per_group is None else 1.0 / per_group
        self._own_gaps: dict[DestinationKind, float] = {"direct": own_gap, "group": group_gap}
        self._most = most
        self._next = 0.0
        self._own_next: OrderedDict[str, float] = OrderedDict()
        self._turns: OrderedDict[str, float] = OrderedDict()
        self._closed_until = 0.0

    def enter(self, place: str, now: float, kind: DestinationKind = "direct", key: str = "") -> float:
        """Return the time at which a part for a destination may be sent. Counts the part if that is now."""
        at = max(self._closed_until, self._own_next.get(place, 0.0))
        if self._has_windows:
            at = max(at, self._windows.free_at(place, now), self._key_windows.free_at(key, now))
        if at > now:
            return at
        if self._gap:
            turn = self._turns.pop(place, None)
            if turn is None:
                turn = max(now, self._next)
                self._next = turn + self._gap
            if turn > now:
                self._keep(self._turns, place, turn)
                return turn
        if own_gap := self._own_gaps[kind]:
            self._keep(self._own_next, place, now + own_gap)
        if self._has_windows:
            self._windows.count(place, now)
            self._key_windows.count(key, now)
        return now

    def enter_last(self, place: str, now: float, kind: DestinationKind = "direct", key: str = "") -> float:
        """Like `enter`, with the lowest priority: admitted only where no delivery would have to wait for it."""
        at = max(self._closed_until, self._own_next.get(place, 0.0))
        if self._gap:
            at = max(at, self._next)
        return at if at > now else self.enter(place, now, kind, key)

    def close(self, until: float) -> None:
        """Pause the whole channel, as its platform requests."""
        self._closed_until = max(self._closed_until, until)

    def _keep(self, times: OrderedDict[str, float], place: str, at: float) -> None:
        times[place] = at
        times.move_to_end(place)
        if len(times) > self._most:
            times.popitem(last=False)


class Circuit:
    """Circuit breaker: opens after consecutive failures. After a pause, one probe decides whether it closes."""

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
        """Return True if only a probe may be sent to the platform."""
        return self._failures >= self._most

    def free_at(self, now: float) -> float:
        """Return the time at which a part may be sent, or `now`."""
        if not self.is_open:
            return now
        return max(now, self._until) if not self._probing else max(now, self._until) + self._pause

    def enter(self) -> None:
        """Record that a part is being sent. If the circuit is open, it is the probe."""
        self._probing = self.is_open

    def leave(self) -> None:
        """Record that a part ended without any information about the platform."""
        self._probing = False

    def succeed(self) -> None:
        """Record a response of the platform and close the circuit."""
        self._failures = 0
        self._pause = self._first_pause
        self._probing = False

    def fail(self, now: float) -> bool:
        """Record a connection error or platform failure. Return True if it has opened the circuit."""
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


_MIN_JUMP_SECONDS = 1.0
"""The seconds by which the two clocks must differ before one counts as set; less than that is drift."""


class Waits:
    """Stores how long the first part of each destination waits (monotonic clock). Bounded: evicts the oldest."""

    def __init__(self, clock: Clock, most: int = _MAX_DESTINATIONS) -> None:
        self._clock = clock
        self._most = most
        self._noted: OrderedDict[str, tuple[str, int, float, float]] = OrderedDict()

    def begin(self, row: Delivery, until: float) -> None:
        """Record the end of the wait of a part, valid until the part changes."""
        self._noted[row.place] = (row.delivery_id, row.fence, until, self._clock.steady())
        self._noted.move_to_end(row.place)
        if len(self._noted) > self._most:
            self._noted.popitem(last=False)

    def until(self, row: Delivery) -> float | None:
        """Return the end of the wait of a part, or None if none was recorded for its current fence."""
        noted = self._find(row)
        return None if noted is None else noted[0]

    def since(self, row: Delivery) -> float | None:
        """Return the time since which a part is known with its current fence."""
        noted = self._find(row)
        return None if noted is None else noted[1]

    def _find(self, row: Delivery) -> tuple[float, float] | None:
        delivery_id, fence, *times = self._noted.get(row.place, ("", 0, 0.0, 0.0))
        return (times[0], times[1]) if (delivery_id, fence) == (row.delivery_id, row.fence) else None

    def end(self, place: str) -> None:
        self._noted.pop(place, None)


class Ages:
    """Measures how long parts have waited, without overestimating.

    Wall-clock times are not reliable: the clock may have been set, or the time may come from another machine. An age is
    therefore limited to the monotonic time since this process started or last detected that the clock was set. Where
    other processes write parts too, the age counts from when this process first saw the part in its current state.

    The time before this process started can't be measured. The wall clock is used for it until the clock is seen to be
    set, and only for parts that existed at the start: a part that another process has added since, by a clock that was
    wrong for a moment, is not older than this process.
    """

    def __init__(self, clock: Clock, *, shared: bool) -> None:
        self._clock = clock
        self._shared = shared
        self._wall, self._steady = clock.now(), clock.steady()
        self._began = self._steady
        self._believed = True
        self.newest_at_start: int | None = None
        """The number of the newest part at the start, `None` until it is known."""

    def look(self) -> None:
        """Detect whether the clock was set."""
        now, steady = self._clock.now(), self._clock.steady()
        if abs((now - self._wall) - (steady - self._steady)) > _MIN_JUMP_SECONDS:
            self._wall, self._steady, self._began = now, steady, steady
            self._believed = False

    def of(self, row: Delivery, known_since: float | None) -> float:
        """Return the seconds since a part was queued: the wait recorded at its attempts plus the time since the
        last."""
        self.look()
        counted, at = _find_counted_wait(row)
        steady = self._clock.steady()
        began = self._began
        if self._shared:
            began = steady if known_since is None else max(began, known_since)
        age = counted + max(0.0, min(self._clock.now() - at, steady - began))
        existed = self.newest_at_start is None or row.number <= self.newest_at_start
        # What an attempt has recorded was measured, so that only the time since then is taken from the wall clock.
        if self._believed and existed and (before := self._wall - at) > 0:
            return max(age, counted + before + steady - self._steady)
        return age


def _find_counted_wait(row: Delivery) -> tuple[float, float]:
    """Return the wait of a part as recorded at its last recorded attempt, and the time of that attempt."""
    for attempt in reversed(row.history):
        if attempt.code == ANEW:
            break
        if attempt.waited is not None:
            return attempt.waited, attempt.at
    return 0.0, _get_queue_time(row)


def pause(row: Delivery, now: float) -> float:
    """Return the remaining wait of a part as recorded, at most the delay that was set.

    If more than that is left, the clock has been set back, or the time comes from another clock.
    """
    set_at = row.history[-1].at if row.history else _get_queue_time(row)
    return max(0.0, min(row.due_at - now, row.due_at - set_at))


def _get_queue_time(row: Delivery) -> float:
    return row.created_at if row.queued_at is None else row.queued_at
