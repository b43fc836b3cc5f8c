"""The deliveries of the in-memory store. Nothing here awaits, so on one event loop every call is atomic."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import inf

from frontdesk.data.delivery import Delivery, DeliveryStatus, Destination
from frontdesk.errors import DeliveryExistsError, LostDeliveryError
from frontdesk.stores.shelf import SharedShelf


class MemoryOutbox:
    """Deliveries and their state. Those that wait are all kept; those that have ended are bounded."""

    def __init__(self, limit: int) -> None:
        self.queues: dict[Destination, dict[str, Delivery]] = {}
        self.places: dict[str, Destination] = {}
        self.ended: SharedShelf[str, Delivery] = SharedShelf(limit, lambda _, delivery: delivery.owner, self._forget)
        self.in_order: dict[str, None] = {}
        self.count = 0

    def _forget(self, delivery_id: str, record: Delivery) -> None:
        self.in_order.pop(delivery_id, None)

    async def get(self, delivery_id: str) -> Delivery | None:
        return self._get(delivery_id)

    def _get(self, delivery_id: str) -> Delivery | None:
        place = self.places.get(delivery_id)
        return self.ended.get(delivery_id) if place is None else self.queues[place][delivery_id]

    async def by_receipt(self, channel: str, receipt: str) -> Delivery | None:
        found = (one for one in self.newest_first() if one.receipt == receipt and one.channel == channel)
        return next(found, None)

    async def open(self, destination: Destination, *, limit: int = 20) -> Sequence[Delivery]:
        return list(islice(self.queues.get(destination, {}).values(), limit))

    async def waiting(
        self, channel: str, *, now: float, longest: float | None = None, after: str | None = None, limit: int = 500
    ) -> Sequence[str]:
        last = inf if longest is None else now + longest
        places = (
            place
            for (name, place), queue in self.queues.items()
            if name == channel
            and (after is None or place > after)
            and not now < next(iter(queue.values())).due_at <= last
        )
        return sorted(places)[:limit]

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
        wanted = (("status", status), ("channel", channel), ("owner", owner), ("run_id", run_id))
        given = [(name, value) for name, value in wanted if value is not None]
        last = None if before is None else self._get(before)
        most = self.count + 1 if before is None else 0 if last is None else last.number
        matching = (
            delivery
            for delivery in self.newest_first()
            if delivery.number < most and all(getattr(delivery, name) == value for name, value in given)
        )
        return list(islice(matching, limit))

    def newest_first(self) -> Iterator[Delivery]:
        """Yield every delivery."""
        for delivery_id in reversed(self.in_order):
            if (delivery := self._get(delivery_id)) is not None:
                yield delivery

    async def counts(self) -> Mapping[DeliveryStatus, int]:
        return Counter(delivery.status for delivery in self.newest_first())

    def check_new(self, delivery_id: str) -> None:
        if delivery_id in self.in_order:
            raise DeliveryExistsError

    def check(self, delivery: Delivery) -> None:
        current = self._get(delivery.delivery_id)
        if current is None or current.fence != delivery.fence:
            raise LostDeliveryError

    def add(self, delivery: Delivery) -> None:
        if delivery.delivery_id not in self.in_order:
            self.count += 1
            self.in_order[delivery.delivery_id] = None
            self._put(delivery.replace(number=self.count))

    def change(self, delivery: Delivery) -> None:
        current = self._get(delivery.delivery_id)
        if current is not None:
            self._put(delivery.replace(fence=current.fence + 1, number=current.number))

    def end_rest(self, delivery: Delivery, error: str, at: float) -> None:
        for other in list(self.queues.get(delivery.destination, {}).values()):
            if other.answer_id == delivery.answer_id and other.part > delivery.part:
                self.change(other.replace(status="dead", error=error, ended_at=at))

    def _put(self, delivery: Delivery) -> None:
        delivery_id, destination = delivery.delivery_id, delivery.destination
        queue = self.queues.setdefault(destination, {})
        if delivery.ended_at is None:
            self.ended.pop(delivery_id)
            again = delivery_id not in queue and bool(queue)
            queue[delivery_id] = delivery
            self.places[delivery_id] = destination
            if again and delivery.number < self.count:
                # A delivery that was given up returns to its old position.
                self.queues[destination] = dict(sorted(queue.items(), key=lambda item: item[1].number))
            return
        queue.pop(delivery_id, None)
        self.places.pop(delivery_id, None)
        if not queue:
            del self.queues[destination]
        self.ended.put(delivery_id, delivery)
