"""Inbound events of the in-memory store."""

from collections.abc import Container, Iterator, Sequence
from itertools import takewhile

from frontdesk.data.delivery import CANCELLED, Cancelled, EventKind, InboxItem, KnownEvent, WaitingEvent
from frontdesk.errors import LostEventError
from frontdesk.stores.shelf import SharedShelf, Shelf


class MemoryInbox:
    """Events that were accepted and are not finished."""

    def __init__(self, limit: int) -> None:
        self.known: SharedShelf[tuple[str, str], tuple[str, str | None]] = SharedShelf(
            limit, lambda key, event: (key[0], event[0])
        )
        """The conversation and the run of each event, finished or not."""
        self.queues: dict[tuple[str, str], dict[str, InboxItem]] = {}
        self.holders: dict[tuple[str, str], str] = {}
        self.errors: Shelf[int, tuple[InboxItem, str]] = Shelf(limit, self._forget)
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
        taken = item.replace(fence=item.fence + 1, attempts=item.attempts + 1)
        self.queues[item.channel, item.conversation_id][item.event_id] = taken
        self.holders[item.channel, item.event_id] = holder
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
        self, holder: str, *, kind: EventKind = "turn", after: int = 0, limit: int = 500
    ) -> Sequence[WaitingEvent]:
        free = (item for item in self._all() if self.holders.get((item.channel, item.event_id)) != holder)
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
        running = sum((turn.channel, turn.event_id) in self.holders for turn in earlier)
        return Cancelled(running=running, dropped=len(earlier) - running)

    def postpone_earlier(self, item: InboxItem) -> None:
        queue, until = self.queues.get((item.channel, item.conversation_id), {}), item.not_before
        for event_id, turn in queue.items():
            if turn.not_before is None or until is None or (turn.channel, event_id) in self.holders:
                continue
            if _is_message_of(turn, item):
                queue[event_id] = turn.replace(not_before=max(turn.not_before, until))

    def interrupt_earlier(self, item: InboxItem, only: Sequence[str] | None = None) -> None:
        queue = self.queues.get((item.channel, item.conversation_id), {})
        accepted = queue.get(item.event_id)
        for turn in [] if accepted is None else self._earlier(accepted, anyone=False):
            if turn.is_message and turn.cancelled is None and (only is None or turn.event_id in only):
                queue[turn.event_id] = turn.replace(cancelled="")

    def cancel_earlier(self, item: InboxItem, anyone: bool, session_id: str) -> None:
        for turn in self._earlier(item, anyone):
            if (turn.channel, turn.event_id) not in self.holders:
                self.finish(turn, CANCELLED)
            elif turn.cancelled is None:
                queue = self.queues[turn.channel, turn.conversation_id]
                queue[turn.event_id] = turn.replace(cancelled=session_id)

    def check_turn(self, item: InboxItem) -> None:
        self.check(item)
        if self._current(item).kind != "turn":
            raise LostEventError("the event is no turn")

    def cancel(self, item: InboxItem) -> None:
        current = self._current(item)
        if (item.channel, item.event_id) not in self.holders:
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
            raise LostEventError("the event is done, or another process answers it")

    def _is_mine(self, item: InboxItem) -> bool:
        current = self.queues.get((item.channel, item.conversation_id), {}).get(item.event_id)
        return current is not None and current.fence == item.fence

    def finish(self, item: InboxItem, error: str | None) -> None:
        queue = self.queues.get((item.channel, item.conversation_id), {})
        current = queue.pop(item.event_id, item)
        self.holders.pop((item.channel, item.event_id), None)
        if not queue:
            self.queues.pop((item.channel, item.conversation_id), None)
        if error is not None:
            self.errors.put(current.number, (current, error))
            self.order[current.number] = None

    def give_back(self, item: InboxItem, tried: bool) -> None:
        queue = self.queues[item.channel, item.conversation_id]
        queue[item.event_id] = queue[item.event_id].replace(attempts=item.attempts - (not tried))
        self.holders.pop((item.channel, item.event_id), None)


def _is_due(item: InboxItem, now: float, longest: float) -> bool:
    if item.not_before is None or item.not_before <= now:
        return True
    return item.due_by is not None and (item.due_by <= now or item.due_by > now + longest)


def _is_message_of(item: InboxItem, other: InboxItem) -> bool:
    return item.is_message and item.caller.identity.native_id == other.caller.identity.native_id


def _goes_with(first: InboxItem, item: InboxItem) -> bool:
    """Tell whether a turn can be answered together with the first one."""
    return item.cancelled is None and _is_message_of(item, first)


def _is_of_albums(first: InboxItem, item: InboxItem, albums: Container[str | None]) -> bool:
    """Tell whether a turn is a part of an album that is answered with the first one."""
    return item.waits_for_album and item.album_id in albums and _goes_with(first, item)
