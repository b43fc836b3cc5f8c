"""Sessions, runs and checkpoints in SQL: names, records, leases and history."""

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from frontdesk.clock import Clock, Moment
from frontdesk.concurrency.offload import run_sized
from frontdesk.errors import TooManyRequestsError
from frontdesk.interfaces.store_sessions import FREE_BYTES, WATCHERS_FRESH_SECONDS, Charge
from frontdesk.json_size import estimate_row
from frontdesk.models.conversation import HistoryPage, build_page
from frontdesk.models.operations import OPEN
from frontdesk.models.run import (
    FINAL,
    MAX_COUNTED_RUNS,
    RunEvent,
    RunFilter,
    RunPosition,
    RunRecord,
    RunSlice,
)
from frontdesk.models.session import Lease, SessionName, SessionRecord
from frontdesk.models.watcher import TOO_MANY_WATCHERS, WatcherRecord
from frontdesk.serialization.codec import encode
from frontdesk.stores.sql.history_sizes import READ_AHEAD_BYTES, estimate, estimate_stored
from frontdesk.stores.sql.records import Place, Records
from frontdesk.stores.sql.tables import key, name_key, text
from frontdesk.stores.sql.writes import Do, Engine, Rows

BYTES_KEPT = 32 * 1024 * 1024
_SESSION_OVERHEAD_BYTES = 512
_MESSAGE_OVERHEAD_BYTES = 2048
"""The memory that a message takes beside its text, roughly."""

_LINE = """
WITH RECURSIVE line (session_id, parent_id, parent_messages, depth) AS (
    SELECT session_id, parent_id, parent_messages, 0 FROM sessions WHERE session_id = ? AND owner = ?
    UNION ALL
    SELECT s.session_id, s.parent_id, s.parent_messages, line.depth + 1
    FROM line JOIN sessions s ON s.session_id = line.parent_id AND s.owner = ?
)
SELECT session_id, parent_messages FROM line ORDER BY depth DESC
"""
_ROWS = "SELECT number, data FROM history WHERE session_id = ? AND number > ? ORDER BY number"
_CHUNK = "SELECT data FROM history WHERE session_id = ? AND number > ? AND number <= ? ORDER BY number"
_SIZE = "(SELECT COALESCE(SUM(LENGTH(data)), 0) AS size FROM history WHERE session_id = ? AND number > ?) w"
# The data is left out if all of it together is too large to be read before it is charged.
_ALONE = f"""
SELECT s.parent_id, h.number, LENGTH(h.data), CASE WHEN w.size <= ? THEN h.data END
FROM sessions s CROSS JOIN {_SIZE} LEFT JOIN history h ON h.session_id = s.session_id AND h.number > ?
WHERE s.session_id = ? AND s.owner = ? ORDER BY h.number
"""
_OWN = f"""
SELECT h.number, LENGTH(h.data), CASE WHEN w.size <= ? THEN h.data END
FROM history h CROSS JOIN {_SIZE} WHERE h.session_id = ? AND h.number > ? ORDER BY h.number
"""
_LAST = """
SELECT s.parent_id, h.number, h.data
FROM sessions s LEFT JOIN history h ON h.session_id = s.session_id AND h.number < ?
WHERE s.session_id = ? AND s.owner = ? ORDER BY h.number DESC LIMIT ?
"""
_BEHIND_ALL = _UNBOUNDED = 2**62


class _CachedHistory:
    __slots__ = ("last", "messages", "size", "weight")

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.last = 0
        self.size = _SESSION_OVERHEAD_BYTES
        self.weight = 0
        """The estimate with which they are charged."""


class _Found(NamedTuple):
    """The cached messages of one session, and the later rows with their estimate."""

    place: str
    cached: _CachedHistory
    rows: Sequence[tuple[int, bytes]] | None
    """`None` if they are too large to be read before they are charged."""
    length: int
    weight: int


