"""Leases of a database that one process owns: numbers in memory."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from frontdesk.data.session import Lease


class LocalLeases:
    """The leases of sessions in this process. They end with the process, as its turns do."""

    def __init__(self, flush: Callable[[], Awaitable[Any]]) -> None:
        """Keep no leases at first; `flush` returns when all queued writes are done."""
        self._flush = flush
        self._fences: dict[str, int] = {}
        self._begun: dict[str, str] = {}
        self._count = 0

    def begin(self, owner: str, session_id: str) -> Lease:
        self._begun[session_id] = owner
        return self._next(session_id)

    async def claim(self, session_id: str, *, force: bool = False) -> Lease:
        lease = self._next(session_id)
        if force:
            # Writes of the earlier holder that are queued count, and the new one must see them.
            await self._flush()
        return lease

    def _next(self, session_id: str) -> Lease:
        self._count += 1
        self._fences[session_id] = self._count
        return Lease(session_id=session_id, fence=self._count)

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Lease]:
        return ()

    def release(self, lease: Lease) -> None:
        if self.holds(lease):
            del self._fences[lease.session_id]
            self._begun.pop(lease.session_id, None)

    def begun(self, session_id: str) -> str | None:
        """Return the owner of a session that was begun and is not stored yet."""
        return self._begun.get(session_id)

    def taken(self) -> Collection[str]:
        """Return the sessions for which a lease was given out and not released."""
        return self._fences.keys()

    def holds(self, lease: Lease) -> bool:
        """Tell whether a lease is the last one that was given out for its session."""
        return self._fences.get(lease.session_id) == lease.fence
