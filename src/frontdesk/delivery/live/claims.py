"""`LiveClaim`: the claim of an event or a background run under which a live message is written."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

from frontdesk.errors import LostEventError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import InboxItem
from frontdesk.models.run import BackgroundRun

_BEHIND_EVENTS = 2**32
"""The start of the fences of background runs: a run that an event has queued comes after all claims of the event."""

VIEWS_PER_CLAIM = 2**20
"""The number of views of one claim, at most: one a second for twelve days."""


class LiveClaim(NamedTuple):
    """A claim of an event or run. Only the holder of the latest claim may show live messages."""

    fence: int
    is_first: bool
    """Whether no other claim can have shown anything before."""
    is_held: Callable[[], Awaitable[bool]]
    """Tells whether no other process has taken it over, and nobody has cancelled it."""
    cancel: Callable[[], Awaitable[None]]
    """Marks the event or the run as cancelled, as its sender could by a command."""

    @property
    def first_sequence(self) -> int:
        """Return the number of the first view, above all numbers of earlier claims."""
        return 0 if self.is_first else self.fence % _BEHIND_EVENTS * VIEWS_PER_CLAIM


def event_claim(store: HostStateStore, event: InboxItem) -> LiveClaim:
    async def is_held() -> bool:
        held = await store.inbox.renew([event])
        return bool(held) and not held[0].is_cancelled

    async def cancel() -> None:
        # One that has ended meanwhile has nothing left to be stopped.
        with suppress(LostEventError):
            async with store.transaction() as transaction:
                for member in event.members:
                    transaction.cancel_event(member)

    return LiveClaim(event.fence, event.fence <= 1, is_held, cancel)


def run_claim(store: HostStateStore, run: BackgroundRun) -> LiveClaim:
    async def is_held() -> bool:
        held = await store.background.renew([run])
        return bool(held) and not held[0].cancelled

    async def cancel() -> None:
        async with store.transaction() as transaction:
            transaction.cancel_job(run.admitted.owner, run.admitted.run_id)

    return LiveClaim(_BEHIND_EVENTS + run.fence, run.fence <= 1, is_held, cancel)
