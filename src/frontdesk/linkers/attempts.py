"""Counts attempts across replicas and restarts. Each takes one of a fixed number of slots in a time window."""

from frontdesk.errors import StoreError, TooManyRequestsError
from frontdesk.interfaces.linker import LinkerContext
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.link import Grant


async def take_attempt(host: LinkerContext, of: str, identity: ChannelIdentity, *, most: int, seconds: float) -> str:
    """Count an attempt and return its slot id, whose use gives the attempt back.

    Raise `TooManyRequestsError` until the end of the window if there are too many attempts.
    """
    now = host.now()
    window = int(now // seconds)
    ends = (window + 1) * seconds
    for slot in range(await _count_taken(host, f"{of}:{window}", most), most):
        grant_id = f"{of}:{window}:{slot}"
        try:
            await host.keep(Grant(grant_id=grant_id, identity=identity, expires_at=ends))
        except StoreError:
            # Another process took this slot; the next one may be free.
            continue
        return grant_id
    raise TooManyRequestsError("Too many attempts. Try again later.", retry_after=max(1.0, ends - now))


async def _count_taken(host: LinkerContext, of: str, most: int) -> int:
    """Return the number of taken slots, by bisection: slots fill up in order, and few are given back."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if await host.kept(f"{of}:{middle}") is None:
            high = middle
        else:
            low = middle + 1
    return low
