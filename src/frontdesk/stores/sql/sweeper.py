"""Deletes expired records in small batches, so that requests are not delayed."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from frontdesk.clock import Clock
from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.errors import StoreError, StoreUnavailableError
from frontdesk.models.operations import Expiry
from frontdesk.stores.sql.tables import key
from frontdesk.stores.sql.writes import Do, Engine

BATCH_ROWS = 200
"""The number of rows of a table that a transaction drops at most."""

_OLD_RUNS = (
    "SELECT run_id, owner FROM runs WHERE kind = ? AND COALESCE(ended_at, 9e99) < ? "
    "ORDER BY COALESCE(ended_at, 9e99), run_id, owner LIMIT ?"
)
_OLD_SESSIONS = """
FROM sessions WHERE session_id IN ({marks}) AND updated_at < ?
AND NOT EXISTS (SELECT 1 FROM sessions branches WHERE branches.parent_id = sessions.session_id)
AND (updated_at < ? OR NOT EXISTS (
    SELECT 1 FROM approvals
    WHERE approvals.owner = sessions.owner AND approvals.session_id = sessions.session_id AND status = 'pending'
))
AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.session_id = sessions.session_id AND until > ?)
"""
"""Old sessions without branches, without approvals that are still awaited, and without a lease."""

_ABOUT_APPROVALS = (
    ("approval_votes", "owner, approval_id, voter"),
    ("approval_places", "owner, approval_id, channel, place, handle"),
    ("approval_approvers", "approver, owner, approval_id"),
)
"""The tables about approvals, and their keys."""
_OWNED = (
    ("sessions", "owner"),
    ("conversations", "owner"),
    ("approvals", "owner"),
    ("background", "owner"),
    ("deliveries", "owner"),
    ("files", "owner"),
    ("watchers", "owner"),
    ("links", "isolation_key"),
    ("last_seen", "isolation_key"),
)
"""The tables and columns whose index finds what an isolation key owns."""


class Batch(NamedTuple):
    """A batch of records to delete."""

    parts: Sequence[Do]
    """Statements that each drop a few dependent rows, and are repeated until there are none left."""
    whole: Sequence[Do]
    """One transaction that drops the records; its first answer has a row for each."""


def batches(expiry: Expiry, now: float) -> Iterator[Batch]:
    """Yield a batch for each kind of record with an index by age."""
    for kind, kept in (("background", expiry.continuations), ("request", expiry.runs)):
        if kept is not None:
            yield _runs(kind, now - kept)
    # A grant has its own time of expiry.
    if expiry.grants is not None:
        yield _plain("grants", "grant_id", "expires_at", now)
        # No grant lasts so long: the clock was set back, and the grant would become valid again.
        yield _plain("grants", "grant_id", "expires_at", now + 2 * expiry.grants, later=True)
    if expiry.last_seen is not None:
        yield _plain("last_seen", "isolation_key", "at", now - expiry.last_seen)
    if expiry.approvals is not None:
        yield _approvals(now - expiry.approvals)
        for table, key in _ABOUT_APPROVALS:
            yield _delete_left_over(table, key, now - expiry.approvals)
    if expiry.audit is not None:
        yield _plain("audit", "number", "at", now - expiry.audit)
    if expiry.inbox is not None:
        yield _plain("inbox", "number", "done_at", now - expiry.inbox)
    if expiry.deliveries is not None:
        yield _plain("deliveries", "delivery_id", "ended_at", now - expiry.deliveries)
    if expiry.tasks is not None:
        yield _plain("tasks", "task_id", "ended_at", now - expiry.tasks)
    if expiry.set_aside is not None:
        yield _plain("set_aside", "number", "at", now - expiry.set_aside)
    # A nonce has its own time of expiry too.
    yield _plain("nonces", "scope, nonce", "expires_at", now)
    yield _plain("channel_values", "channel, storage, name", "expires_at", now)
    yield _plain("watchers", "owner, watcher_id", "expires_at", now)
    yield _plain("live", "run_id, channel, place", "expires_at", now)


def sessions(ids: Sequence[str], expiry: Expiry, now: float) -> Batch:
    """Delete expired sessions. Each statement checks again, because a turn may have come since."""
    kept = now - (expiry.sessions or 0.0)
    # Without a limit, nothing is old enough.
    limit = -1.0 if expiry.pending_approvals is None else min(kept, now - expiry.pending_approvals)
    old, values = _OLD_SESSIONS.format(marks=_marks(ids)), (*ids, kept, limit, now)
    asked = f"SELECT owner, session_id {old}"
    parts = [
        _some("history", "number", "session_id", f"SELECT session_id {old}", values),
        *_about(f"SELECT owner, approval_id FROM approvals WHERE (owner, session_id) IN ({asked})", values),
        _some("approvals", "number", "owner, session_id", asked, values),
        _some("checkpoints", "session_id, checkpoint_id", "session_id", f"SELECT session_id {old}", values),
    ]
    whole = [Do(f"DELETE {old} RETURNING session_id", values, answers=True)]
    # Rows that were added since belong to a session that stays.
    rest = f"session_id IN ({_marks(ids)}) AND session_id NOT IN (SELECT session_id FROM sessions s WHERE"
    rest = f"{rest} s.session_id IN ({_marks(ids)}))"
    tables = ("history", "names", "leases", "checkpoints", "past_sessions", "session_titles")
    return Batch(parts, [*whole, *(Do(f"DELETE FROM {table} WHERE {rest}", (*ids, *ids)) for table in tables)])


def conversations(ids: Sequence[str], expiry: Expiry, now: float) -> Batch:
    old = f"FROM conversations WHERE conversation_id IN ({_marks(ids)}) AND updated_at < ?"
    values = (*ids, now - (expiry.conversations or 0.0))
    items = _some("items", "number", "conversation_id", f"SELECT conversation_id {old}", values)
    rest = f"SELECT conversation_id FROM conversations c WHERE c.conversation_id IN ({_marks(ids)})"
    return Batch(
        [items],
        [
            Do(f"DELETE {old} RETURNING 1", values, answers=True),
            Do(
                f"DELETE FROM items WHERE conversation_id IN ({_marks(ids)}) AND conversation_id NOT IN ({rest})",
                (*ids, *ids),
            ),
        ],
    )


def identities(keys: Sequence[tuple[str, str]], expiry: Expiry, now: float) -> Batch:
    """Delete expired identities. The statement checks again, because one may have been used since."""
    # Without a limit, nothing is old enough.
    before = -1.0 if expiry.identities_kept is None else now - expiry.identities_kept
    rows = ", ".join("(?, ?)" for _ in keys)
    values = (*(value for pair in keys for value in pair), before)
    old = f"DELETE FROM identities WHERE (channel, native_id) IN (VALUES {rows}) AND seen_at < ? AND version = 0"
    unused = " ".join(
        f"AND NOT EXISTS (SELECT 1 FROM {table} WHERE {table}.{column} = identities.isolation_key)"
        for table, column in _OWNED
    )
    linked = "SELECT 1 FROM links WHERE links.channel = identities.channel AND links.native_id = identities.native_id"
    return Batch((), [Do(f"{old} {unused} AND NOT EXISTS ({linked}) RETURNING 1", values, answers=True)])


USES = {
    "session": "sessions WHERE session_id = file_uses.place",
    "run": "runs WHERE run_id = file_uses.place AND runs.owner = file_uses.owner",
    "event": "inbox WHERE event_id = file_uses.place AND channel = file_uses.owner",
    "conversation": "conversations WHERE conversation_id = file_uses.place",
}
"""The records that use files, by their kinds."""


def files(ids: Sequence[str], expiry: Expiry, now: float) -> Batch:
    """Delete files that no record uses. Uses of unknown kinds count too."""
    gone = " OR ".join(f"(kind = '{kind}' AND NOT EXISTS (SELECT 1 FROM {record}))" for kind, record in USES.items())
    users = f"SELECT file_id, kind, place, owner FROM file_uses WHERE file_id IN ({_marks(ids)}) AND ({gone}) LIMIT ?"
    columns = "file_id, kind, place, owner"
    unused = Do(f"DELETE FROM file_uses WHERE ({columns}) IN ({users}) RETURNING 1", (*ids, BATCH_ROWS), answers=True)
    # Without a limit, nothing is old enough.
    before = -1.0 if expiry.files is None else now - expiry.files
    old = f"file_id IN ({_marks(ids)}) AND touched_at < ?"
    old = f"{old} AND NOT EXISTS (SELECT 1 FROM file_uses WHERE file_uses.file_id = files.file_id)"
    values = (*ids, before)
    # The change locks the rows: whoever uses one of them again comes before, or finds that it is not there.
    marked = Do(f"UPDATE files SET complete = 0 WHERE {old} RETURNING file_id", values, answers=True)
    dropped = f"SELECT file_id FROM files WHERE {old} AND complete = 0"
    chunks = Do(f"DELETE FROM file_chunks WHERE file_id IN ({dropped})", values)
    return Batch([unused], [marked, chunks, Do(f"DELETE FROM files WHERE {old} AND complete = 0", values)])


def _runs(kind: str, limit: float) -> Batch:
    values = (kind, limit, BATCH_ROWS)
    events = _some("events", "run_id, owner, number", "run_id, owner", _OLD_RUNS, values)
    gone = Do(f"DELETE FROM runs WHERE (run_id, owner) IN ({_OLD_RUNS}) RETURNING 1", values, answers=True)
    return Batch([events], [gone])


def _approvals(limit: float) -> Batch:
    old = "FROM approvals WHERE decided_at < ? ORDER BY decided_at, number LIMIT ?"
    values = (limit, BATCH_ROWS)
    gone = Do(f"DELETE FROM approvals WHERE number IN (SELECT number {old}) RETURNING 1", values, answers=True)
    return Batch(_about(f"SELECT owner, approval_id {old}", values), [gone])


def _about(approvals: str, values: tuple[Any, ...]) -> list[Do]:
    """Delete a few votes and places of approvals that are about to be deleted."""
    return [_some(table, key, "owner, approval_id", approvals, values) for table, key in _ABOUT_APPROVALS]


def _delete_left_over(table: str, key: str, limit: float) -> Batch:
    """Delete rows of approvals that a host of an earlier version has deleted without them."""
    gone = f"SELECT 1 FROM approvals a WHERE a.owner = {table}.owner AND a.approval_id = {table}.approval_id"
    old = f"SELECT {key} FROM {table} WHERE at < ? AND NOT EXISTS ({gone}) LIMIT ?"
    return Batch(
        (), [Do(f"DELETE FROM {table} WHERE ({key}) IN ({old}) RETURNING 1", (limit, BATCH_ROWS), answers=True)]
    )


def _plain(table: str, key: str, column: str, limit: float, *, later: bool = False) -> Batch:
    old = f"SELECT {key} FROM {table} WHERE {column} {'>' if later else '<'} ? LIMIT ?"
    return Batch(
        (), [Do(f"DELETE FROM {table} WHERE ({key}) IN ({old}) RETURNING 1", (limit, BATCH_ROWS), answers=True)]
    )


def _some(part: str, key: str, of: str, whole: str, values: tuple[Any, ...]) -> Do:
    """Delete a few rows that depend on records to be deleted."""
    rows = f"SELECT {key} FROM {part} WHERE ({of}) IN ({whole}) LIMIT ?"
    return Do(f"DELETE FROM {part} WHERE ({key}) IN ({rows}) RETURNING 1", (*values, BATCH_ROWS), answers=True)


def _marks(ids: Sequence[str]) -> str:
    return ", ".join("?" for _ in ids)


SWEEP_INTERVAL_SECONDS = 60.0
PAGE = 25 * BATCH_ROWS
"""The number of rows that one pass reads of a table without an index by age."""
_BATCH_FILES = 10
"""The number of files that a transaction drops: each may have many megabytes."""
Key = tuple[str, ...]


class Sweep:
    def __init__(self, engine: Engine, expiry: Expiry, clock: Clock, taken: Callable[[], Collection[str]]) -> None:
        """Choose the tables to read page by page. `taken` returns the sessions that this process holds."""
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
        self._task = spawn_clean(self._run())

    async def stop(self) -> None:
        await cancel_and_wait(self._task)

    async def _run(self) -> None:
        while True:
            # The error was logged where it happened, and the next pass tries again.
            with suppress(StoreUnavailableError, StoreError):
                await self.look()
            await asyncio.sleep(SWEEP_INTERVAL_SECONDS)

    async def look(self) -> int:
        """Delete old rows found by an index, and those on the next page of the other tables. Return their number.

        After a page with old rows the next one follows immediately. A pass therefore costs one page plus the deleted
        rows, however large the tables are.
        """
        dropped = await self._drop_indexed()
        for pages in self._pages:
            while gone := await pages.next(self._engine, self._clock.now()):
                dropped += gone
        return dropped

    async def once(self) -> int:
        """Delete all expired records. Return their number."""
        dropped = await self._drop_indexed()
        for pages in self._pages:
            # The dropped sessions may have been the last branches of others, so repeat until nothing is dropped.
            while gone := await pages.all(self._engine, self._clock.now()):
                dropped += gone
        return dropped

    async def _drop_indexed(self) -> int:
        dropped = 0
        for batch in batches(self._expiry, self._clock.now()):
            while (gone := await self._drop(batch)) == BATCH_ROWS:
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
        batches = [ids[start : start + _BATCH_FILES] for start in range(0, len(ids), _BATCH_FILES)]
        return sum([await self._drop(files(batch, self._expiry, now)) for batch in batches])

    async def _drop_identities(self, keys: Sequence[Key], now: float) -> int:
        return await self._drop(identities([(channel, name) for channel, name in keys], self._expiry, now))

    async def _drop(self, batch: Batch) -> int:
        # Each write is a transaction of its own, so that requests can come between.
        for part in batch.parts:
            while len((await self._engine.write([part]))[0]) == BATCH_ROWS:
                pass
        return len((await self._engine.write(batch.whole))[0])


class _Pages:
    """A table read in key order, because an index by age would cost every turn a write."""

    def __init__(
        self,
        table: str,
        columns: Key,
        time: str,
        kept: float,
        drop: Callable[[Sequence[Key], float], Awaitable[int]],
    ) -> None:
        """Start at the first page. `time` is the column with the time of the last use."""
        self._table = table
        self._columns = ", ".join(columns)
        self._marks = f"({', '.join('?' for _ in columns)})"
        self._time = time
        self._kept = kept
        self._drop = drop
        self._after: Key | None = None

    async def all(self, engine: Engine, now: float) -> int:
        """Delete the old rows of the whole table. Return their number."""
        self._after = None
        dropped = await self.next(engine, now)
        while self._after is not None:
            dropped += await self.next(engine, now)
        return dropped

    async def next(self, engine: Engine, now: float) -> int:
        """Delete the old rows of the next page, wrapping around at the end. Return their number."""
        behind, values = "", ()
        if self._after is not None:
            behind, values = f"WHERE ({self._columns}) > {self._marks} ", self._after
        sql = f"SELECT {self._columns}, {self._time} FROM {self._table} {behind}ORDER BY {self._columns} LIMIT ?"
        rows = [(tuple(key), at) for *key, at in await engine.read(sql, (*values, PAGE))]
        await self._set_time(engine, [key for key, at in rows if at is None], now)
        old = [key for key, at in rows if at is not None and at < now - self._kept]
        dropped = 0
        for start in range(0, len(old), BATCH_ROWS):
            dropped += await self._drop(old[start : start + BATCH_ROWS], now)
        self._after = rows[-1][0] if len(rows) == PAGE else None
        return dropped

    async def _set_time(self, engine: Engine, keys: Sequence[Key], now: float) -> None:
        """Set the time of rows that an earlier version wrote without one."""
        for start in range(0, len(keys), BATCH_ROWS):
            batch = keys[start : start + BATCH_ROWS]
            rows = ", ".join(self._marks for _ in batch)
            where = f"({self._columns}) IN (VALUES {rows}) AND {self._time} IS NULL"
            values = (now, *(value for key in batch for value in key))
            await engine.write([Do(f"UPDATE {self._table} SET {self._time} = ? WHERE {where}", values)])