class Histories:
    def __init__(self, engine: Engine, records: Records, *, limit: int = BYTES_KEPT) -> None:
        self._engine = engine
        self._records = records
        self._known: OrderedDict[str, _CachedHistory] = OrderedDict()
        self._limit = limit
        self._size = 0

    async def read(self, owner: str, session_id: str, charge: Charge | None = None) -> Sequence[Any]:
        """Return all messages of a session, ancestors' messages first, after charging them."""
        place = key(session_id)
        cached = self._known.get(place) or _CachedHistory()
        behind = (place, cached.last)
        most = _UNBOUNDED if charge is None else READ_AHEAD_BYTES
        rows = await self._engine.read(_ALONE, (most, *behind, cached.last, place, key(owner)))
        if not rows:
            return ()
        if rows[0][0] is not None:
            return await self._branch(owner, session_id, charge)
        found = await self._estimate(place, cached, [row[1:] for row in rows if row[1]], charge)
        if charge is not None and found.weight > FREE_BYTES:
            await charge(found.weight)
        return list(await self._read_added(found))

    async def page(self, owner: str, session_id: str, before: int | None, limit: int) -> HistoryPage:
        """Return the messages of the last rows before one. They are not cached, as few sessions are read completely."""
        end = _BEHIND_ALL if before is None else before
        rows = await self._engine.read(_LAST, (end, key(session_id), key(owner), limit + 1))
        if rows and rows[0][0] is not None:
            # What a branch has in common with its parent is counted in messages, and so are its positions.
            return build_page(await self._branch(owner, session_id, None), before, limit)
        rows = [(number, data) for _, number, data in rows if number]
        kept = rows[:limit][::-1]
        if not kept:
            return HistoryPage()
        messages = (await self._extend(_CachedHistory(), kept)).messages
        return HistoryPage(messages=messages, before=kept[0][0] if len(rows) > limit else None)

    async def _branch(self, owner: str, session_id: str, charge: Charge | None) -> Sequence[Any]:
        lineage = await self._engine.read(_LINE, (key(session_id), key(owner), key(owner)))
        line: list[_Found] = []
        left = _UNBOUNDED if charge is None else READ_AHEAD_BYTES
        for place, _ in lineage:
            cached = self._known.get(place) or _CachedHistory()
            rows = await self._engine.read(_OWN, (left, place, cached.last, place, cached.last))
            line.append(await self._estimate(place, cached, rows, charge))
            left = max(0, left - line[-1].length)
        # All at once: a turn that held a part while it waits for the rest could block others, and they the turn.
        weight = sum(found.weight for found in line)
        if charge is not None and weight > FREE_BYTES:
            await charge(weight)
        messages: list[Any] = []
        for (_, shared), found in zip(lineage, line, strict=True):
            if shared is not None:
                del messages[shared:]
            messages += await self._read_added(found)
        return messages

    async def _estimate(self, place: str, cached: _CachedHistory, rows: Rows, charge: Charge | None) -> _Found:
        """Estimate the rows after a session's cached messages. Rows are number, length, and optional data."""
        if not rows:
            return _Found(place, cached, (), 0, cached.weight)
        length = sum(row[1] for row in rows)
        if rows[0][2] is None:
            lengths = [(number, size) for number, size, _ in rows]
            more = await estimate_stored(self._engine, _CHUNK, (place,), lengths)
            return _Found(place, cached, None, length, cached.weight + more)
        kept = [(number, data) for number, _, data in rows]
        if charge is None:
            # It is estimated once its files are there too, which costs no query.
            return _Found(place, cached, kept, length, 0)
        more = await estimate(self._engine, [data for _, data in kept])
        return _Found(place, cached, kept, length, cached.weight + more)

    async def _read_added(self, found: _Found) -> Sequence[Any]:
        rows: Rows | None = found.rows
        if rows is None:
            rows = await self._engine.read(_ROWS, (found.place, found.cached.last))
        cached = found.cached
        if rows:
            cached = await self._extend(cached, rows, found.weight)
        self._keep(found.place, cached)
        return cached.messages

    async def _extend(self, cached: _CachedHistory, rows: Rows, weight: int = 0) -> _CachedHistory:
        """Return the messages with those of more rows. `weight` is the total estimate, if known."""
        # A new object, because another turn may be reading the old one.
        longer = _CachedHistory()
        places: list[tuple[Place, bytes]] = [(("history", ("number",), (number,)), data) for number, data in rows]
        places = await self._records.with_files(places)
        read = await self._records.read_large("history", places)
        longer.messages = [*cached.messages, *(message for messages in read for message in messages)]
        longer.last = rows[-1][0]
        whole = [data for _, data in places]
        size = sum(map(len, whole))
        longer.weight = weight or cached.weight + await run_sized(size, lambda: sum(map(estimate_row, whole)))
        added = len(longer.messages) - len(cached.messages)
        longer.size = max(cached.size + added * _MESSAGE_OVERHEAD_BYTES + size, longer.weight)
        return longer

    def _keep(self, place: str, cached: _CachedHistory) -> None:
        before = self._known.pop(place, None)
        self._size += cached.size - (0 if before is None else before.size)
        self._known[place] = cached
        while self._size > self._limit:
            _, dropped = self._known.popitem(last=False)
            self._size -= dropped.size


