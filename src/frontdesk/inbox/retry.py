"""Decides when to give up an event that repeatedly crashes its process, and the delay of each retry. Pure."""

from frontdesk.models.delivery import InboxItem

MAX_ATTEMPTS = 3
"""The number of processes that an event may end while they work on nothing else."""
MAX_LOST = 50
"""The number of processes that may end while they work on an event, whatever else they work on."""
MAX_RESUMED = 50
_INITIAL_DELAY_SECONDS, _MAX_DELAY_SECONDS = 0.5, 30.0


def is_given_up(item: InboxItem) -> bool:
    """Return True if an event is not tried again.

    Events that resume a decision have only a limit on attempts: no tool starts before they are done, so retries are
    safe.
    """
    if item.kind == "resume":
        return item.attempts > MAX_RESUMED
    return item.alone >= MAX_ATTEMPTS or item.lost >= MAX_LOST


def own_tries(item: InboxItem) -> int:
    """Return the number of attempts that their process survived, including the current one."""
    return item.attempts - item.lost


def rest_before(item: InboxItem) -> float:
    """Return the delay in seconds before an attempt, because the event may be the cause of crashes."""
    rests = max(item.alone, item.lost - MAX_ATTEMPTS) if item.kind != "resume" else item.attempts - MAX_ATTEMPTS
    if rests <= 0 or is_given_up(item):
        return 0.0
    return min(_INITIAL_DELAY_SECONDS * 2 ** (rests - 1), _MAX_DELAY_SECONDS)
