"""Counts attempts over all replicas and restarts: each takes one of a fixed number of places in a stretch of time."""

from frontdesk.abc.linker import LinkDesk
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.link import Grant
from frontdesk.errors import StoreError, TooManyRequestsError


async def take_attempt(desk: LinkDesk, of: str, identity: ChannelIdentity, *, most: int, seconds: float) -> None:
    """Counts an attempt; one too many in this stretch of time is a `TooManyRequestsError` that says when it ends."""
    now = desk.now()
    stretch = int(now // seconds)
    ends = (stretch + 1) * seconds
    for place in range(await _taken(desk, f"{of}:{stretch}", most), most):
        try:
            await desk.keep(Grant(grant_id=f"{of}:{stretch}:{place}", identity=identity, expires_at=ends))
        except StoreError:
            # Somebody was faster; the next place may be free.
            continue
        return
    raise TooManyRequestsError("Too many attempts. Try again later.", retry_after=max(1.0, ends - now))


async def _taken(desk: LinkDesk, of: str, most: int) -> int:
    """How many places are taken: they fill up one after the other, so that a few looks are enough."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if await desk.kept(f"{of}:{middle}") is None:
            high = middle
        else:
            low = middle + 1
    return low
