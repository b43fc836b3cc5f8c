"""Inbox events in SQL: queries and write statements."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from frontdesk.errors import CodecError, LostEventError, UnreadableRecordError
from frontdesk.models.delivery import CANCELLED, Cancelled, EventKind, InboxItem, KnownEvent, WaitingEvent
from frontdesk.serialization.codec import decode, encode
from frontdesk.stores.sql.background import LeaseSql
from frontdesk.stores.sql.files import without_contents
from frontdesk.stores.sql.records import Records
from frontdesk.stores.sql.tables import DIGEST, as_bytes, key
from frontdesk.stores.sql.writes import Do, Engine, Rows

_EVENT = "number, fence, attempts, lost, alone, cancelled, not_before, due_by, data"
# All values on the right are those before the update: a holder that is still there has ended without a word.
_TAKEN = (
    "holder = ?, fence = fence + 1, attempts = attempts + 1, "
    "lost = lost + CASE WHEN holder = '' THEN 0 ELSE 1 END, "
    "alone = alone + CASE WHEN holder = '' THEN 0 ELSE isolated END, isolated = 0"
)
# A long or unprintable name is stored as its digest; only the record has the name itself.
_NAMES = (
    "number, channel, conversation_id, "
    "CASE WHEN substr(channel, 1, 1) = ? OR substr(conversation_id, 1, 1) = ? THEN data END"
)
_UNCLAIMED = "UPDATE inbox SET holder = '', until = 0, attempts = attempts - 1 WHERE number = ? AND fence = ?"
# Literals, so that the planner can use the partial indexes.
_KINDS: Mapping[EventKind, str] = {"turn": "kind = 'turn'", "control": "kind = 'control'", "resume": "kind = 'resume'"}
# A `due_by` that is too far away comes from a clock that was set back since.
_DUE = " AND (not_before IS NULL OR not_before <= ? OR due_by <= ? OR due_by > ?)"
_BEHIND = "WHERE channel = ? AND conversation_id = ? AND done_at IS NULL AND kind = 'turn' AND number > ?"
_SAME = "is_message = 1 AND cancelled IS NULL AND sender = ?"
_MAX_READ = 200
"""The number of waiting messages among which the rest of an album is looked for."""
_MINE = "WHERE channel = ? AND event_id = ? AND fence = ? AND done_at IS NULL"
_NEVER_TAKEN_UP = "fence = 0"
"""An event that was taken up once may have a message that shows its answer, which only its next holder can end."""


class SqlInbox:
    def __init__(self, engine: Engine, records: Records, lease_sql: LeaseSql) -> None:
        self._engine = engine
        self._records = records
        self._lease_sql = lease_sql

    async def next(self, channel: str, conversation_id: str, *, kind: EventKind = "turn") -> InboxItem | None:
        while True:
            rows = await self._engine.read(
                f"SELECT {_EVENT} FROM inbox "
                f"WHERE channel = ? AND conversation_id = ? AND done_at IS NULL AND {_KINDS[kind]} "
                "ORDER BY number LIMIT 1",
                (key(channel), key(conversation_id)),
            )
            if not rows:
                return None
            # A broken event is set aside, and the next one is first.
            if items := await self._items(rows):
                return items[0]

    async def claim(
        self, channel: str, conversation_id: str, holder: str, *, kind: EventKind = "turn"
    ) -> InboxItem | None:
        return await self._claim(channel, conversation_id, holder, kind)

    async def claim_bundle(
        self,
        channel: str,
        conversation_id: str,
        holder: str,
        *,
        now: float,
        longest: float,
        limit: int,
        albums_only: bool = False,
    ) -> InboxItem | None:
        first = await self._claim(channel, conversation_id, holder, "turn", _DUE, (now, now, now + longest))
        if first is None or not first.is_message or first.is_cancelled:
            return first
        item = first if albums_only else await self._with_following(first, holder, limit)
        return await self._with_albums(item, holder, limit)

    async def _with_following(self, first: InboxItem, holder: str, limit: int) -> InboxItem:
        """Claim the following messages of the same sender, up to another kind of event."""
        place = (key(first.channel), key(first.conversation_id), first.number)
        other = f"SELECT MIN(number) FROM inbox {_BEHIND} AND NOT ({_SAME})"
        behind = (
            f"SELECT number FROM inbox {_BEHIND} AND {_SAME} AND {self._lease_sql.free} "
            f"AND number < COALESCE(({other}), number + 1) ORDER BY number LIMIT ?"
        )
        values = (*place, _sender(first), holder, *place, _sender(first), limit - 1)
        return await self._take_with(first, holder, behind, values)

    async def _with_albums(self, item: InboxItem, holder: str, limit: int) -> InboxItem:
        """Claim the rest of the waiting albums, skipping any events in between."""
        albums = {member.album_id for member in item.members if member.waits_for_album}
        remaining = limit - len(item.members)
        if not albums or remaining <= 0:
            return item
        place = (key(item.channel), key(item.conversation_id), item.number)
        rows = await self._engine.read(
            f"SELECT number, data FROM inbox {_BEHIND} AND {_SAME} AND not_before IS NOT NULL "
            f"AND {self._lease_sql.free} ORDER BY number LIMIT ?",
            (*place, _sender(item), holder, _MAX_READ),
        )
        waiting = [(number, _readable(bytes(data))) for number, data in rows]
        numbers = [number for number, message in waiting if message is not None and message.album_id in albums][
            :remaining
        ]
        if not numbers:
            return item
        these = f"number IN ({_marks(numbers)}) AND done_at IS NULL AND {_SAME} AND {self._lease_sql.free}"
        values = (*numbers, _sender(item), holder)
        return await self._take_with(item, holder, f"SELECT number FROM inbox WHERE {these}", values)

    async def _take_with(self, item: InboxItem, holder: str, behind: str, values: tuple[Any, ...]) -> InboxItem:
        """Claim more events for as long as the first is held, so that its next holder gets all of them."""
        until = "(SELECT kept.until FROM inbox kept WHERE kept.number = ?)"
        claim = Do(
            f"UPDATE inbox SET {_TAKEN}, until = {until} WHERE number IN ({behind}) RETURNING {_EVENT}",
            (holder, item.number, *values),
            answers=True,
        )
        rows = sorted((await self._engine.write([claim]))[0], key=lambda row: row[0])
        try:
            members = sorted((*item.bundle, *await self._items(rows)), key=lambda member: member.number)
            return item.replace(bundle=tuple(members))
        except UnreadableRecordError:
            # They are left to a process that can read them, and the others are answered without them.
            await self._engine.write([Do(_UNCLAIMED, row[:2]) for row in rows])
            return item

    async def _claim(
        self,
        channel: str,
        conversation_id: str,
        holder: str,
        kind: EventKind,
        due: str = "",
        times: tuple[float, ...] = (),
    ) -> InboxItem | None:
        first = (
            "SELECT MIN(number) FROM inbox "
            f"WHERE channel = ? AND conversation_id = ? AND done_at IS NULL AND {_KINDS[kind]}"
        )
        claim = Do(
            f"UPDATE inbox SET {_TAKEN}, until = {self._lease_sql.until} "
            f"WHERE number = ({first}) AND done_at IS NULL AND {self._lease_sql.free}{due} RETURNING {_EVENT}",
            (holder, key(channel), key(conversation_id), holder, *times),
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
                f"UPDATE inbox SET until = {self._lease_sql.until} {_MINE} AND holder <> '' RETURNING cancelled",
                _place(member),
                answers=True,
            )
            for item in items
            # The first is held longest, so that whoever takes it up next gets the others too.
            for member in reversed(item.members)
        ]
        kept = iter(await self._engine.write(renewed))
        return [item for item in (_read_renewed(item, kept) for item in items) if item is not None]

    async def find(self, channel: str, event_id: str) -> KnownEvent | None:
        rows = await self._engine.read(
            f"SELECT {_EVENT}, done_at FROM inbox WHERE channel = ? AND event_id = ?", (key(channel), key(event_id))
        )
        for item in await self._items([row[:-1] for row in rows]):
            return KnownEvent(item.run_id, rows[0][-1] is not None)
        return None

    async def waiting(
        self,
        holder: str,
        *,
        kind: EventKind = "turn",
        after: int = 0,
        limit: int = 500,
        channels: Sequence[str] | None = None,
        other: bool = False,
    ) -> Sequence[WaitingEvent]:
        if channels is not None and not channels and not other:
            return ()
        names = tuple(map(key, channels or ()))
        listed = f"AND channel {'NOT ' if other else ''}IN ({_marks(names)}) " if names else ""
        rows = await self._engine.read(
            f"SELECT {_NAMES} FROM inbox WHERE done_at IS NULL AND {_KINDS[kind]} AND number > ? "
            f"AND {self._lease_sql.free} {listed}ORDER BY number LIMIT ?",
            (DIGEST, DIGEST, after, holder, *names, limit),
        )
        return [
            WaitingEvent(channel, conversation_id, number) if data is None else _name_event(number, bytes(data))
            for number, channel, conversation_id, data in rows
        ]

    async def count_earlier(self, item: InboxItem, *, anyone: bool = False) -> Cancelled:
        earlier, values = _earlier(item, anyone)
        rows = await self._engine.read(
            f"SELECT COUNT(CASE WHEN {_NEVER_TAKEN_UP} THEN NULL ELSE 1 END), "
            f"COUNT(CASE WHEN {_NEVER_TAKEN_UP} THEN 1 END) FROM inbox {earlier}",
            values,
        )
        return Cancelled(running=rows[0][0], dropped=rows[0][1])

    async def count_waiting(self, item: InboxItem) -> int:
        rows = await self._engine.read(
            "SELECT COUNT(*) FROM inbox WHERE done_at IS NULL AND channel = ? AND sender = ? AND kind = 'turn' "
            "AND event_id <> ?",
            (key(item.channel), _sender(item), key(item.event_id)),
        )
        return rows[0][0]

    async def count_waiting_on(self, channel: str) -> int:
        rows = await self._engine.read(
            "SELECT COUNT(*) FROM inbox WHERE done_at IS NULL AND channel = ? AND kind = 'turn'", (key(channel),)
        )
        return rows[0][0]

    async def outside_album(self, item: InboxItem) -> Sequence[str]:
        rows = await self._engine.read(
            f"SELECT data FROM inbox WHERE channel = ? AND conversation_id = ? AND done_at IS NULL AND {_SAME} "
            "ORDER BY number DESC LIMIT ?",
            (key(item.channel), key(item.conversation_id), _sender(item), _MAX_READ),
        )
        messages = (_readable(bytes(data)) for (data,) in rows)
        return [turn.event_id for turn in messages if turn is not None and turn.album_id != item.album_id]

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
                for item in await self._items([row[:-1]]):
                    failures.append((item, bytes(row[-1]).decode("utf-8", "surrogatepass")))
        return failures

    async def _items(self, rows: Rows) -> list[InboxItem]:
        items: list[InboxItem] = []
        for number, fence, attempts, lost, alone, *times, data in rows:
            item: InboxItem | None = await self._records.read("inbox", ("inbox", ("number",), (number,)), data)
            if item is not None:
                counts = {"number": number, "fence": fence, "attempts": attempts, "lost": lost, "alone": alone}
                cancelled, not_before, due_by = times
                items.append(item.replace(**counts, cancelled=cancelled, not_before=not_before, due_by=due_by))
        return items


def _name_event(number: int, data: bytes) -> WaitingEvent:
    item = _readable(data)
    # This process can't claim one that it can't read; no event is found under an empty name.
    return WaitingEvent("", "", number) if item is None else WaitingEvent(item.channel, item.conversation_id, number)


def _readable(data: bytes) -> InboxItem | None:
    """Return an event without its files, or `None` if only another version can read it."""
    try:
        return decode(without_contents(data))
    except CodecError:
        return None


def insert_event(item: InboxItem) -> Do:
    """Insert an event, unless it exists."""
    names = (key(item.channel), key(item.event_id), key(item.conversation_id))
    return Do(
        "INSERT INTO inbox (channel, event_id, conversation_id, kind, sender, is_message, not_before, due_by, data) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (channel, event_id) DO NOTHING",
        (*names, item.kind, _sender(item), int(item.is_message), item.not_before, item.due_by, encode(item)),
    )


def finish_event(item: InboxItem, error: str | None, now: float, lease_sql: LeaseSql) -> Iterator[Do]:
    """Mark an event and those answered with it as done, and notify waiting requests."""
    why = as_bytes(error)
    # What was cancelled says nothing, so that nothing else may be recorded of it.
    unless = "" if error == CANCELLED else " AND cancelled IS NULL"
    done = f"UPDATE inbox SET done_at = ?, error = ?, holder = '' {_MINE}{unless}"
    for member in item.members:
        yield Do(done, (now, why, *_place(member)), _build_lost_error())
        if member.reply_by is not None and member.run_id is not None:
            yield from lease_sql.notices("run", member.run_id)


def postpone_earlier(item: InboxItem) -> Do:
    """Make the sender's waiting messages wait for more."""
    return Do(
        "UPDATE inbox SET not_before = ? WHERE channel = ? AND conversation_id = ? AND done_at IS NULL "
        "AND is_message = 1 AND sender = ? AND holder = '' AND not_before < ?",
        (item.not_before, key(item.channel), key(item.conversation_id), _sender(item), item.not_before),
    )