_OF_NAME = "SELECT s.session_id, s.data FROM names n JOIN sessions s ON s.session_id = n.session_id WHERE n.name = ?"
_PAST = (
    "SELECT s.session_id, s.data FROM past_sessions p JOIN sessions s ON s.session_id = p.session_id "
    "WHERE p.name = ? AND s.owner = ?"
)
_TITLES = (
    "SELECT t.session_id, t.title FROM session_titles t JOIN sessions s ON s.session_id = t.session_id "
    "WHERE s.owner = ? AND t.session_id IN ({marks})"
)
_FIRST = (
    "SELECT session_id, number, data FROM history WHERE number IN ("
    "SELECT MIN(h.number) FROM history h JOIN sessions s ON s.session_id = h.session_id "
    "WHERE s.owner = ? AND h.session_id IN ({marks}) GROUP BY h.session_id)"
)
_THERE = "SELECT 1 FROM sessions WHERE session_id = ?"
_OF_ITSELF = "SELECT session_id, data FROM sessions WHERE session_id = ? AND owner = ? AND self_named = 1"


class Leases(Protocol):
    """The leases of sessions. The holder of the latest lease may write."""

    def begin(self, owner: str, session_id: str) -> Lease: ...

    async def claim(self, session_id: str, *, force: bool = False) -> Lease: ...

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Lease]: ...

    def release(self, lease: Lease) -> None: ...

    def find_begun_owner(self, session_id: str) -> str | None:
        """Return the owner of a session that was begun here and is not stored yet."""
        ...

    def list_taken(self) -> Collection[str]:
        """Return the sessions with a lease that was granted here and not released."""
        ...


