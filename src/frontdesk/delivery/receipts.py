"""Records delivery receipts, the status reports of platforms for accepted parts. Ends waiting deliveries."""

from collections.abc import AsyncIterator, Callable
from math import inf
from typing import Literal

from frontdesk.chat.aliases import Aliases
from frontdesk.clock import Clock
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.push import add_attempt
from frontdesk.errors import LostDeliveryError, UnreadableRecordError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import deliveries as log
from frontdesk.models.delivery import ANEW, Attempt, Delivery
from frontdesk.secret import redact

Settlement = Literal["delivered", "failed"]
DELIVERED = "delivered"
NOT_DELIVERED = "not delivered"
_MAX_REASON_LENGTH = 200
_MAX_RECORDED = 20
_SENT = ("accepted", "found", ANEW)
"""The codes of attempts after which a platform may say something new."""


class DeliverySettler:
    """Settles finished deliveries. A delivery in flight is left to its sender."""

    def __init__(self, store: HostStateStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def settle(
        self,
        channel: str,
        receipt: str | None,
        key: str | None,
        status: Settlement,
        reason: str | None,
        at: float | None,
    ) -> bool:
        """Record a status report of a platform. Return False if it matches no finished delivery of the channel."""
        if bool(receipt) == bool(key):
            raise ValueError("pass the receipt or the idempotency key of the delivery, not both")
        if status not in ("delivered", "failed"):
            raise ValueError(f"status must be 'delivered' or 'failed', got {status!r}")
        while True:
            delivery = await self._find(channel, receipt, key)
            if delivery is None or delivery.ended_at is None:
                return False
            settled = settle(delivery, _code(status, reason), at=at, now=self._clock.now())
            if settled is None:
                return True
            try:
                async with self._store.transaction() as transaction:
                    transaction.change_delivery(settled)
            except LostDeliveryError:
                # Another has changed it, and may have said the same.
                continue
            if settled.status == "dead" != delivery.status:
                log.error(
                    "delivery failed after it was accepted: delivery_id=%s channel=%s", delivery.delivery_id, channel
                )
            return True

    async def _find(self, channel: str, receipt: str | None, key: str | None) -> Delivery | None:
        if receipt:
            return await self._store.outbox.by_receipt(channel, receipt)
        found = await self._store.outbox.get(key or "")
        return found if found is not None and found.channel == channel else None


def settle(delivery: Delivery, code: str, *, at: float | None, now: float) -> Delivery | None:
    """Return a delivery with a status report applied, or None for a duplicate that changes nothing.

    The report with the newest timestamp wins. Without timestamps it is the one that arrives last.
    """
    said = _list_reports(delivery)
    if any(one.code == code and at in (None, one.at) for one in said):
        return None
    stated = Attempt(at=now if at is None else at, code=code)
    noted = delivery.replace(history=(*delivery.history, stated)[-_MAX_RECORDED:])
    if delivery.status == "cancelled" or any(one.at > stated.at for one in said):
        return noted
    if code == DELIVERED:
        return noted if delivery.status == "accepted" else noted.replace(status="accepted", error=None, ended_at=now)
    if delivery.status == "dead" and not said:
        # It never went out, for a reason that is known already.
        return noted
    return noted.replace(status="dead", error=code, ended_at=now)


def _list_reports(delivery: Delivery) -> list[Attempt]:
    """Return the status reports for a part since it was last sent."""
    said: list[Attempt] = []
    for attempt in delivery.history:
        if attempt.code in _SENT:
            said = []
        elif attempt.code == DELIVERED or attempt.code.startswith(NOT_DELIVERED):
            said.append(attempt)
    return said


def _code(status: Settlement, reason: str | None) -> str:
    if status == "delivered":
        return DELIVERED
    shown = "".join(letter for letter in redact(reason or "") if letter.isprintable())[:_MAX_REASON_LENGTH]
    return f"{NOT_DELIVERED}: {shown}" if shown else NOT_DELIVERED


_PAGE_ROWS = 200


class DeliveryEnder:
    """Ends waiting deliveries of one channel. A delivery in flight is left to its sender and the platform."""

    def __init__(
        self, store: HostStateStore, clock: Clock, aliases: Aliases, outbox: OutboxSender, channel: str
    ) -> None:
        self._store = store
        self._clock = clock
        self._aliases = aliases
        self._outbox = outbox
        self._channel = channel

    async def end(self, place: str, reason: str, before: float, also: Callable[[str], bool] | None) -> int:
        """End deliveries for a destination queued before a time, also for those chosen by `also`. Return their
        number."""
        if await self._aliases.current_name(self._channel, place) != place:
            # The platform closes the old name of a conversation that has moved.
            return 0
        count = await self._end_at(await self._aliases.first_name(self._channel, place), reason, before)
        if also is not None:
            places = [name async for name in self._list_waiting() if also(name)]
            count += sum([await self._end_at(name, reason, before) for name in places])
        if count:
            log.info("deliveries failed permanently: count=%d channel=%s: %s", count, self._channel, reason)
        return count

    async def _list_waiting(self) -> AsyncIterator[str]:
        last: str | None = None
        while page := await self._store.outbox.waiting(self._channel, now=inf, after=last, limit=_PAGE_ROWS):
            for place in page:
                yield place
            last = page[-1]

    async def _end_at(self, place: str, reason: str, before: float) -> int:
        count = 0
        while rows := await self._open(place, before):
            now = self._clock.now()
            try:
                async with self._store.transaction() as transaction:
                    for row in rows:
                        ended = add_attempt(row, now, reason).replace(status="dead", error=reason, ended_at=now)
                        transaction.change_delivery(ended)
            except LostDeliveryError:
                # A sender has taken one of them; the others still wait.
                continue
            count += len(rows)
        return count

    async def _open(self, place: str, before: float) -> list[Delivery]:
        try:
            rows = await self._store.outbox.open((self._channel, place), limit=_PAGE_ROWS)
        except UnreadableRecordError:
            # A newer version gives them up.
            return []
        return [row for row in rows if self._waits(row) and (row.queued_at or row.created_at) < before]

    def _waits(self, row: Delivery) -> bool:
        return row.status == "pending" and row.held_for <= 0 and not self._outbox.is_kept(row)
