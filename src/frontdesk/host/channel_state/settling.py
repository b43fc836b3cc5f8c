"""Note what a platform says of a part after it has accepted it."""

from typing import Literal

from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.delivery import ANEW, Attempt, Delivery
from frontdesk.errors import LostDeliveryError
from frontdesk.kit.auth.secrets import redact
from frontdesk.loggers import deliveries as log

Settlement = Literal["delivered", "failed"]
DELIVERED = "delivered"
NOT_DELIVERED = "not delivered"
_LONGEST_REASON = 200
_MOST_NOTED = 20
_SENT = ("accepted", "found", ANEW)
"""The codes of attempts after which a platform may say something new."""


class Settling:
    """Settles deliveries that have ended; one that is still on its way is left to its sender."""

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
        """Note a statement of a platform; false if it is about no delivery of the channel that has ended."""
        if bool(receipt) == bool(key):
            raise ValueError("name the delivery by its receipt or by its idempotency key, and not by both")
        if status not in ("delivered", "failed"):
            raise ValueError(f"{status!r} is neither 'delivered' nor 'failed'")
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
                log.error("delivery %s on %s was accepted, and then it failed", delivery.delivery_id, channel)
            return True

    async def _find(self, channel: str, receipt: str | None, key: str | None) -> Delivery | None:
        if receipt:
            return await self._store.outbox.by_receipt(channel, receipt)
        found = await self._store.outbox.get(key or "")
        return found if found is not None and found.channel == channel else None


def settle(delivery: Delivery, code: str, *, at: float | None, now: float) -> Delivery | None:
    """Return a delivery with a statement of its platform; `None` if nothing changes because it was said before.

    The statement that is newest by its own time decides; without a time it is the one that comes last.
    """
    said = _said_since_sent(delivery)
    if any(one.code == code and at in (None, one.at) for one in said):
        return None
    stated = Attempt(at=now if at is None else at, code=code)
    noted = delivery.replace(history=(*delivery.history, stated)[-_MOST_NOTED:])
    if delivery.status == "cancelled" or any(one.at > stated.at for one in said):
        return noted
    if code == DELIVERED:
        return noted if delivery.status == "accepted" else noted.replace(status="accepted", error=None, ended_at=now)
    if delivery.status == "dead" and not said:
        # It never went out, for a reason that is known already.
        return noted
    return noted.replace(status="dead", error=code, ended_at=now)


def _said_since_sent(delivery: Delivery) -> list[Attempt]:
    """Return what the platform has said of a part since it was last sent."""
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
    shown = "".join(letter for letter in redact(reason or "") if letter.isprintable())[:_LONGEST_REASON]
    return f"{NOT_DELIVERED}: {shown}" if shown else NOT_DELIVERED