def interrupt_earlier(item: InboxItem, only: Sequence[str] | None, lease_sql: LeaseSql) -> Iterator[Do]:
    """Mark the sender's earlier messages as cancelled, and notify their holders."""
    if only is not None and not only:
        return
    place = (key(item.channel), key(item.event_id))
    these = "" if only is None else f" AND event_id IN ({_marks(only)})"
    yield Do(
        "UPDATE inbox SET cancelled = COALESCE(cancelled, '') WHERE channel = ? AND conversation_id = ? "
        "AND done_at IS NULL AND is_message = 1 AND sender = ? "
        f"AND number < (SELECT number FROM inbox WHERE channel = ? AND event_id = ?){these}",
        (place[0], key(item.conversation_id), _sender(item), *place, *(key(event_id) for event_id in only or ())),
    )
    yield from lease_sql.notices("cancel")


def cancel_earlier(item: InboxItem, anyone: bool, session_id: str, now: float, lease_sql: LeaseSql) -> Iterator[Do]:
    """Finish the earlier turns that are unclaimed, mark the others, and notify their holders."""
    earlier, values = _earlier(item, anyone)
    waiting = f"UPDATE inbox SET done_at = ?, error = ? {earlier} AND {_NEVER_TAKEN_UP}"
    yield Do(waiting, (now, CANCELLED.encode(), *values))
    # The first cancellation counts: a later one may have moved the conversation on once more.
    yield Do(f"UPDATE inbox SET cancelled = COALESCE(cancelled, ?) {earlier}", (session_id, *values))
    yield from lease_sql.notices("cancel")


