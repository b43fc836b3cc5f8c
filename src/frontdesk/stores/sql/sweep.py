"""Drops what has expired, a little at a time, so that nobody waits for it."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from frontdesk.clock import Clock
from frontdesk.data.expiry import Expiry
from frontdesk.errors import StoreUnavailableError
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.writes import Do

EVERY = 60.0
AT_ONCE = 200

_OLD_RUNS = "SELECT run_id, owner FROM runs WHERE kind = ? AND ended_at < ? ORDER BY ended_at, run_id, owner LIMIT ?"
_OLD_SESSIONS = "SELECT session_id FROM sessions WHERE updated_at < ? ORDER BY session_id LIMIT ?"


class Sweep:
    """Looks again and again for what has expired."""

    def __init__(self, engine: Engine, expiry: Expiry, clock: Clock) -> None:
        self._engine = engine
        self._expiry = expiry
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to look."""
        self._task = asyncio.get_running_loop().create_task(self._go_on())

    async def stop(self) -> None:
        """Ends."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _go_on(self) -> None:
        while True:
            # What went wrong was logged where it happened, and the next look comes.
            with suppress(StoreUnavailableError):
                await self.once()
            await asyncio.sleep(EVERY)

    async def once(self) -> int:
        """Drops everything that has expired by now; returns how many records."""
        dropped = 0
        for lot in _lots(self._expiry, self._clock.now()):
            while True:
                # Each lot is a transaction of its own, between those of the requests.
                gone = len((await self._engine.write(lot))[0])
                dropped += gone
                if gone < AT_ONCE:
                    break
        return dropped


def _lots(expiry: Expiry, now: float) -> Iterator[list[Do]]:
    for kind, kept in (("background", expiry.continuations), ("request", expiry.runs)):
        if kept is not None:
            yield _with_parts("runs", "(run_id, owner)", _OLD_RUNS, (kind, now - kept, AT_ONCE), ("events",))
    if expiry.sessions is not None:
        parts = ("history", "names", "leases", "checkpoints")
        yield _with_parts("sessions", "session_id", _OLD_SESSIONS, (now - expiry.sessions, AT_ONCE), parts)
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


def _plain(table: str, key: str, old: str, limit: float) -> list[Do]:
    found = f"SELECT {key} FROM {table} WHERE {old} LIMIT ?"
    return [Do(f"DELETE FROM {table} WHERE {key} IN ({found}) RETURNING 1", (limit, AT_ONCE), answers=True)]


def _with_parts(table: str, key: str, found: str, values: tuple[Any, ...], parts: tuple[str, ...]) -> list[Do]:
    """The parts first: what they belong to says which they are."""
    deleted = [Do(f"DELETE FROM {part} WHERE {key} IN ({found})", values) for part in parts]
    return [*deleted, Do(f"DELETE FROM {table} WHERE {key} IN ({found}) RETURNING 1", values, answers=True)]
