"""`LiveClaim`: the claim of an event or a background run under which a live message is written."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import InboxItem
from frontdesk.models.run import BackgroundRun

_BEHIND_EVENTS = 2**32
"""The start of the fences of background runs: a run that an event has queued comes after all claims of the event."""


class LiveClaim(NamedTuple):
    """A claim of an event or run. Only the holder of the latest claim may show live messages."""

    fence: int
    is_first: bool
    """Whether no other claim can have shown anything before."""
    is_held: Callable[[], Awaitable[bool]]
    """Tells whether no other process has taken it over, and nobody has cancelled it."""


def event_claim(store: HostStateStore, event: InboxItem) -> LiveClaim:
    async def is_held() -> bool:
        held = await store.inbox.renew([event])
        return bool(held) and not held[0].is_cancelled

    return LiveClaim(event.fence, event.fence <= 1, is_held)


def run_claim(store: HostStateStore, run: BackgroundRun) -> LiveClaim:
    async def is_held() -> bool:
        held = await store.background.renew([run])
        return bool(held) and not held[0].cancelled

    return LiveClaim(_BEHIND_EVENTS + run.fence, run.fence <= 1, is_held)
