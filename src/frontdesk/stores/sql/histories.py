"""Histories, with a cache of those that were read last.

A history only grows, so a cached one stays true, and only the rows since then are read. The cost of a turn therefore
does not depend on the length of its session.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from frontdesk.data.transcript import HistoryPage, page_of
from frontdesk.stores.sql.engine import Engine, Rows
from frontdesk.stores.sql.records import Place, Records
from frontdesk.stores.sql.tables import key

BYTES_KEPT = 32 * 1024 * 1024
_A_SESSION = 512
_A_MESSAGE = 2048
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
_ALONE = """
SELECT s.parent_id, h.number, h.data
FROM sessions s LEFT JOIN history h ON h.session_id = s.session_id AND h.number > ?
WHERE s.session_id = ? AND s.owner = ? ORDER BY h.number
"""
_LAST = """
SELECT s.parent_id, h.number, h.data
FROM sessions s LEFT JOIN history h ON h.session_id = s.session_id AND h.number < ?
WHERE s.session_id = ? AND s.owner = ? ORDER BY h.number DESC LIMIT ?
"""
_BEHIND_ALL = 2**62


class _CachedHistory:
    """The cached messages of one session, without those of the sessions it branched from."""

    __slots__ = ("last", "messages", "size")

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.last = 0
        self.size = _A_SESSION


class Histories:
    """Reads histories through the cache."""

    def __init__(self, engine: Engine, records: Records, *, limit: int = BYTES_KEPT) -> None:
        self._engine = engine
        self._records = records
        self._known: OrderedDict[str, _CachedHistory] = OrderedDict()
        self._limit = limit
        self._size = 0

    async def read(self, owner: str, session_id: str) -> Sequence[Any]:
        """Return all messages of a session, those of the sessions it branched from first."""
        place = key(session_id)
        cached = self._known.get(place) or _CachedHistory()
        rows = await self._engine.read(_ALONE, (cached.last, place, key(owner)))
        if not rows:
            return ()
        if rows[0][0] is not None:
            return await self._branch(owner, session_id)
        return list(await self._added(place, cached, [(number, data) for _, number, data in rows if number]))

    async def page(self, owner: str, session_id: str, before: int | None, limit: int) -> HistoryPage:
        """Return the messages of the last rows before one, which are not cached: few sessions are read to their end."""
        end = _BEHIND_ALL if before is None else before
        rows = await self._engine.read(_LAST, (end, key(session_id), key(owner), limit + 1))
        if rows and rows[0][0] is not None:
            # What a branch has in common with its parent is counted in messages, and so are its positions.
            return page_of(await self._branch(owner, session_id), before, limit)
        rows = [(number, data) for _, number, data in rows if number]
        kept = rows[:limit][::-1]
        if not kept:
            return HistoryPage()
        messages = (await self._extended(_CachedHistory(), kept)).messages
        return HistoryPage(messages=messages, before=kept[0][0] if len(rows) > limit else None)

    async def _branch(self, owner: str, session_id: str) -> Sequence[Any]:
        lineage = await self._engine.read(_LINE, (key(session_id), key(owner), key(owner)))
        messages: list[Any] = []
        for place, shared in lineage:
            if shared is not None:
                del messages[shared:]
            messages += await self._own(place)
        return messages

    async def _own(self, place: str) -> Sequence[Any]:
        cached = self._known.get(place) or _CachedHistory()
        return await self._added(place, cached, await self._engine.read(_ROWS, (place, cached.last)))

    async def _added(self, place: str, cached: _CachedHistory, rows: Rows) -> Sequence[Any]:
        if rows:
            cached = await self._extended(cached, rows)
        self._keep(place, cached)
        return cached.messages

    async def _extended(self, cached: _CachedHistory, rows: Rows) -> _CachedHistory:
        # A new object, because another turn may be reading the old one.
        longer = _CachedHistory()
        places: list[tuple[Place, bytes]] = [(("history", ("number",), (number,)), data) for number, data in rows]
        places = await self._records.with_files(places)
        read = await self._records.read_large("history", places)
        longer.messages = [*cached.messages, *(message for messages in read for message in messages)]
        longer.last = rows[-1][0]
        added = len(longer.messages) - len(cached.messages)
        longer.size = cached.size + added * _A_MESSAGE + sum(len(data) for _, data in places)
        return longer

    def _keep(self, place: str, cached: _CachedHistory) -> None:
        before = self._known.pop(place, None)
        self._size += cached.size - (0 if before is None else before.size)
        self._known[place] = cached
        while self._size > self._limit:
            _, dropped = self._known.popitem(last=False)
            self._size -= dropped.size
