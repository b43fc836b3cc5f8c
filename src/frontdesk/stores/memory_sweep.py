"""Drops idle records of the in-memory store."""

import asyncio
from typing import TYPE_CHECKING

from frontdesk.clock import Clock
from frontdesk.data.expiry import Expiry
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import spawn_clean

if TYPE_CHECKING:
    from frontdesk.stores.memory import InMemoryStateStore

EVERY = 60.0
_FILES_KEPT = Expiry().files or 0.0


class MemorySweep:
    """Drops idle sessions, conversations, identities, unused files, and what has expired, at intervals.

    The other drawers evict old records by themselves.
    """

    def __init__(self, store: "InMemoryStateStore", idle_seconds: float | None, clock: Clock) -> None:
        self._store = store
        self._idle = idle_seconds
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task."""
        self._task = spawn_clean(self._go_on())

    async def stop(self) -> None:
        """Stop the task."""
        await stopped(self._task)

    async def _go_on(self) -> None:
        while True:
            # A new store has nothing to drop.
            await asyncio.sleep(EVERY)
            self.once()

    def once(self) -> int:
        """Drop all records that are idle or expired now; return how many sessions, conversations and identities."""
        now = self._clock.now()
        self._store.identities.drop_ended(now)
        self._store.channel_values.drop_expired(now)
        self._store.live.drop_expired(now)
        self._store.files.drop_unused(now - _FILES_KEPT)
        if self._idle is None:
            return 0
        dropped = self._store.conversations.drop_idle(now - self._idle)
        while gone := self._store.sessions.drop_idle(now - self._idle):
            # These may have been the last branches of other sessions.
            self._store.approvals.drop_sessions(gone)
            self._store.checkpoints.drop_sessions(gone)
            dropped += len(gone)
        # Last, because the dropped records may have been all that an identity owned.
        return dropped + self._store.identities.drop_idle(now, self._idle, self._owners)

    def _owners(self) -> set[str]:
        """Return the isolation keys that own something."""
        store = self._store
        sessions = (kept.owner if kept.record is None else kept.record.owner for _, kept in store.sessions.kept.items())
        return {
            *(owner for owner in sessions if owner is not None),
            *(record.owner for _, record in store.conversations.records.items()),
            *(record.owner for _, record in store.runs.records.items()),
            *store.approvals.owned,
            *(owner for owner, _ in store.background.jobs),
            *(owner for (owner, _), _ in store.files.kept.items()),
            *(delivery.owner for queue in store.outbox.queues.values() for delivery in queue.values()),
        }
