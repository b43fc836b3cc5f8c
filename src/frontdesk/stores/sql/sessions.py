"""The drawer of sessions: names, records, leases and history."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from frontdesk.data.session import Lease, SessionName, SessionRecord
from frontdesk.data.transcript import HistoryPage
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.histories import Histories
from frontdesk.stores.sql.records import Place, Records
from frontdesk.stores.sql.tables import key, name_key, text
from frontdesk.stores.sql.writes import Do

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
    """The leases of sessions: the holder of the last one may write."""

    def begin(self, owner: str, session_id: str) -> Lease: ...

    async def claim(self, session_id: str, *, force: bool = False) -> Lease: ...

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Lease]: ...

    def release(self, lease: Lease) -> None: ...

    def begun(self, session_id: str) -> str | None:
        """Return the owner of a session that was begun here and is not stored yet."""
        ...

    def taken(self) -> Collection[str]:
        """Return the sessions for which a lease was given out here and not released."""
        ...


class SqlSessions:
    """Sessions, their names and their messages."""

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
        """Read rows of some sessions; the first column of each is a session's id."""
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
        if self._leases.begun(name.value) == name.owner:
            return True
        return bool(await self._engine.read(_OF_ITSELF, (key(name.value), key(name.owner))))

    async def history(self, owner: str, session_id: str) -> Sequence[Any]:
        return await self._histories.read(owner, session_id)

    async def history_page(
        self, owner: str, session_id: str, *, before: int | None = None, limit: int = 50
    ) -> HistoryPage:
        return await self._histories.page(owner, session_id, before, limit)
