"""Drops what has expired, a little at a time, so that nobody waits for it."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress

from frontdesk.clock import Clock
from frontdesk.data.expiry import Expiry
from frontdesk.errors import StoreError, StoreUnavailableError
from frontdesk.kit.stopping import stopped
from frontdesk.kit.tasks import spawn_clean
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.expired import AT_ONCE, Batch, batches, conversations, sessions
from frontdesk.stores.sql.tables import key
from frontdesk.stores.sql.writes import Do

EVERY = 60.0
PAGE = 25 * AT_ONCE
"""How many rows a look reads of a table whose old rows no index knows."""


class Sweep:
    """Looks again and again for what has expired."""

    def __init__(self, engine: Engine, expiry: Expiry, clock: Clock, taken: Callable[[], Collection[str]]) -> None:
        """`taken` tells which sessions this process works on."""
        self._engine = engine
        self._expiry = expiry
        self._clock = clock
        self._taken = taken
        self._pages: list[_Pages] = []
        if expiry.sessions is not None:
            self._pages.append(_Pages("sessions", "session_id", expiry.sessions, self._drop_sessions))
        if expiry.conversations is not None:
            self._pages.append(
                _Pages("conversations", "conversation_id", expiry.conversations, self._drop_conversations)
            )
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
                await self.look()
            await asyncio.sleep(EVERY)

    async def look(self) -> int:
        """Drop what indexes show to be old, and what is old on the next page of the other tables; returns how much.

        A page on which something was old is followed by the next at once, so that a look costs a page and what it
        drops, however large the tables are.
        """
        dropped = await self._drop_indexed()
        for pages in self._pages:
            while gone := await pages.next(self._engine, self._clock.now()):
                dropped += gone
        return dropped

    async def once(self) -> int:
        """Drop everything that has expired by now; returns how many records."""
        dropped = await self._drop_indexed()
        for pages in self._pages:
            # What was dropped may have been all that built on others, so only an empty look is the last.
            while gone := await pages.all(self._engine, self._clock.now()):
                dropped += gone
        return dropped

    async def _drop_indexed(self) -> int:
        dropped = 0
        for batch in batches(self._expiry, self._clock.now()):
            while (gone := await self._drop(batch)) == AT_ONCE:
                dropped += gone
            dropped += gone
        return dropped

    async def _drop_sessions(self, ids: Sequence[str], now: float) -> int:
        taken = {key(session_id) for session_id in self._taken()}
        free = [session_id for session_id in ids if session_id not in taken]
        return await self._drop(sessions(free, self._expiry, now)) if free else 0

    async def _drop_conversations(self, ids: Sequence[str], now: float) -> int:
        return await self._drop(conversations(ids, self._expiry, now))

    async def _drop(self, batch: Batch) -> int:
        # Each write is a transaction of its own, between those of the requests.
        for part in batch.parts:
            while len((await self._engine.write([part]))[0]) == AT_ONCE:
                pass
        return len((await self._engine.write(batch.whole))[0])


class _Pages:
    """A table without an index of what is old, which each turn would have to keep; read in the order of its keys."""

    def __init__(
        self, table: str, column: str, kept: float, drop: Callable[[Sequence[str], float], Awaitable[int]]
    ) -> None:
        self._table = table
        self._column = column
        self._kept = kept
        self._drop = drop
        self._after: str | None = None

    async def all(self, engine: Engine, now: float) -> int:
        """Drop what is old in the whole table; returns how many records."""
        self._after = None
        dropped = await self.next(engine, now)
        while self._after is not None:
            dropped += await self.next(engine, now)
        return dropped

    async def next(self, engine: Engine, now: float) -> int:
        """Drop what is old on the page behind the last one, or on the first; returns how many records."""
        behind, values = ("", ()) if self._after is None else (f"WHERE {self._column} > ? ", (self._after,))
        sql = f"SELECT {self._column}, updated_at FROM {self._table} {behind}ORDER BY {self._column} LIMIT ?"
        rows = await engine.read(sql, (*values, PAGE))
        await self._begin(engine, [name for name, updated_at in rows if updated_at is None], now)
        old = [name for name, updated_at in rows if updated_at is not None and updated_at < now - self._kept]
        dropped = 0
        for start in range(0, len(old), AT_ONCE):
            dropped += await self._drop(old[start : start + AT_ONCE], now)
        self._after = rows[-1][0] if len(rows) == PAGE else None
        return dropped

    async def _begin(self, engine: Engine, names: Sequence[str], now: float) -> None:
        """Let the time of rows begin that were written by a version which did not note it."""
        for start in range(0, len(names), AT_ONCE):
            some = names[start : start + AT_ONCE]
            marks = ", ".join("?" for _ in some)
            where = f"{self._column} IN ({marks}) AND updated_at IS NULL"
            await engine.write([Do(f"UPDATE {self._table} SET updated_at = ? WHERE {where}", (now, *some))])