class SqlSessions:
    def __init__(self, engine: Engine, records: Records, leases: Leases) -> None:
        self._engine = engine
        self._records = records
        self._leases = leases
        self._histories = Histories(engine, records)
        self.begin = leases.begin
        self.claim = leases.claim
        self.renew = leases.renew
        self.release = leases.release

    async def find(self, name: SessionName) -> SessionRecord | None:
        if name.kind != "named" or not name.value:
            return await self._read(await self._engine.read(_OF_NAME, (name_key(name),)))
        values = (name_key(name), key(name.value), key(name.owner))
        return await self._read(await self._engine.read(f"{_OF_NAME} UNION ALL {_OF_ITSELF}", values))

    async def get(self, owner: str, session_id: str) -> SessionRecord | None:
        place = (key(session_id), key(owner))
        return await self._read(
            await self._engine.read("SELECT session_id, data FROM sessions WHERE session_id = ? AND owner = ?", place)
        )

    async def _read(self, rows: Sequence[Any]) -> SessionRecord | None:
        if not rows:
            return None
        session_id, data = rows[0]
        place: Place = ("sessions", ("session_id",), (session_id,))
        # Its messages stay but are not used again: its name leads to a new session.
        unnamed = Do(f"DELETE FROM names WHERE session_id = ? AND NOT EXISTS ({_THERE})", (session_id, session_id))
        return await self._records.read("sessions", place, data, also=[unnamed])

    async def past(self, name: SessionName, *, limit: int = 20) -> Sequence[SessionRecord]:
        rows = await self._engine.read(
            f"{_PAST} ORDER BY s.updated_at DESC, s.session_id DESC LIMIT ?", (name_key(name), key(name.owner), limit)
        )
        places: list[tuple[Place, bytes]] = [
            (("sessions", ("session_id",), (session_id,)), data) for session_id, data in rows
        ]
        return await self._records.read_all("sessions", places)

    async def was(self, name: SessionName, session_id: str) -> bool:
        place = (name_key(name), key(name.owner), key(session_id))
        return bool(await self._engine.read(f"{_PAST} AND s.session_id = ?", place))

    async def titles(self, owner: str, session_ids: Sequence[str]) -> Mapping[str, str]:
        rows = await self._of_each(_TITLES, owner, session_ids)
        return {session_id: text(title) or "" for session_id, title in rows}

    async def first_messages(self, owner: str, session_ids: Sequence[str]) -> Mapping[str, Sequence[Any]]:
        rows = await self._of_each(_FIRST, owner, session_ids)
        places: list[tuple[Place, bytes]] = [(("history", ("number",), (number,)), data) for _, number, data in rows]
        read = await self._records.read_each("history", places)
        messages = zip((session_id for session_id, *_ in rows), read, strict=True)
        return {session_id: first for session_id, first in messages if first is not None}

    async def _of_each(self, sql: str, owner: str, session_ids: Sequence[str]) -> list[Sequence[Any]]:
        """Read rows of some sessions. The first column of each is a session's id."""
        names = {key(session_id): session_id for session_id in session_ids}
        if not names:
            return []
        marks = ", ".join("?" for _ in names)
        rows = await self._engine.read(sql.format(marks=marks), (key(owner), *names))
        return [(names[place], *rest) for place, *rest in rows]

    async def reserve(self, name: SessionName, session_id: str) -> str:
        if name.kind == "named" and await self._is_itself(name):
            return name.value
        answers = await self._engine.write(
            [
                Do(
                    "INSERT INTO names (name, session_id) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
                    (name_key(name), session_id),
                ),
                Do("SELECT session_id FROM names WHERE name = ?", (name_key(name),), answers=True),
            ]
        )
        return str(answers[0][0][0])

    async def _is_itself(self, name: SessionName) -> bool:
        if self._leases.find_begun_owner(name.value) == name.owner:
            return True
        return bool(await self._engine.read(_OF_ITSELF, (key(name.value), key(name.owner))))

    async def history(self, owner: str, session_id: str, *, charge: Charge | None = None) -> Sequence[Any]:
        return await self._histories.read(owner, session_id, charge)

    async def history_page(
        self, owner: str, session_id: str, *, before: int | None = None, limit: int = 50
    ) -> HistoryPage:
        return await self._histories.page(owner, session_id, before, limit)


_END = "COALESCE(ended_at, 9e99)"
# SQLite looks up a range of the index only by the plain comparison.
_BEFORE = f"{_END} <= ? AND ({_END}, run_id) < (?, ?)"
_FROM = f"{_END} >= ? AND ({_END}, run_id) >= (?, ?)"
_LAST_FIRST = f"ORDER BY {_END} DESC, run_id DESC"
_OF_CHAIN = "SELECT run_id, data FROM runs WHERE owner = ? AND root_run_id = ?"


