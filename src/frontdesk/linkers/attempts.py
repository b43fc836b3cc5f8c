"""Counts attempts over all replicas and restarts: each takes one of a fixed number of slots in a time window."""

from frontdesk.abc.linker import LinkDesk
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import Grant
from frontdesk.errors import StoreError, TooManyRequestsError


async def take_attempt(desk: LinkDesk, of: str, identity: ChannelIdentity, *, most: int, seconds: float) -> None:
    """Count an attempt; raise `TooManyRequestsError` until the end of the window if there are too many."""
    now = desk.now()
    window = int(now // seconds)
    ends = (window + 1) * seconds
    for slot in range(await _taken(desk, f"{of}:{window}", most), most):
        try:
            await desk.keep(Grant(grant_id=f"{of}:{window}:{slot}", identity=identity, expires_at=ends))
        except StoreError:
            # Another process took this slot; the next one may be free.
            continue
        return
    raise TooManyRequestsError("Too many attempts. Try again later.", retry_after=max(1.0, ends - now))


async def _taken(desk: LinkDesk, of: str, most: int) -> int:
    """Return how many slots are taken, by bisection: they fill up in order."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if await desk.kept(f"{of}:{middle}") is None:
            high = middle
        else:
            low = middle + 1
    return low
