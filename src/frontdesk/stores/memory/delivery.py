"""Inbox events, deliveries and live messages of the in-memory store."""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from math import inf

from frontdesk.errors import DeliveryExistsError, LostDeliveryError, LostEventError
from frontdesk.models.delivery import (
    CANCELLED,
    Cancelled,
    Delivery,
    DeliveryStatus,
    Destination,
    EventKind,
    InboxItem,
    KnownEvent,
    WaitingEvent,
)
from frontdesk.models.live_message import LiveFence, LiveMessageRecord
from frontdesk.stores.memory.bounded_dict import BoundedDict, FairBoundedDict


class MemoryInbox:
    def __init__(self, limit: int) -> None:
        self.known: FairBoundedDict[tuple[str, str], tuple[str, str | None]] = FairBoundedDict(
            limit, lambda key, event: (key[0], event[0])
        )
        """The conversation and the run of each event, finished or not."""
        self.queues: dict[tuple[str, str], dict[str, InboxItem]] = {}
        self.holders: dict[tuple[str, str], str] = {}
        self.isolated: set[tuple[str, str]] = set()
        self.errors: BoundedDict[int, tuple[InboxItem, str]] = BoundedDict(limit, self._forget)
        self.order: dict[int, None] = {}
        self.count = 0

    def _forget(self, number: int, _: object) -> None:
        self.order.pop(number, None)

    async def next(self, channel: str, conversation_id: str, *, kind: EventKind = "turn") -> InboxItem | None:
        queue = self.queues.get((channel, conversation_id), {})
        return next((item for item in queue.values() if item.kind == kind), None)

    async def claim(
        self, channel: str, conversation_id: str, holder: str, *, kind: EventKind = "turn"
    ) -> InboxItem | None:
        item = await self.next(channel, conversation_id, kind=kind)
        if item is None or self.holders.get((channel, item.event_id)) == holder:
            return None
        return self._take(item, holder)

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
        first = await self.next(channel, conversation_id)
        if first is None or not _is_due(first, now, longest) or self.holders.get((channel, first.event_id)) == holder:
            return None
        taken = self._take(first, holder)
        if not first.is_message or first.is_cancelled:
            return taken
        turns = [item for item in self.queues[channel, conversation_id].values() if item.kind == "turn"][1:]
        following = [] if albums_only else list(takewhile(lambda item: _goes_with(first, item), turns))
        albums = {item.album_id for item in (first, *following) if item.waits_for_album}
        rest = [item for item in turns[len(following) :] if _is_of_albums(first, item, albums)]
        together = (following + rest)[: limit - 1]
        free = [item for item in together if self.holders.get((channel, item.event_id)) != holder]
        return taken.replace(bundle=tuple(self._take(item, holder) for item in free))

    def _take(self, item: InboxItem, holder: str) -> InboxItem:
        name = (item.channel, item.event_id)
        counts = {"fence": item.fence + 1, "attempts": item.attempts + 1}
        if name in self.holders:
            counts |= {"lost": item.lost + 1, "alone": item.alone + (name in self.isolated)}
        taken = item.replace(**counts)
        self.queues[item.channel, item.conversation_id][item.event_id] = taken
        self.holders[name] = holder
        self.isolated.discard(name)
        return taken

    async def renew(self, items: Sequence[InboxItem]) -> Sequence[InboxItem]:
        return [
            self._current(item).replace(bundle=tuple(self._current(member) for member in item.bundle))
            for item in items
            if all(self._is_mine(one) and (one.channel, one.event_id) in self.holders for one in item.members)
        ]

    def _current(self, item: InboxItem) -> InboxItem:
        return self.queues[item.channel, item.conversation_id][item.event_id]

    async def find(self, channel: str, event_id: str) -> KnownEvent | None:
        known = self.known.get((channel, event_id))
        if known is None:
            return None
        conversation_id, run_id = known
        return KnownEvent(run_id, event_id not in self.queues.get((channel, conversation_id), {}))

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
        listed = (item for item in self._all() if channels is None or (item.channel in channels) != other)
        free = (item for item in listed if self.holders.get((item.channel, item.event_id)) != holder)
        items = sorted(
            (item for item in free if item.kind == kind and item.number > after), key=lambda item: item.number
        )[:limit]
        return [WaitingEvent(item.channel, item.conversation_id, item.number) for item in items]

    def _all(self) -> Iterator[InboxItem]:
        for queue in self.queues.values():
            yield from queue.values()

    async def count_waiting(self, item: InboxItem) -> int:
        sender = item.caller.identity.native_id
        turns = (turn for turn in self._all() if turn.kind == "turn" and turn.channel == item.channel)
        return sum(turn.caller.identity.native_id == sender and turn.event_id != item.event_id for turn in turns)

    async def count_waiting_on(self, channel: str) -> int:
        return sum(turn.kind == "turn" and turn.channel == channel for turn in self._all())

    async def outside_album(self, item: InboxItem) -> Sequence[str]:
        queue = self.queues.get((item.channel, item.conversation_id), {})
        messages = [turn for turn in queue.values() if _goes_with(item, turn)]
        return [turn.event_id for turn in messages if turn.album_id != item.album_id]

    async def failed(self, *, before: int | None = None, limit: int = 100) -> Sequence[tuple[InboxItem, str]]:
        # Events of different conversations, and cancelled ones, don't end in the order in which they came.
        numbers = sorted((number for number in self.order if before is None or number < before), reverse=True)[:limit]
        failures = (self.errors.get(number) for number in numbers)
        return [failure for failure in failures if failure is not None]

    def accept(self, item: InboxItem) -> None:
        if (item.channel, item.event_id) in self.known:
            return
        self.count += 1
        self.known.put((item.channel, item.event_id), (item.conversation_id, item.run_id))
        queue = self.queues.setdefault((item.channel, item.conversation_id), {})
        queue[item.event_id] = item.replace(number=self.count)

    async def count_earlier(self, item: InboxItem, *, anyone: bool = False) -> Cancelled:
        earlier = self._earlier(item, anyone)
        running = sum(turn.fence > 0 for turn in earlier)
        return Cancelled(running=running, dropped=len(earlier) - running)

    def postpone_earlier(self, item: InboxItem) -> None:
        queue, until = self.queues.get((item.channel, item.conversation_id), {}), item.not_before
        for event_id, turn in queue.items():
            if turn.not_before is None or until is None or (turn.channel, event_id) in self.holders:
                continue
            if _belongs_to_message(turn, item):
                queue[event_id] = turn.replace(not_before=max(turn.not_before, until))

    def interrupt_earlier(self, item: InboxItem, only: Sequence[str] | None = None) -> None:
        queue = self.queues.get((item.channel, item.conversation_id), {})
        accepted = queue.get(item.event_id)
        for turn in [] if accepted is None else self._earlier(accepted, anyone=False):
            if turn.is_message and turn.cancelled is None and (only is None or turn.event_id in only):
                queue[turn.event_id] = turn.replace(cancelled="")

    def cancel_earlier(self, item: InboxItem, anyone: bool, session_id: str) -> None:
        for turn in self._earlier(item, anyone):
            if not turn.fence:
                self.finish(turn, CANCELLED)
            elif turn.cancelled is None:
                queue = self.queues[turn.channel, turn.conversation_id]
                queue[turn.event_id] = turn.replace(cancelled=session_id)

    def check_turn(self, item: InboxItem) -> None:
        self.check(item)
        if self._current(item).kind != "turn":
            raise LostEventError("the event is not a turn")

    def cancel(self, item: InboxItem) -> None:
        current = self._current(item)
        if not current.fence:
            self.finish(current, CANCELLED)
        elif current.cancelled is None:
            self.queues[item.channel, item.conversation_id][item.event_id] = current.replace(cancelled="")

    def _earlier(self, item: InboxItem, anyone: bool) -> list[InboxItem]:
        sender = item.caller.identity.native_id
        return [
            turn
            for turn in self.queues.get((item.channel, item.conversation_id), {}).values()
            if turn.kind == "turn"
            and turn.number < item.number
            and (anyone or turn.caller.identity.native_id == sender)
        ]

    def check_finish(self, item: InboxItem, error: str | None) -> None:
        self.check(item)
        current = self.queues[item.channel, item.conversation_id][item.event_id]
        if current.cancelled is not None and error != CANCELLED:
            raise LostEventError("the event was cancelled")

    def check(self, item: InboxItem) -> None:
        if not self._is_mine(item):
            raise LostEventError("the event is done, or its lease belongs to another process")

    def _is_mine(self, item: InboxItem) -> bool:
        current = self.queues.get((item.channel, item.conversation_id), {}).get(item.event_id)
        return current is not None and current.fence == item.fence

    def finish(self, item: InboxItem, error: str | None) -> None:
        queue = self.queues.get((item.channel, item.conversation_id), {})
        current = queue.pop(item.event_id, item)
        self._release(item)
        if not queue:
            self.queues.pop((item.channel, item.conversation_id), None)
        if error is not None:
            self.errors.put(current.number, (current, error))
            self.order[current.number] = None

    def give_back(self, item: InboxItem, tried: bool) -> None:
        queue = self.queues[item.channel, item.conversation_id]
        queue[item.event_id] = queue[item.event_id].replace(attempts=item.attempts - (not tried))
        self._release(item)

    def isolate(self, item: InboxItem, isolated: bool) -> None:
        (self.isolated.add if isolated else self.isolated.discard)((item.channel, item.event_id))

    def _release(self, item: InboxItem) -> None:
        self.holders.pop((item.channel, item.event_id), None)
        self.isolated.discard((item.channel, item.event_id))