def cancel_alone(item: InboxItem, now: float, lease_sql: LeaseSql) -> Iterator[Do]:
    """Mark a turn as cancelled, finish it if it is unclaimed, and notify its holder or its sender."""
    yield Do(
        f"UPDATE inbox SET cancelled = COALESCE(cancelled, '') {_MINE} AND kind = 'turn'",
        _place(item),
        _build_lost_error(),
    )
    yield Do(
        f"UPDATE inbox SET done_at = ?, error = ? {_MINE} AND {_NEVER_TAKEN_UP}",
        (now, CANCELLED.encode(), *_place(item)),
    )
    yield from lease_sql.notices("cancel")
    if item.reply_by is not None and item.run_id is not None:
        yield from lease_sql.notices("run", item.run_id)


def _earlier(item: InboxItem, anyone: bool) -> tuple[str, tuple[Any, ...]]:
    earlier = "WHERE channel = ? AND conversation_id = ? AND done_at IS NULL AND kind = 'turn' AND number < ?"
    values = (key(item.channel), key(item.conversation_id), item.number)
    if anyone:
        return earlier, values
    # In a direct chat there is one sender, whether or not a row tells who.
    unknown = "" if item.request.group else " OR sender IS NULL"
    return f"{earlier} AND (sender = ?{unknown})", (*values, _sender(item))


