"""Leases where many processes share the database: a row each, and the time is the database's."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from frontdesk.data.session import Lease
from frontdesk.errors import SessionBusyError, StoreUnavailableError
from frontdesk.stores.sql.engine import Rows
from frontdesk.stores.sql.tables import key
from frontdesk.stores.sql.writes import Do, Fence, Op

NOW = "extract(epoch FROM clock_timestamp())::double precision"

_CLAIM = f"""
INSERT INTO leases (session_id, fence, holder, until) VALUES (?, 1, ?, {NOW} + ?)
ON CONFLICT (session_id) DO UPDATE
SET fence = leases.fence + 1, holder = excluded.holder, until = excluded.until
WHERE leases.until < {NOW} OR leases.holder = excluded.holder OR ?
RETURNING fence
"""
_RENEW = f"""
UPDATE leases SET until = {NOW} + ? FROM unnest(?::text[], ?::bigint[]) AS mine (session_id, fence)
WHERE leases.session_id = mine.session_id AND leases.fence = mine.fence
RETURNING leases.session_id
"""
CHECK = """
UPDATE leases SET until = CASE WHEN mine.keep THEN leases.until ELSE 0 END
FROM unnest(%s::text[], %s::bigint[], %s::boolean[]) AS mine (session_id, fence, keep)
WHERE leases.session_id = mine.session_id AND leases.fence = mine.fence
RETURNING leases.session_id
"""
"""The sessions whose leases are still good; they are given free unless they are to be kept."""

_BEGUN = 0
"""The number of a session that nobody else knows of yet; it has no row."""


class SharedLeases:
    """Who may write which session, over all processes."""

    def __init__(self, holder: str, seconds: float, write: Callable[[Sequence[Op]], Awaitable[list[Rows]]]) -> None:
        self._holder = holder
        self._seconds = seconds
        self._write = write
        self._begun: dict[str, str] = {}
        self._held: dict[str, int] = {}
        self._releasing: set[asyncio.Task[None]] = set()

    async def begin(self, owner: str, session_id: str) -> Lease:
        self._begun[session_id] = owner
        return Lease(session_id=session_id, fence=_BEGUN)

    async def claim(self, session_id: str, *, force: bool = False) -> Lease:
        self._begun.pop(session_id, None)
        values = (key(session_id), self._holder, self._seconds, force)
        rows = (await self._write([Do(_CLAIM, values, answers=True)]))[0]
        if not rows:
            raise SessionBusyError(retry_after=1.0)
        fence = int(rows[0][0])
        self._held[session_id] = fence
        return Lease(session_id=session_id, fence=fence)

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Lease]:
        written = [one for one in leases if not (one.fence == _BEGUN and one.session_id in self._begun)]
        if not written:
            return ()
        values = (self._seconds, [key(one.session_id) for one in written], [one.fence for one in written])
        kept = {row[0] for row in (await self._write([Do(_RENEW, values, answers=True)]))[0]}
        return [one for one in written if key(one.session_id) not in kept]

    def release(self, lease: Lease) -> None:
        if lease.fence == _BEGUN:
            self._begun.pop(lease.session_id, None)
        if self._held.get(lease.session_id) == lease.fence:
            del self._held[lease.session_id]
            task = asyncio.get_running_loop().create_task(self._free(lease))
            self._releasing.add(task)
            task.add_done_callback(self._releasing.discard)

    async def _free(self, lease: Lease) -> None:
        # If the database can't be reached, the lease ends by itself.
        with suppress(StoreUnavailableError):
            place = (key(lease.session_id), lease.fence)
            await self._write([Do("UPDATE leases SET until = 0 WHERE session_id = ? AND fence = ?", place)])

    def begun(self, session_id: str) -> str | None:
        """The owner of a session that was begun here and is not stored yet."""
        return self._begun.get(session_id)

    def ends_here(self, lease: Lease) -> bool:
        """Whether a lease is known here to have ended; the others only the database knows."""
        return lease.fence == _BEGUN and lease.session_id not in self._begun

    def needs_row(self, fence: Fence) -> Do | None:
        """A session that was begun, and is kept after it was stored, must be seen to be taken."""
        if fence.lease.fence != _BEGUN or not fence.keep:
            return None
        self._held[fence.lease.session_id] = _BEGUN
        values = (key(fence.lease.session_id), _BEGUN, self._holder, self._seconds)
        return Do(
            f"INSERT INTO leases (session_id, fence, holder, until) VALUES (?, ?, ?, {NOW} + ?) "
            "ON CONFLICT (session_id) DO NOTHING",
            values,
        )

    def saved(self, fence: Fence) -> None:
        """A session was stored, and given free with it."""
        if not fence.keep and self._held.get(fence.lease.session_id) == fence.lease.fence:
            del self._held[fence.lease.session_id]