def _is_due(item: InboxItem, now: float, longest: float) -> bool:
    if item.not_before is None or item.not_before <= now:
        return True
    return item.due_by is not None and (item.due_by <= now or item.due_by > now + longest)


def _belongs_to_message(item: InboxItem, other: InboxItem) -> bool:
    return item.is_message and item.caller.identity.native_id == other.caller.identity.native_id


def _goes_with(first: InboxItem, item: InboxItem) -> bool:
    return item.cancelled is None and _belongs_to_message(item, first)


def _is_of_albums(first: InboxItem, item: InboxItem, albums: Container[str | None]) -> bool:
    return item.waits_for_album and item.album_id in albums and _goes_with(first, item)


class MemoryOutbox:
    """Deliveries and their state. Pending ones are all kept, ended ones up to a limit."""

    def __init__(self, limit: int) -> None:
        self.queues: dict[Destination, dict[str, Delivery]] = {}
        self.places: dict[str, Destination] = {}
        self.ended: FairBoundedDict[str, Delivery] = FairBoundedDict(
            limit, lambda _, delivery: delivery.owner, self._forget
        )
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


class MemoryLiveAnswers:
    """Live messages by run, channel and place."""

    def __init__(self, limit: int) -> None:
        self.kept: BoundedDict[tuple[str, str, str], LiveMessageRecord] = BoundedDict(limit)

    async def get(self, run_id: str, channel: str, place: str) -> LiveMessageRecord | None:
        return self.kept.get((run_id, channel, place))

    async def lost(self, *, limit: int = 100) -> Sequence[LiveMessageRecord]:
        answers = sorted((live for _, live in self.kept.items() if live.state == "lost"), key=lambda live: live.run_id)
        return answers[:limit]

    def check(self, live: LiveMessageRecord) -> None:
        """Reject a write if a later claim has written, or the answer is closed."""
        current = self.kept.get((live.run_id, live.channel, live.place))
        if current is not None and (current.fence > live.fence or current.state == "closed"):
            raise LostEventError

    def check_held(self, fence: LiveFence) -> None:
        """Reject a write if a later claim has the answer, or it is closed."""
        current = self.kept.get((fence.run_id, fence.channel, fence.place))
        if current is None or current.fence != fence.fence or current.state == "closed":
            raise LostEventError

    def save(self, live: LiveMessageRecord) -> None:
        self.kept.put((live.run_id, live.channel, live.place), live)

    def drop_expired(self, now: float) -> None:
        for place in [place for place, live in self.kept.items() if live.expires_at < now]:
            self.kept.pop(place)
