"""Deliveries and live messages in SQL: queries and write statements."""

from collections.abc import AsyncIterator, Mapping, Sequence
from math import inf
from typing import Any, get_args

from frontdesk.errors import CodecError, DeliveryExistsError, LostDeliveryError, LostEventError, UnreadableRecordError
from frontdesk.models.delivery import Delivery, DeliveryStatus, Destination, EditDelivery
from frontdesk.models.live_message import LiveFence, LiveMessageRecord, LiveState
from frontdesk.serialization.codec import decode, encode
from frontdesk.stores.sql.background import LeaseSql
from frontdesk.stores.sql.records import Records
from frontdesk.stores.sql.shared_leases import NOW
from frontdesk.stores.sql.tables import DIGEST, as_bytes, key, text
from frontdesk.stores.sql.writes import Do, Engine

_STATUSES: tuple[str, ...] = get_args(DeliveryStatus)
_STATE = ("status", "attempts", "due_at", "queued_at", "ended_at", "receipt", "error", "history", "replaces", "fence")
_PLACE = ("delivery_id", "channel", "place", "owner", "run_id", "answer_id", "part")
# All parts of an answer have one number, so that no part of another answer comes between them. Two processes that
# write at once may use the same number.
_ADD = (
    f"INSERT INTO deliveries (number, {', '.join((*_PLACE, *_STATE))}, data) "
    "SELECT COALESCE((SELECT MIN(number) FROM deliveries WHERE answer_id = ? AND answer_id <> ''), "
    "(SELECT COALESCE(MAX(number), 0) + 1 FROM deliveries)), "
    f"{', '.join('?' for _ in (*_PLACE, *_STATE))}, ? WHERE true "
    "ON CONFLICT (delivery_id) DO NOTHING"
)
_ORDER = "number, answer_id, part, delivery_id"
_NEWEST_FIRST = ", ".join(f"{column} DESC" for column in _ORDER.split(", "))
_EARLIER = f"({_ORDER}) < (SELECT {_ORDER} FROM deliveries WHERE delivery_id = ?)"
_INDEXED_LENGTH = 200
_RECEIPT_START = f"substr(receipt, 1, {_INDEXED_LENGTH})"
"""The part of a receipt that is indexed: a whole one may be longer than Postgres can index."""
# A long or unprintable place is stored as its digest; only the record has the place itself.
_WAITING = """
SELECT place, CASE WHEN substr(place, 1, 1) = ? THEN data END FROM deliveries
WHERE channel = ? AND {past} ended_at IS NULL AND (due_at <= ? OR due_at > ?) AND {left} <= 0 AND NOT EXISTS (
    SELECT 1 FROM deliveries AS earlier
    WHERE earlier.ended_at IS NULL AND earlier.channel = deliveries.channel AND earlier.place = deliveries.place
    AND (earlier.number, earlier.answer_id, earlier.part, earlier.delivery_id)
    < (deliveries.number, deliveries.answer_id, deliveries.part, deliveries.delivery_id)
)
ORDER BY place LIMIT ?
"""


