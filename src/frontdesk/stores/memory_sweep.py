"""Drops what nobody has used for long from the store that forgets."""

import asyncio
from typing import TYPE_CHECKING

from frontdesk.clock import Clock
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import spawn_clean

if TYPE_CHECKING:
    from frontdesk.stores.memory import InMemoryStateStore

EVERY = 60.0


class MemorySweep:
    """Looks again and again for sessions, conversations and identities that are idle.

    Grants and values that have ended go too. All other drawers make room by themselves.
    """

    def __init__(self, store: "InMemoryStateStore", idle_seconds: float | None, clock: Clock) -> None:
        self._store = store
        self._idle = idle_seconds
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._task = spawn_clean(self._go_on())

    async def stop(self) -> None:
        """End."""
        await stopped(self._task)

    async def _go_on(self) -> None:
        while True:
            # The store is new, so that there is nothing to drop at once.
            await asyncio.sleep(EVERY)
            self.once()

    def once(self) -> int:
        """Drop everything that is idle or has ended by now; returns how many sessions, conversations and identities."""
        now = self._clock.now()
        self._store.identities.drop_ended(now)
        self._store.channel_values.drop_expired(now)
        if self._idle is None:
            return 0
        dropped = self._store.conversations.drop_idle(now - self._idle)
        while gone := self._store.sessions.drop_idle(now - self._idle):
            # What was dropped may have been all that built on others.
            self._store.approvals.drop_sessions(gone)
            self._store.checkpoints.drop_sessions(gone)
            dropped += len(gone)
        # Last, because what was dropped may have been all that was left of somebody.
        return dropped + self._store.identities.drop_idle(now, self._idle, self._owners)

    def _owners(self) -> set[str]:
        """List everybody to whom something belongs."""
        store = self._store
        sessions = (kept.owner if kept.record is None else kept.record.owner for _, kept in store.sessions.kept.items())
        return {
            *(owner for owner in sessions if owner is not None),
            *(record.owner for _, record in store.conversations.records.items()),
            *(record.owner for _, record in store.runs.records.items()),
            *store.approvals.owned,
            *(owner for owner, _ in store.background.jobs),
            *(one.owner for queue in store.outbox.queues.values() for one in queue.values()),
        }