def give_back(item: InboxItem, tried: bool) -> Iterator[Do]:
    """Release an event for the next claim, together with the events claimed with it."""
    back = f"UPDATE inbox SET holder = '', until = 0, isolated = 0, attempts = attempts - ? {_MINE}"
    for member in item.members:
        yield Do(back, (int(not tried), *_place(member)), _build_lost_error())


def set_isolated(item: InboxItem, is_isolated: bool) -> Iterator[Do]:
    """Record whether the holder of an event works on no other one."""
    for member in item.members:
        yield Do(f"UPDATE inbox SET isolated = ? {_MINE}", (int(is_isolated), *_place(member)), _build_lost_error())


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def _build_lost_error() -> LostEventError:
    return LostEventError("the event is done, or its lease belongs to another process")


def _read_renewed(item: InboxItem, kept: Iterator[Rows]) -> InboxItem | None:
    """Return the current state of an event, or `None` if another process holds it or one of its members."""
    renewed = [(member, next(kept)) for member in reversed(item.members)]
    if not all(rows for _, rows in renewed):
        return None
    *others, first = [member.replace(cancelled=rows[0][0]) for member, rows in renewed]
    return first.replace(bundle=tuple(reversed(others)))


def _sender(item: InboxItem) -> str:
    return key(item.caller.identity.native_id)


def _place(item: InboxItem) -> tuple[str, str, int]:
    return key(item.channel), key(item.event_id), item.fence