class SqlOutbox:
    def __init__(self, engine: Engine, records: Records, lease_sql: LeaseSql) -> None:
        self._engine = engine
        self._records = records
        self._left = f"GREATEST(until - {NOW}, 0)" if lease_sql.notifies else "0"
        self._select = f"SELECT delivery_id, number, {', '.join(_STATE)}, {self._left}, data FROM deliveries"

    async def get(self, delivery_id: str) -> Delivery | None:
        return await anext(self._read("delivery_id = ?", (key(delivery_id),)), None)

    async def by_receipt(self, channel: str, receipt: str) -> Delivery | None:
        data = as_bytes(receipt)
        where = f"channel = ? AND {_RECEIPT_START} = ? AND receipt = ? ORDER BY {_NEWEST_FIRST} LIMIT 1"
        return await anext(self._read(where, (key(channel), data and data[:_INDEXED_LENGTH], data)), None)

    async def open(self, destination: Destination, *, limit: int = 20) -> Sequence[Delivery]:
        deliveries: list[Delivery] = []
        where = f"channel = ? AND place = ? AND ended_at IS NULL ORDER BY {_ORDER} LIMIT ?"
        try:
            async for delivery in self._read(where, (*map(key, destination), limit)):
                deliveries.append(delivery)
        except UnreadableRecordError:
            # Earlier deliveries can be sent; later ones wait for it.
            if not deliveries:
                raise
        return deliveries

    async def waiting(
        self, channel: str, *, now: float, longest: float | None = None, after: str | None = None, limit: int = 500
    ) -> Sequence[str]:
        sql = _WAITING.format(past="" if after is None else "place > ? AND", left=self._left)
        seen = () if after is None else (key(after),)
        last = inf if longest is None else now + longest
        rows = await self._engine.read(sql, (DIGEST, key(channel), *seen, now, last, limit))
        # A broken record is set aside when it is read, under the key of its place.
        return [place if data is None else await self._place(place, data) for place, data in rows]

    async def _place(self, place: str, data: Any) -> str:
        try:
            return _unwrap(decode(bytes(data))).place
        except CodecError:
            return place

    async def find(
        self,
        *,
        status: DeliveryStatus | None = None,
        channel: str | None = None,
        owner: str | None = None,
        run_id: str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> Sequence[Delivery]:
        wanted = {"status": status, "channel": channel, "owner": owner, "run_id": run_id}
        given = {f"{name} = ?": key(value) for name, value in wanted.items() if value is not None}
        asked = given if before is None else {**given, _EARLIER: key(before)}
        where = f"{' AND '.join(asked) or 'true'} ORDER BY {_NEWEST_FIRST} LIMIT ?"
        # For the operator, records of a newer version are counted and not shown.
        return [delivery async for delivery in self._read(where, (*asked.values(), limit), skip=True)]

    async def counts(self) -> Mapping[DeliveryStatus, int]:
        rows = await self._engine.read("SELECT status, COUNT(*) FROM deliveries GROUP BY status")
        return {row[0]: row[1] for row in rows}

    async def _read(self, where: str, values: Sequence[Any], *, skip: bool = False) -> AsyncIterator[Delivery]:
        for row in await self._engine.read(f"{self._select} WHERE {where}", values):
            try:
                delivery = await self._delivery(*row)
            except UnreadableRecordError:
                if not skip:
                    raise
                continue
            if delivery is not None:
                yield delivery

    async def _delivery(self, delivery_id: str, number: int, *rest: Any) -> Delivery | None:
        *state, held_for, data = rest
        place = ("deliveries", ("delivery_id",), (delivery_id,))
        record: Delivery | EditDelivery | None = await self._records.read("deliveries", place, data)
        if record is None:
            return None
        now = dict(zip(_STATE, state, strict=True))
        self._records.require_known(place, now["status"], _STATUSES)
        now |= {name: text(now[name]) for name in ("receipt", "error", "replaces")}
        now["history"] = () if now["history"] is None else tuple(decode(bytes(now["history"])))
        return _unwrap(record).replace(**now, number=number, held_for=held_for)


def insert_delivery(delivery: Delivery, *, once: bool) -> Do:
    """Insert a delivery after all others."""
    named = (delivery.delivery_id, *delivery.destination, delivery.owner, delivery.run_id, delivery.answer_id)
    row = (*map(key, named), delivery.part, *_state(delivery), delivery.fence, encode(_record(delivery)))
    return Do(_ADD, (key(delivery.answer_id), *row), DeliveryExistsError() if once else None)


def save_delivery(delivery: Delivery, hold: float, lease_sql: LeaseSql) -> Do:
    """Save the state of a delivery, unless it has changed concurrently."""
    until = f"{NOW} + {hold!r}" if lease_sql.notifies and hold else "0"
    names = ", ".join(f"{name} = ?" for name in _STATE[:-1])
    return Do(
        f"UPDATE deliveries SET {names}, fence = fence + 1, until = {until} WHERE delivery_id = ? AND fence = ?",
        (*_state(delivery), key(delivery.delivery_id), delivery.fence),
        LostDeliveryError(),
    )


def rest_ended(delivery: Delivery, error: str, at: float) -> Do:
    """Give up the parts that follow a dead one."""
    return Do(
        "UPDATE deliveries SET status = 'dead', error = ?, ended_at = ?, until = 0, fence = fence + 1 "
        "WHERE channel = ? AND place = ? AND ended_at IS NULL AND answer_id = ? AND part > ?",
        (as_bytes(error), at, *map(key, (*delivery.destination, delivery.answer_id)), delivery.part),
    )


def _state(delivery: Delivery) -> tuple[Any, ...]:
    history = encode(list(delivery.history)) if delivery.history else None
    times = (delivery.due_at, delivery.queued_at, delivery.ended_at)
    texts = (as_bytes(delivery.receipt), as_bytes(delivery.error))
    return (delivery.status, delivery.attempts, *times, *texts, history, as_bytes(delivery.replaces))


def _record(delivery: Delivery) -> Delivery | EditDelivery:
    fixed = delivery.replace(
        status="pending", attempts=0, receipt=None, error=None, history=(), ended_at=None, fence=0, replaces=None
    )
    return EditDelivery(delivery=fixed) if delivery.edits else fixed


def _unwrap(record: Delivery | EditDelivery) -> Delivery:
    return record.delivery if isinstance(record, EditDelivery) else record


_STATES: tuple[str, ...] = get_args(LiveState)
_KEY = ("run_id", "channel", "place")
_COLUMNS = (*_KEY, "state", "handles", "fence", "expires_at")
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM live"
_SAVE = (
    f"INSERT INTO live ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' for _ in _COLUMNS)}) "
    f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET "
    f"{', '.join(f'{column} = excluded.{column}' for column in _COLUMNS[len(_KEY) :])} "
    "WHERE live.fence <= excluded.fence AND live.state <> 'closed'"
)

# The row is locked: whoever takes the answer over does so before or after the transaction.
_HELD = (
    f"UPDATE live SET fence = fence WHERE {' AND '.join(f'{column} = ?' for column in _KEY)} "
    "AND fence = ? AND state <> 'closed'"
)


class SqlLiveAnswers:
    def __init__(self, engine: Engine, records: Records) -> None:
        self._engine = engine
        self._records = records

    async def get(self, run_id: str, channel: str, place: str) -> LiveMessageRecord | None:
        where = " AND ".join(f"{column} = ?" for column in _KEY)
        rows = await self._engine.read(f"{_SELECT} WHERE {where}", (key(run_id), key(channel), key(place)))
        if not rows:
            return None
        return self._live(rows[0]).replace(run_id=run_id, channel=channel, place=place)

    async def lost(self, *, limit: int = 100) -> Sequence[LiveMessageRecord]:
        rows = await self._engine.read(f"{_SELECT} WHERE state = 'lost' ORDER BY run_id LIMIT ?", (limit,))
        return [self._live(row) for row in rows]

    def _live(self, row: Sequence[Any]) -> LiveMessageRecord:
        *name, state, handles, fence, expires_at = row
        place = ("live", _KEY, name)
        self._records.require_known(place, state, _STATES)
        known: list[str] | None = self._records.read_column(place, None if handles is None else bytes(handles))
        run_id, channel, destination = name
        return LiveMessageRecord(
            run_id=run_id,
            channel=channel,
            place=destination,
            state=state,
            handles=tuple(known or ()),
            fence=fence,
            expires_at=expires_at,
        )


def save_live(live: LiveMessageRecord) -> Do:
    """Save a live message, unless a later claim has it or it is closed."""
    names = (key(live.run_id), key(live.channel), key(live.place))
    handles = encode(list(live.handles)) if live.handles else None
    return Do(_SAVE, (*names, live.state, handles, live.fence, live.expires_at), LostEventError())


def require_live(fence: LiveFence) -> Do:
    """Fail the transaction if a later claim has the live message, or it is closed."""
    return Do(_HELD, (key(fence.run_id), key(fence.channel), key(fence.place), fence.fence), LostEventError())
