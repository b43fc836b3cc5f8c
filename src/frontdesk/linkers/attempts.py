"""Counts attempts over all replicas and restarts: each takes one of a fixed number of slots in a time window."""

from frontdesk.abc.linker import LinkDesk
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import Grant
from frontdesk.errors import StoreError, TooManyRequestsError


async def take_attempt(desk: LinkDesk, of: str, identity: ChannelIdentity, *, most: int, seconds: float) -> str:
    """Count an attempt, and return the id of its slot, which gives it back when it is used up.

    Raise `TooManyRequestsError` until the end of the window if there are too many.
    """
    now = desk.now()
    window = int(now // seconds)
    ends = (window + 1) * seconds
    for slot in range(await _taken(desk, f"{of}:{window}", most), most):
        grant_id = f"{of}:{window}:{slot}"
        try:
            await desk.keep(Grant(grant_id=grant_id, identity=identity, expires_at=ends))
        except StoreError:
            # Another process took this slot; the next one may be free.
            continue
        return grant_id
    raise TooManyRequestsError("Too many attempts. Try again later.", retry_after=max(1.0, ends - now))


async def _taken(desk: LinkDesk, of: str, most: int) -> int:
    """Return how many slots are taken, by bisection: they fill up in order, and few are given back."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if await desk.kept(f"{of}:{middle}") is None:
            high = middle
        else:
            low = middle + 1
    return low
