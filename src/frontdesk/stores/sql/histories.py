"""Histories, with the last ones read kept in memory.

A history only grows, so what was read once stays true: of a session that is known, only the rows since then are read.
What a turn costs therefore does not depend on how long the session is.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from frontdesk.stores.sql.engine import Engine, Rows
from frontdesk.stores.sql.records import Place, Records
from frontdesk.stores.sql.tables import key

BYTES_KEPT = 32 * 1024 * 1024
_A_SESSION = 512
_A_MESSAGE = 2048
"""What a message takes in memory beside its text, roughly."""

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


class _Known:
    """What was read of one session: its own messages, without those of the sessions it branched from."""

    __slots__ = ("last", "messages", "size")

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.last = 0
        self.size = _A_SESSION


class Histories:
    """Reads histories."""

    def __init__(self, engine: Engine, records: Records, *, limit: int = BYTES_KEPT) -> None:
        self._engine = engine
        self._records = records
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._limit = limit
        self._size = 0

    async def read(self, owner: str, session_id: str) -> Sequence[Any]:
        """All messages of a session, those of the sessions it branched from first."""
        place = key(session_id)
        known = self._known.get(place) or _Known()
        rows = await self._engine.read(_ALONE, (known.last, place, key(owner)))
        if not rows:
            return ()
        if rows[0][0] is not None:
            return await self._branch(owner, session_id)
        return list(await self._added(place, known, [(number, data) for _, number, data in rows if number]))

    async def _branch(self, owner: str, session_id: str) -> Sequence[Any]:
        line = await self._engine.read(_LINE, (key(session_id), key(owner), key(owner)))
        found: list[Any] = []
        for place, shared in line:
            if shared is not None:
                del found[shared:]
            found += await self._own(place)
        return found

    async def _own(self, place: str) -> Sequence[Any]:
        known = self._known.get(place) or _Known()
        return await self._added(place, known, await self._engine.read(_ROWS, (place, known.last)))

    async def _added(self, place: str, known: _Known, rows: Rows) -> Sequence[Any]:
        if rows:
            known = await self._extended(known, rows)
        self._keep(place, known)
        return known.messages

    async def _extended(self, known: _Known, rows: Rows) -> _Known:
        # A new one, because another turn may be reading the old one at this moment.
        longer = _Known()
        places: list[tuple[Place, bytes]] = [(("history", ("number",), (number,)), data) for number, data in rows]
        read = await self._records.read_large("history", places)
        longer.messages = [*known.messages, *(message for messages in read for message in messages)]
        longer.last = rows[-1][0]
        added = len(longer.messages) - len(known.messages)
        longer.size = known.size + added * _A_MESSAGE + sum(len(data) for _, data in rows)
        return longer

    def _keep(self, place: str, known: _Known) -> None:
        before = self._known.pop(place, None)
        self._size += known.size - (0 if before is None else before.size)
        self._known[place] = known
        while self._size > self._limit:
            _, dropped = self._known.popitem(last=False)
            self._size -= dropped.size