class SqlRuns:
    def __init__(self, engine: Engine, records: Records) -> None:
        self._engine = engine
        self._records = records

    async def get(self, owner: str, run_id: str) -> RunRecord | None:
        place = (key(run_id), key(owner))
        rows = await self._engine.read("SELECT data FROM runs WHERE run_id = ? AND owner = ?", place)
        return None if not rows else await self._records.read("runs", ("runs", ("run_id", "owner"), place), rows[0][0])

    async def events(self, owner: str, run_id: str, *, after: int = 0, limit: int = 1000) -> Sequence[RunEvent]:
        rows = await self._engine.read(
            "SELECT number, data FROM events WHERE run_id = ? AND owner = ? AND number > ? ORDER BY number LIMIT ?",
            (key(run_id), key(owner), after, limit),
        )
        return [RunEvent(owner=owner, run_id=run_id, number=number, data=bytes(data)) for number, data in rows]

    async def newest_of_chain(self, owner: str, root_run_id: str) -> RunRecord | None:
        newest = f"{_OF_CHAIN} ORDER BY {_END} DESC, run_id DESC LIMIT 1"
        return await self._one(owner, newest, (key(owner), key(root_run_id)))

    async def next_of_chain(self, owner: str, root_run_id: str, after: RunRecord) -> RunRecord | None:
        following = f"{_OF_CHAIN} AND {_END} >= ? AND ({_END}, run_id) > (?, ?) ORDER BY {_END}, run_id LIMIT 1"
        end = OPEN if after.finished_at is None else after.finished_at
        return await self._one(owner, following, (key(owner), key(root_run_id), end, end, key(after.run_id)))

    async def _one(self, owner: str, sql: str, values: tuple[Any, ...]) -> RunRecord | None:
        rows = await self._engine.read(sql, values)
        if not rows:
            return None
        run_id, data = rows[0]
        return await self._records.read("runs", ("runs", ("run_id", "owner"), (run_id, key(owner))), data)

    async def page(
        self, owner: str, where: RunFilter, *, after: RunPosition | None = None, limit: int = 50
    ) -> RunSlice:
        condition, filtered = _build_condition(where)
        least = await self._last_read(owner, where, None)
        is_exact = least is None
        total = await self._count(owner, where, least)
        if after is not None and condition:
            least = await self._last_read(owner, where, after)
        scanned, values = _build_range(where)
        values = (key(owner), *values)
        if after is not None:
            scanned, values = f"{scanned} AND {_BEFORE}", (*values, after[0], *after)
        if least is not None and condition:
            scanned, values = f"{scanned} AND {_FROM}", (*values, least[0], *least)
        sql = f"SELECT run_id, {_END}, data FROM runs WHERE {scanned} {condition} {_LAST_FIRST} LIMIT ?"
        rows = await self._engine.read(sql, (*values, *filtered, limit + 1))
        kept = rows[:limit]
        places: list[tuple[Place, bytes]] = [
            (("runs", ("run_id", "owner"), (run_id, key(owner))), data) for run_id, _, data in kept
        ]
        runs = [run for run in await self._records.read_each("runs", places) if run is not None and where.matches(run)]
        last: RunPosition | None = (kept[-1][1], kept[-1][0]) if len(rows) > limit else None
        if last is None and condition:
            last = least
        return RunSlice(runs=tuple(runs), after=last, total=total, is_total_exact=is_exact)

    async def _last_read(self, owner: str, where: RunFilter, after: RunPosition | None) -> RunPosition | None:
        """Return the last position that a page with filters reads, or None if it reads all."""
        scanned, values = _build_range(where)
        values = (key(owner), *values)
        if after is not None:
            scanned, values = f"{scanned} AND {_BEFORE}", (*values, after[0], *after)
        sql = f"SELECT {_END}, run_id FROM runs WHERE {scanned} {_LAST_FIRST} LIMIT 1 OFFSET ?"
        rows = await self._engine.read(sql, (*values, MAX_COUNTED_RUNS))
        return (rows[0][0], rows[0][1]) if rows else None

    async def _count(self, owner: str, where: RunFilter, least: RunPosition | None) -> int:
        (scanned, values), (condition, filtered) = _build_range(where), _build_condition(where)
        if least is not None and not condition:
            return MAX_COUNTED_RUNS + 1
        values = (key(owner), *values)
        if least is not None:
            scanned, values = f"{scanned} AND {_FROM}", (*values, least[0], *least)
        rows = await self._engine.read(f"SELECT COUNT(*) FROM runs WHERE {scanned} {condition}", (*values, *filtered))
        return int(rows[0][0])


def _build_range(where: RunFilter) -> tuple[str, tuple[Any, ...]]:
    """Return the condition of the part of an owner's list that a filter reads, and its values after the owner."""
    condition, values = "owner = ?", tuple[Any, ...]()
    if where.since is not None:
        condition, values = f"{condition} AND {_END} >= ?", (where.since,)
    if where.status in ("queued", "running"):
        condition = f"{condition} AND {_END} >= {OPEN!r}"
    return condition, values


