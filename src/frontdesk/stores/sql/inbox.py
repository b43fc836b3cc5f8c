"""The drawer of inbound events, and the statements that write them."""

from collections.abc import Sequence
from contextlib import suppress

from frontdesk.data.codec import decode, encode
from frontdesk.data.delivery import InboxItem, WaitingEvent
from frontdesk.errors import CodecError, LostEventError, UnreadableRecordError
from frontdesk.stores.sql.background import LeaseSql
from frontdesk.stores.sql.engine import Engine, Rows
from frontdesk.stores.sql.records import Records
from frontdesk.stores.sql.tables import DIGEST, key
from frontdesk.stores.sql.writes import Do

_EVENT = "number, fence, attempts, data"
# A long or unprintable name is stored as its digest; only the record has the name itself.
_NAMES = (
    "number, channel, conversation_id, "
    "CASE WHEN substr(channel, 1, 1) = ? OR substr(conversation_id, 1, 1) = ? THEN data END"
)
_UNCLAIMED = "UPDATE inbox SET holder = '', until = 0, attempts = attempts - 1 WHERE number = ? AND fence = ?"
_MINE = "WHERE channel = ? AND event_id = ? AND fence = ? AND done_at IS NULL"


class SqlInbox:
    """Events that were accepted and are not finished."""

    def __init__(self, engine: Engine, records: Records, lease_sql: LeaseSql) -> None:
        self._engine = engine
        self._records = records
        self._lease_sql = lease_sql

    async def next(self, channel: str, conversation_id: str) -> InboxItem | None:
        while True:
            rows = await self._engine.read(
                f"SELECT {_EVENT} FROM inbox "
                "WHERE channel = ? AND conversation_id = ? AND done_at IS NULL ORDER BY number LIMIT 1",
                (key(channel), key(conversation_id)),
            )
            if not rows:
                return None
            # A broken event is set aside, and the next one is first.
            if items := await self._items(rows):
                return items[0]

    async def claim(self, channel: str, conversation_id: str, holder: str) -> InboxItem | None:
        first = "SELECT MIN(number) FROM inbox WHERE channel = ? AND conversation_id = ? AND done_at IS NULL"
        claim = Do(
            f"UPDATE inbox SET holder = ?, fence = fence + 1, attempts = attempts + 1, until = {self._lease_sql.until} "
            f"WHERE number = ({first}) AND done_at IS NULL AND {self._lease_sql.free} RETURNING {_EVENT}",
            (holder, key(channel), key(conversation_id), holder),
            answers=True,
        )
        while rows := (await self._engine.write([claim]))[0]:
            try:
                items = await self._items(rows)
            except UnreadableRecordError:
                # Later events wait for it, and a process that can read it must be able to claim it.
                await self._engine.write([Do(_UNCLAIMED, rows[0][:2])])
                raise
            if items:
                return items[0]
        return None

    async def renew(self, items: Sequence[InboxItem]) -> Sequence[InboxItem]:
        if not items:
            return ()
        renewed = [
            Do(
                f"UPDATE inbox SET until = {self._lease_sql.until} {_MINE} AND holder <> '' RETURNING 1",
                _place(item),
                answers=True,
            )
            for item in items
        ]
        kept = await self._engine.write(renewed)
        return [item for item, rows in zip(items, kept, strict=True) if rows]

    async def waiting(self, holder: str, *, after: int = 0, limit: int = 500) -> Sequence[WaitingEvent]:
        rows = await self._engine.read(
            f"SELECT {_NAMES} FROM inbox WHERE done_at IS NULL AND number > ? AND {self._lease_sql.free} "
            "ORDER BY number LIMIT ?",
            (DIGEST, DIGEST, after, holder, limit),
        )
        return [
            WaitingEvent(channel, conversation_id, number) if data is None else _named(number, bytes(data))
            for number, channel, conversation_id, data in rows
        ]

    async def failed(self, *, before: int | None = None, limit: int = 100) -> Sequence[tuple[InboxItem, str]]:
        older = "" if before is None else "AND number < ?"
        rows = await self._engine.read(
            f"SELECT {_EVENT}, error FROM inbox WHERE error IS NOT NULL {older} ORDER BY number DESC LIMIT ?",
            (limit,) if before is None else (before, limit),
        )
        failures: list[tuple[InboxItem, str]] = []
        for row in rows:
            # For the operator, records of a newer version are counted and not shown.
            with suppress(UnreadableRecordError):
                for item in await self._items([row[:4]]):
                    failures.append((item, bytes(row[4]).decode("utf-8", "surrogatepass")))
        return failures

    async def _items(self, rows: Rows) -> list[InboxItem]:
        items: list[InboxItem] = []
        for number, fence, attempts, data in rows:
            item: InboxItem | None = await self._records.read("inbox", ("inbox", ("number",), (number,)), data)
            if item is not None:
                items.append(item.replace(number=number, fence=fence, attempts=attempts))
        return items


def _named(number: int, data: bytes) -> WaitingEvent:
    try:
        item = decode(data)
    except CodecError:
        # This process can't claim it; no event is found under an empty name.
        return WaitingEvent("", "", number)
    return WaitingEvent(item.channel, item.conversation_id, number)


def accepted(item: InboxItem) -> Do:
    """Insert an event, unless it is there already."""
    return Do(
        "INSERT INTO inbox (channel, event_id, conversation_id, data) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (channel, event_id) DO NOTHING",
        (key(item.channel), key(item.event_id), key(item.conversation_id), encode(item)),
    )


def finished(item: InboxItem, error: str | None, now: float) -> Do:
    """Mark an event as done."""
    why = None if error is None else error.encode("utf-8", "surrogatepass")
    return Do(f"UPDATE inbox SET done_at = ?, error = ?, holder = '' {_MINE}", (now, why, *_place(item)), _lost())


def given_back(item: InboxItem, tried: bool) -> Do:
    """Release an event for the next claim."""
    back = f"UPDATE inbox SET holder = '', until = 0, attempts = attempts - ? {_MINE}"
    return Do(back, (int(not tried), *_place(item)), _lost())


def _lost() -> LostEventError:
    return LostEventError("the event is done, or another process answers it")


def _place(item: InboxItem) -> tuple[str, str, int]:
    return key(item.channel), key(item.event_id), item.fence
