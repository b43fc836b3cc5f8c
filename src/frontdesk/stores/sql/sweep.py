"""Drops expired records, a few at a time, so that requests do not wait for it."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress

from frontdesk.clock import Clock
from frontdesk.data.expiry import Expiry
from frontdesk.errors import StoreError, StoreUnavailableError
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.expired import AT_ONCE, Batch, batches, conversations, files, identities, sessions
from frontdesk.stores.sql.tables import key
from frontdesk.stores.sql.writes import Do

EVERY = 60.0
PAGE = 25 * AT_ONCE
"""The number of rows that one pass reads of a table without an index by age."""
_FILES_AT_ONCE = 10
"""The number of files that a transaction drops: each may have many megabytes."""
Key = tuple[str, ...]


class Sweep:
    """Drops expired records at intervals."""

    def __init__(self, engine: Engine, expiry: Expiry, clock: Clock, taken: Callable[[], Collection[str]]) -> None:
        """Choose the tables to read page by page; `taken` returns the sessions that this process works on."""
        self._engine = engine
        self._expiry = expiry
        self._clock = clock
        self._taken = taken
        self._pages: list[_Pages] = []
        if expiry.sessions is not None:
            self._pages.append(_Pages("sessions", ("session_id",), "updated_at", expiry.sessions, self._drop_sessions))
        if expiry.conversations is not None:
            columns, kept = ("conversation_id",), expiry.conversations
            self._pages.append(_Pages("conversations", columns, "updated_at", kept, self._drop_conversations))
        if expiry.files is not None:
            # After those that use them.
            self._pages.append(_Pages("files", ("file_id",), "touched_at", expiry.files, self._drop_files))
        if expiry.identities_kept is not None:
            # Last, because the records dropped before may have been all that an identity owned.
            columns, kept = ("channel", "native_id"), expiry.identities_kept
            self._pages.append(_Pages("identities", columns, "seen_at", kept, self._drop_identities))
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task."""
        self._task = spawn_clean(self._run())

    async def stop(self) -> None:
        """Stop the task."""
        await stopped(self._task)

    async def _run(self) -> None:
        while True:
            # The error was logged where it happened, and the next pass tries again.
            with suppress(StoreUnavailableError, StoreError):
                await self.look()
            await asyncio.sleep(EVERY)

    async def look(self) -> int:
        """Drop old rows that an index finds, and those on the next page of the other tables; return how many.

        After a page with old rows the next one follows at once. So a pass costs one page and what it drops, however
        large the tables are.
        """
        dropped = await self._drop_indexed()
        for pages in self._pages:
            while gone := await pages.next(self._engine, self._clock.now()):
                dropped += gone
        return dropped

    async def once(self) -> int:
        """Drop all records that have expired; return how many."""
        dropped = await self._drop_indexed()
        for pages in self._pages:
            # The dropped sessions may have been the last branches of others, so repeat until nothing is dropped.
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

    async def _drop_sessions(self, keys: Sequence[Key], now: float) -> int:
        taken = {key(session_id) for session_id in self._taken()}
        free = [session_id for (session_id,) in keys if session_id not in taken]
        return await self._drop(sessions(free, self._expiry, now)) if free else 0

    async def _drop_conversations(self, keys: Sequence[Key], now: float) -> int:
        return await self._drop(conversations([name for (name,) in keys], self._expiry, now))

    async def _drop_files(self, keys: Sequence[Key], now: float) -> int:
        ids = [file_id for (file_id,) in keys]
        batches = [ids[start : start + _FILES_AT_ONCE] for start in range(0, len(ids), _FILES_AT_ONCE)]
        return sum([await self._drop(files(batch, self._expiry, now)) for batch in batches])

    async def _drop_identities(self, keys: Sequence[Key], now: float) -> int:
        return await self._drop(identities([(channel, name) for channel, name in keys], self._expiry, now))

    async def _drop(self, batch: Batch) -> int:
        # Each write is a transaction of its own, so that requests can come between.
        for part in batch.parts:
            while len((await self._engine.write([part]))[0]) == AT_ONCE:
                pass
        return len((await self._engine.write(batch.whole))[0])


class _Pages:
    """A table read in the order of its keys: an index by age would cost every turn a write."""

    def __init__(
        self,
        table: str,
        columns: Key,
        time: str,
        kept: float,
        drop: Callable[[Sequence[Key], float], Awaitable[int]],
    ) -> None:
        """Start at the first page; `time` is the column with the time of the last use."""
        self._table = table
        self._columns = ", ".join(columns)
        self._marks = f"({', '.join('?' for _ in columns)})"
        self._time = time
        self._kept = kept
        self._drop = drop
        self._after: Key | None = None

    async def all(self, engine: Engine, now: float) -> int:
        """Drop the old rows of the whole table; return how many."""
        self._after = None
        dropped = await self.next(engine, now)
        while self._after is not None:
            dropped += await self.next(engine, now)
        return dropped

    async def next(self, engine: Engine, now: float) -> int:
        """Drop the old rows of the next page, or of the first after the last; return how many."""
        behind, values = "", ()
        if self._after is not None:
            behind, values = f"WHERE ({self._columns}) > {self._marks} ", self._after
        sql = f"SELECT {self._columns}, {self._time} FROM {self._table} {behind}ORDER BY {self._columns} LIMIT ?"
        rows = [(tuple(key), at) for *key, at in await engine.read(sql, (*values, PAGE))]
        await self._set_time(engine, [key for key, at in rows if at is None], now)
        old = [key for key, at in rows if at is not None and at < now - self._kept]
        dropped = 0
        for start in range(0, len(old), AT_ONCE):
            dropped += await self._drop(old[start : start + AT_ONCE], now)
        self._after = rows[-1][0] if len(rows) == PAGE else None
        return dropped

    async def _set_time(self, engine: Engine, keys: Sequence[Key], now: float) -> None:
        """Set the time of rows that an earlier version wrote without one."""
        for start in range(0, len(keys), AT_ONCE):
            batch = keys[start : start + AT_ONCE]
            rows = ", ".join(self._marks for _ in batch)
            where = f"({self._columns}) IN (VALUES {rows}) AND {self._time} IS NULL"
            values = (now, *(value for key in batch for value in key))
            await engine.write([Do(f"UPDATE {self._table} SET {self._time} = ? WHERE {where}", values)])
