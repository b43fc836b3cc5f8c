"""Decides how often an event is tried whose process ends each time, and how long it rests before. Pure."""

from frontdesk.data.delivery import InboxItem

MOST_TRIES = 3
MOST_RESUMED = 50
_FIRST, _LONGEST = 0.5, 30.0


def most_tries(item: InboxItem) -> int:
    """Return how often an event is tried before it is given up.

    After a decision no tool has begun until the event is done, so that it can be tried as often as processes end.
    """
    return MOST_RESUMED if item.kind == "resume" else MOST_TRIES


def rest_before(item: InboxItem) -> float:
    """Return the seconds for which an event rests before it is tried: it may be what ends the processes."""
    rests = item.attempts - MOST_TRIES
    if item.kind != "resume" or rests <= 0 or item.attempts > MOST_RESUMED:
        return 0.0
    return min(_FIRST * 2 ** (rests - 1), _LONGEST)
