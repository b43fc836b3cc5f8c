"""Leases of a database shared by many processes: one row each, timed by the database clock."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress

from frontdesk.concurrency.tasks import spawn_clean
from frontdesk.errors import SessionBusyError, StoreError, StoreUnavailableError
from frontdesk.models.session import Lease
from frontdesk.stores.sql.tables import key
from frontdesk.stores.sql.writes import Do, Fence, Op, Rows

NOW = "extract(epoch FROM clock_timestamp())::double precision"

_CLAIM = f"""
INSERT INTO leases (session_id, fence, holder, until) VALUES (?, 1, ?, {NOW} + ?)
ON CONFLICT (session_id) DO UPDATE
SET fence = leases.fence + 1, holder = excluded.holder, until = excluded.until
WHERE leases.until < {NOW} OR leases.holder = excluded.holder
RETURNING fence
"""
_RENEW = f"""
UPDATE leases SET until = {NOW} + ? FROM unnest(?::text[], ?::bigint[]) AS mine (session_id, fence)
WHERE leases.session_id = mine.session_id AND leases.fence = mine.fence
RETURNING leases.session_id, leases.fence
"""
CHECK = """
UPDATE leases SET until = CASE WHEN mine.keep THEN leases.until ELSE 0 END
FROM unnest(%b::text[], %b::bigint[], %b::boolean[]) AS mine (session_id, fence, keep)
WHERE leases.session_id = mine.session_id AND leases.fence = mine.fence
RETURNING leases.session_id, leases.fence
"""
"""Returns the leases that are still valid; releases them unless they are to be kept."""

_BEGUN = 0
"""The fence of a session that no other process knows yet; it has no row."""


class SharedLeases:
    """The leases of sessions across all processes."""

    def __init__(self, holder: str, seconds: float, write: Callable[[Sequence[Op]], Awaitable[list[Rows]]]) -> None:
        self._holder = holder
        self._seconds = seconds
        self._write = write
        self._begun: dict[str, str] = {}
        self._given: dict[str, int] = {}
        """The last lease that was given out here for each session, until it is released."""
        self._held: dict[str, int] = {}
        """The leases that have a row, which has to be released."""
        self._releasing: set[asyncio.Task[None]] = set()

    def begin(self, owner: str, session_id: str) -> Lease:
        self._begun[session_id] = owner
        self._given[session_id] = _BEGUN
        return Lease(session_id=session_id, fence=_BEGUN)

    async def claim(self, session_id: str, *, force: bool = False) -> Lease:
        values = (key(session_id), self._holder, self._seconds)
        rows = (await self._write([Do(_CLAIM, values, answers=True)]))[0]
        if not rows:
            raise SessionBusyError(retry_after=1.0)
        fence = int(rows[0][0])
        self._begun.pop(session_id, None)
        self._given[session_id] = self._held[session_id] = max(fence, self._given.get(session_id, fence))
        return Lease(session_id=session_id, fence=fence)

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Lease]:
        lost = [lease for lease in leases if not self.holds(lease)]
        written = [lease for lease in leases if lease not in lost and self.has_row(lease)]
        if not written:
            return lost
        values = (self._seconds, [key(lease.session_id) for lease in written], [lease.fence for lease in written])
        kept = {tuple(row) for row in (await self._write([Do(_RENEW, values, answers=True)]))[0]}
        return [*lost, *(lease for lease in written if (key(lease.session_id), lease.fence) not in kept)]

    def release(self, lease: Lease) -> None:
        if not self.holds(lease):
            return
        del self._given[lease.session_id]
        self._begun.pop(lease.session_id, None)
        if self._held.pop(lease.session_id, None) is not None:
            task = spawn_clean(self._free(lease))
            self._releasing.add(task)
            task.add_done_callback(self._releasing.discard)

    async def _free(self, lease: Lease) -> None:
        # If the database can't be reached, the lease expires.
        with suppress(StoreUnavailableError, StoreError):
            place = (key(lease.session_id), lease.fence)
            await self._write([Do("UPDATE leases SET until = 0 WHERE session_id = ? AND fence = ?", place)])

    def find_begun_owner(self, session_id: str) -> str | None:
        return self._begun.get(session_id)

    async def wait_for_releases(self) -> None:
        await asyncio.gather(*self._releasing)

    def list_taken(self) -> Collection[str]:
        return self._given.keys()

    def holds(self, lease: Lease) -> bool:
        """Return True if a lease is the latest one granted here. Only the database knows whether it is valid."""
        return self._given.get(lease.session_id) == lease.fence

    def has_row(self, lease: Lease) -> bool:
        return lease.fence != _BEGUN or self._held.get(lease.session_id) == _BEGUN

    def build_missing_row(self, fence: Fence) -> Do | None:
        """Return the insert for a kept lease without a row, otherwise None."""
        if self.has_row(fence.lease) or not fence.keep:
            return None
        values = (key(fence.lease.session_id), _BEGUN, self._holder, self._seconds)
        return Do(
            f"INSERT INTO leases (session_id, fence, holder, until) VALUES (?, ?, ?, {NOW} + ?) "
            "ON CONFLICT (session_id) DO NOTHING",
            values,
        )

    def note_saved(self, fence: Fence) -> None:
        """Record that a session was stored, and thereby released unless it is kept."""
        session_id = fence.lease.session_id
        if not self.holds(fence.lease):
            return
        if fence.keep:
            self._held[session_id] = fence.lease.fence
        else:
            self._held.pop(session_id, None)
            if self._begun.pop(session_id, None) is not None:
                # From here on others can claim it, and no row would show it.
                del self._given[session_id]
