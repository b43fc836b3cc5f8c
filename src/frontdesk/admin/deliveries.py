"""The operators' actions on deliveries."""

from collections.abc import Mapping, Sequence

from frontdesk.clock import Clock
from frontdesk.delivery.destination_drain import EARLIER
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.errors import ConflictError, NotFoundError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import audit
from frontdesk.models.approval import AuditLine
from frontdesk.models.delivery import ANEW, Attempt, Delivery, DeliveryStatus


class Deliveries:
    def __init__(self, store: HostStateStore, clock: Clock, outbox: OutboxSender | None = None) -> None:
        """Manage the deliveries of a store. `outbox` is woken for retries, if this process sends them."""
        self._store = store
        self._clock = clock
        self._outbox = outbox

    async def list(
        self,
        *,
        status: DeliveryStatus | None = None,
        channel: str | None = None,
        owner: str | None = None,
        run_id: str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> Sequence[Delivery]:
        """List deliveries that match all filters, newest first. `before` is the id of the last one of the previous
        page."""
        return await self._store.outbox.find(
            status=status, channel=channel, owner=owner, run_id=run_id, before=before, limit=limit
        )

    async def counts(self) -> Mapping[DeliveryStatus, int]:
        return await self._store.outbox.counts()

    async def get(self, delivery_id: str) -> Delivery:
        delivery = await self._store.outbox.get(delivery_id)
        if delivery is None:
            raise NotFoundError("Delivery not found.", param="delivery_id")
        return delivery

    async def _get_unchanged(self, delivery_id: str, fence: int | None) -> Delivery:
        delivery = await self.get(delivery_id)
        if fence is not None and delivery.fence != fence:
            raise ConflictError("The delivery has changed since it was read. Read it again.", code="changed")
        return delivery

    async def retry(self, delivery_id: str, *, by: str = "operator", fence: int | None = None) -> Delivery:
        """Send a dead or unknown part again, with new attempts, and the parts of its answer that died with it.

        With `fence`, raise if the delivery has changed since it was read. The same applies to `drop`.
        """
        delivery = await self._get_unchanged(delivery_id, fence)
        if delivery.status not in ("dead", "unknown") or delivery.ended_at is None:
            raise ConflictError(f"The delivery can't be retried: its status is {delivery.status}.", code="not_ended")
        if delivery.payload is None:
            raise ConflictError("This delivery has no payload because rendering failed.", code="nothing_to_send")
        again = [delivery, *await self._died_with(delivery)]
        now = self._clock.now()
        async with self._store.transaction() as transaction:
            for part in again:
                transaction.change_delivery(_anew(part, now))
            transaction.add_audit(_line(delivery, "delivery_retried", by, now))
        audit.info(
            "delivery retried by operator: delivery_id=%s channel=%s actor=%s previous_status=%s",
            delivery_id,
            delivery.channel,
            by,
            delivery.status,
        )
        if self._outbox is not None:
            self._outbox.resume(delivery.channel)
            await self._outbox.wake([_anew(delivery, now)])
        return await self.get(delivery_id)

    async def _died_with(self, delivery: Delivery) -> Sequence[Delivery]:
        same = await self._store.outbox.find(run_id=delivery.run_id, status="dead", limit=1000)
        return [part for part in same if part.answer_id == delivery.answer_id and part.error == EARLIER]

    async def drop(self, delivery_id: str, *, by: str = "operator", fence: int | None = None) -> Delivery:
        """Cancel a part that has not been accepted. The parts after it are sent."""
        delivery = await self._get_unchanged(delivery_id, fence)
        if delivery.status in ("accepted", "cancelled") or delivery.held_for > 0:
            raise ConflictError(
                f"The delivery can't be dropped: its status is {delivery.status}.", code="not_droppable"
            )
        now = self._clock.now()
        history = (*delivery.history, Attempt(at=now, code=f"dropped by {by}"))
        async with self._store.transaction() as transaction:
            transaction.change_delivery(delivery.replace(status="cancelled", ended_at=now, history=history))
            transaction.add_audit(_line(delivery, "delivery_dropped", by, now))
        audit.info(
            "delivery dropped by operator: delivery_id=%s channel=%s actor=%s previous_status=%s",
            delivery_id,
            delivery.channel,
            by,
            delivery.status,
        )
        if self._outbox is not None:
            # The parts behind it need not wait any longer.
            await self._outbox.wake([delivery])
        return await self.get(delivery_id)


def _anew(delivery: Delivery, now: float) -> Delivery:
    history = (*delivery.history, Attempt(at=now, code=ANEW))
    return delivery.replace(status="pending", attempts=0, queued_at=now, due_at=now, ended_at=None, history=history)


def _line(delivery: Delivery, action: str, by: str, at: float) -> AuditLine:
    was = f"was {delivery.status}"
    return AuditLine(at=at, owner=delivery.owner, subject=delivery.delivery_id, action=action, by=by, reason=was)
