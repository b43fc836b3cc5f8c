"""Drops what has expired, a little at a time, so that nobody waits for it."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any

from frontdesk.clock import Clock
from frontdesk.data.expiry import Expiry
from frontdesk.errors import StoreError, StoreUnavailableError
from frontdesk.kit.stopping import stopped
from frontdesk.kit.tasks import spawn_clean
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.writes import Do

EVERY = 60.0
AT_ONCE = 200
_LOOKED_UP = 25 * AT_ONCE

_OLD_RUNS = "SELECT run_id, owner FROM runs WHERE kind = ? AND ended_at < ? ORDER BY ended_at, run_id, owner LIMIT ?"
_OLD_SESSIONS = """
SELECT session_id FROM sessions WHERE updated_at < ?
AND NOT EXISTS (SELECT 1 FROM sessions branches WHERE branches.parent_id = sessions.session_id)
AND NOT EXISTS (
    SELECT 1 FROM approvals
    WHERE approvals.owner = sessions.owner AND approvals.session_id = sessions.session_id AND status = 'pending'
)
AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.session_id = sessions.session_id AND until > ?)
LIMIT ?
"""
"""Those on which nothing builds, for which nobody waits, and in which nobody is at work."""


class Sweep:
    """Looks again and again for what has expired."""

    def __init__(self, engine: Engine, expiry: Expiry, clock: Clock, taken: Callable[[], Collection[str]]) -> None:
        """`taken` tells which sessions this process works on."""
        self._engine = engine
        self._expiry = expiry
        self._clock = clock
        self._taken = taken
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to look."""
        self._task = spawn_clean(self._go_on())

    async def stop(self) -> None:
        """Ends."""
        await stopped(self._task)

    async def _go_on(self) -> None:
        while True:
            # What went wrong was logged where it happened, and the next look comes.
            with suppress(StoreUnavailableError, StoreError):
                await self.once()
            await asyncio.sleep(EVERY)

    async def once(self) -> int:
        """Drops everything that has expired by now; returns how many records."""
        dropped = 0
        for lot in _lots(self._expiry, self._clock.now()):
            while (gone := await self._drop(lot)) == AT_ONCE:
                dropped += gone
            dropped += gone
        if self._expiry.sessions is not None:
            dropped += await self._drop_sessions(self._expiry.sessions)
        return dropped

    async def _drop(self, lot: Sequence[Do]) -> int:
        # Each lot is a transaction of its own, between those of the requests.
        return len((await self._engine.write(lot))[0])

    async def _drop_sessions(self, kept: float) -> int:
        """Looks them up beside the writes, because no index says which are old: each turn would have to keep it."""
        dropped, now = 0, self._clock.now()
        while True:
            rows = await self._engine.read(_OLD_SESSIONS, (now - kept, now, _LOOKED_UP))
            taken = self._taken()
            found = [session_id for (session_id,) in rows if session_id not in taken]
            for start in range(0, len(found), AT_ONCE):
                dropped += await self._drop(_sessions(found[start : start + AT_ONCE], now - kept))
            if not found:
                # What was dropped may have been all that built on others, so only an empty look is the last.
                return dropped


def _lots(expiry: Expiry, now: float) -> Iterator[list[Do]]:
    for kind, kept in (("background", expiry.continuations), ("request", expiry.runs)):
        if kept is not None:
            yield _with_parts("runs", "(run_id, owner)", _OLD_RUNS, (kind, now - kept, AT_ONCE), ("events",))
    # A grant says itself when it ends; what is kept longer than that is kept to be shown.
    if expiry.grants is not None:
        yield _plain("grants", "grant_id", "expires_at < ?", now)
    if expiry.last_seen is not None:
        yield _plain("last_seen", "isolation_key", "at < ?", now - expiry.last_seen)
    if expiry.approvals is not None:
        yield _plain("approvals", "number", "decided_at < ?", now - expiry.approvals)
    if expiry.inbox is not None:
        yield _plain("inbox", "number", "done_at < ?", now - expiry.inbox)
    if expiry.deliveries is not None:
        yield _plain("deliveries", "delivery_id", "ended_at < ?", now - expiry.deliveries)
    if expiry.tasks is not None:
        yield _plain("tasks", "task_id", "ended_at < ?", now - expiry.tasks)


def _sessions(ids: Sequence[str], limit: float) -> list[Do]:
    marks = ", ".join("?" for _ in ids)
    # Looked at again: a turn may have come since.
    found = f"SELECT session_id FROM sessions WHERE session_id IN ({marks}) AND updated_at < ?"
    return _with_parts("sessions", "session_id", found, (*ids, limit), ("history", "names", "leases", "checkpoints"))


def _plain(table: str, key: str, old: str, limit: float) -> list[Do]:
    found = f"SELECT {key} FROM {table} WHERE {old} LIMIT ?"
    return [Do(f"DELETE FROM {table} WHERE {key} IN ({found}) RETURNING 1", (limit, AT_ONCE), answers=True)]


def _with_parts(table: str, key: str, found: str, values: tuple[Any, ...], parts: tuple[str, ...]) -> list[Do]:
    """The parts first: what they belong to says which they are."""
    deleted = [Do(f"DELETE FROM {part} WHERE {key} IN ({found})", values) for part in parts]
    return [*deleted, Do(f"DELETE FROM {table} WHERE {key} IN ({found}) RETURNING 1", values, answers=True)]