def _build_condition(where: RunFilter) -> tuple[str, tuple[Any, ...]]:
    """Return the condition of the rows that may match, or an empty one. Rows of earlier versions have no columns."""
    conditions, values = list[str](), list[Any]()
    for column, value in (("channel", where.channel), ("session_key", where.session)):
        if value is not None:
            conditions.append(f"AND ({column} = ? OR channel IS NULL)")
            values.append(key(value))
    if where.session_prefix is not None:
        conditions.append(f"AND (substr(session_key, 1, {len(where.session_prefix)}) = ? OR channel IS NULL)")
        values.append(where.session_prefix)
    if where.status is not None and where.status in FINAL:
        conditions.append("AND ended_at IS NOT NULL AND (outcome = ? OR outcome IS NULL)")
        values.append(where.status)
    if where.roots_only:
        conditions.append("AND root_run_id IS NULL")
    return " ".join(conditions), tuple(values)


class SqlCheckpoints:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def get(self, session_id: str, checkpoint_id: str) -> bytes | None:
        rows = await self._engine.read(
            "SELECT data FROM checkpoints WHERE session_id = ? AND checkpoint_id = ?",
            (key(session_id), key(checkpoint_id)),
        )
        return bytes(rows[0][0]) if rows else None


class SqlWatchers:
    def __init__(self, engine: Engine, records: Records, clock: Clock, *, is_shared: bool) -> None:
        self._engine, self._records, self._clock, self._is_shared = engine, records, clock, is_shared
        self._may_exist = True
        self._read_at = Moment.of(clock)

    async def get(self, owner: str, watcher_id: str) -> WatcherRecord | None:
        found = await self._read("owner = ? AND watcher_id = ?", (key(owner), key(watcher_id)))
        return found[0] if found else None

    async def of_chain(self, owner: str, chain_id: str, *, now: float) -> Sequence[WatcherRecord]:
        return await self._read("owner = ? AND chain_id = ? AND expires_at > ?", (key(owner), key(chain_id), now))

    async def _read(self, where: str, values: tuple[Any, ...]) -> Sequence[WatcherRecord]:
        sql = f"SELECT owner, watcher_id, data FROM watchers WHERE {where} ORDER BY created_at, watcher_id"
        rows = await self._engine.read(sql, values)
        places: list[tuple[Place, bytes]] = [
            (("watchers", ("owner", "watcher_id"), (owner, watcher_id)), data) for owner, watcher_id, data in rows
        ]
        return await self._records.read_all("watchers", places)

    async def may_exist(self) -> bool:
        if not self._is_shared and not self._may_exist:
            return False
        if self._read_at.age(self._clock) > WATCHERS_FRESH_SECONDS:
            await self.refresh()
        return self._may_exist

    async def refresh(self) -> None:
        # The time before the query, so that the answer is never older than it seems.
        read_at = Moment.of(self._clock)
        rows = await self._engine.read("SELECT 1 FROM watchers LIMIT 1")
        if self._read_at.steady <= read_at.steady:
            self._read_at, self._may_exist = read_at, bool(rows)

    def note_new(self) -> None:
        """Expect watchers from now on. The row is committed soon after."""
        self._read_at, self._may_exist = Moment.of(self._clock), True


def build_watcher_insert(watcher: WatcherRecord, most_of_owner: int, most_of_chain: int) -> Do:
    """Insert a watcher if its owner and its chain have not too many."""
    owner, chain = key(watcher.owner), key(watcher.chain_id)
    row = (owner, key(watcher.watcher_id), chain, watcher.created_at, watcher.expires_at, encode(watcher))
    counted = "(SELECT COUNT(*) FROM watchers WHERE owner = ? AND expires_at > ?"
    return Do(
        "INSERT INTO watchers (owner, watcher_id, chain_id, created_at, expires_at, data) SELECT ?, ?, ?, ?, ?, ? "
        f"WHERE {counted}) < ? AND {counted} AND chain_id = ?) < ?",
        (*row, owner, watcher.created_at, most_of_owner, owner, watcher.created_at, chain, most_of_chain),
        TooManyRequestsError(TOO_MANY_WATCHERS),
    )
