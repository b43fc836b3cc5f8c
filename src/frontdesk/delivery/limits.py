"""Rate limits of a channel, and the pauses that its platform asks for. Time is an argument."""

from collections import OrderedDict

from frontdesk.data.delivery import DestinationKind

_MOST = 10_000
"""The number of destinations that are remembered; a forgotten one may be pushed at once, or waits once more."""


class Limits:
    """The limits of one channel, over all and for each destination.

    A destination that has to wait for the channel gets a time of its own, so that they do not all come at once.
    """

    def __init__(
        self,
        per_second: float | None,
        per_destination: float | None,
        most: int = _MOST,
        *,
        per_group: float | None = None,
    ) -> None:
        """`per_group` counts for groups, instead of `per_destination`."""
        self._gap = 0.0 if per_second is None else 1.0 / per_second
        own_gap = 0.0 if per_destination is None else 1.0 / per_destination
        group_gap = own_gap if per_group is None else 1.0 / per_group
        self._own_gaps: dict[DestinationKind, float] = {"direct": own_gap, "group": group_gap}
        self._most = most
        self._next = 0.0
        self._own_next: OrderedDict[str, float] = OrderedDict()
        self._turns: OrderedDict[str, float] = OrderedDict()
        self._closed_until = 0.0

    def enter(self, place: str, now: float, kind: DestinationKind = "direct") -> float:
        """Return when a part for a destination may be sent, and count it if that is now; else call again then."""
        at = max(self._closed_until, self._own_next.get(place, 0.0))
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
        return now

    def enter_last(self, place: str, now: float, kind: DestinationKind = "direct") -> float:
        """Do the same for what comes last: it is let in only where no delivery would have to wait for it."""
        at = max(self._closed_until, self._own_next.get(place, 0.0))
        if self._gap:
            at = max(at, self._next)
        return at if at > now else self.enter(place, now, kind)

    def close(self, until: float) -> None:
        """Have the whole channel wait, as its platform asks."""
        self._closed_until = max(self._closed_until, until)

    def _keep(self, times: OrderedDict[str, float], place: str, at: float) -> None:
        times[place] = at
        times.move_to_end(place)
        if len(times) > self._most:
            times.popitem(last=False)
