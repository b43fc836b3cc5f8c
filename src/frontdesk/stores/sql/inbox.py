"""The drawer of events that came in, and the statements that finish them."""

from collections.abc import Sequence

from frontdesk.data.codec import encode
from frontdesk.data.delivery import InboxItem
from frontdesk.errors import LostEventError
from frontdesk.stores.sql.background import Terms
from frontdesk.stores.sql.engine import Engine, Rows
from frontdesk.stores.sql.records import Records
from frontdesk.stores.sql.tables import key
from frontdesk.stores.sql.writes import Do

_EVENT = "number, fence, attempts, data"
_MINE = "WHERE channel = ? AND event_id = ? AND fence = ? AND done_at IS NULL"


class SqlInbox:
    """Events that were accepted and are not finished."""

    def __init__(self, engine: Engine, records: Records, terms: Terms) -> None:
        self._engine = engine
        self._records = records
        self._terms = terms

    async def next(self, channel: str, conversation_id: str) -> InboxItem | None:
        while True:
            rows = await self._engine.read(
                f"SELECT {_EVENT} FROM inbox "
                "WHERE channel = ? AND conversation_id = ? AND done_at IS NULL ORDER BY number LIMIT 1",
                (key(channel), key(conversation_id)),
            )
            if not rows:
                return None
            # One that can't be read is put aside, and the next one is first.
            if found := await self._items(rows):
                return found[0]

    async def claim(self, channel: str, conversation_id: str, holder: str) -> InboxItem | None:
        first = "SELECT MIN(number) FROM inbox WHERE channel = ? AND conversation_id = ? AND done_at IS NULL"
        claim = Do(
            f"UPDATE inbox SET holder = ?, fence = fence + 1, attempts = attempts + 1, until = {self._terms.until} "
            f"WHERE number = ({first}) AND done_at IS NULL AND {self._terms.free} RETURNING {_EVENT}",
            (holder, key(channel), key(conversation_id), holder),
            answers=True,
        )
        while rows := (await self._engine.write([claim]))[0]:
            if found := await self._items(rows):
                return found[0]
        return None

    async def renew(self, items: Sequence[InboxItem]) -> Sequence[InboxItem]:
        if not items:
            return ()
        renewed = [
            Do(
                f"UPDATE inbox SET until = {self._terms.until} {_MINE} AND holder <> '' RETURNING 1",
                _place(item),
                answers=True,
            )
            for item in items
        ]
        kept = await self._engine.write(renewed)
        return [item for item, rows in zip(items, kept, strict=True) if rows]

    async def waiting(self, holder: str, *, after: int = 0, limit: int = 500) -> Sequence[InboxItem]:
        rows = await self._engine.read(
            f"SELECT {_EVENT} FROM inbox WHERE done_at IS NULL AND number > ? AND {self._terms.free} "
            "ORDER BY number LIMIT ?",
            (after, holder, limit),
        )
        return await self._items(rows)

    async def failed(self, *, before: int | None = None, limit: int = 100) -> Sequence[tuple[InboxItem, str]]:
        older = "" if before is None else "AND number < ?"
        rows = await self._engine.read(
            f"SELECT {_EVENT}, error FROM inbox WHERE error IS NOT NULL {older} ORDER BY number DESC LIMIT ?",
            (limit,) if before is None else (before, limit),
        )
        found = [(await self._items([row[:4]]), bytes(row[4])) for row in rows]
        return [(items[0], error.decode("utf-8", "surrogatepass")) for items, error in found if items]

    async def _items(self, rows: Rows) -> list[InboxItem]:
        found: list[InboxItem] = []
        for number, fence, attempts, data in rows:
            item: InboxItem | None = await self._records.read("inbox", ("inbox", ("number",), (number,)), data)
            if item is not None:
                found.append(item.replace(number=number, fence=fence, attempts=attempts))
        return found


def accepted(item: InboxItem) -> Do:
    """Keeps an event, unless it is known."""
    return Do(
        "INSERT INTO inbox (channel, event_id, conversation_id, data) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (channel, event_id) DO NOTHING",
        (key(item.channel), key(item.event_id), key(item.conversation_id), encode(item)),
    )


def finished(item: InboxItem, error: str | None, now: float) -> Do:
    """Marks an event as done."""
    why = None if error is None else error.encode("utf-8", "surrogatepass")
    return Do(f"UPDATE inbox SET done_at = ?, error = ?, holder = '' {_MINE}", (now, why, *_place(item)), _lost())


def given_back(item: InboxItem, tried: bool) -> Do:
    """Leaves an event to the next."""
    back = f"UPDATE inbox SET holder = '', until = 0, attempts = attempts - ? {_MINE}"
    return Do(back, (int(not tried), *_place(item)), _lost())


def _lost() -> LostEventError:
    return LostEventError("the event is done, or another process answers it")


def _place(item: InboxItem) -> tuple[str, str, int]:
    return key(item.channel), key(item.event_id), item.fence
