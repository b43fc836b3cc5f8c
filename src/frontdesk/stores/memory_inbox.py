"""Inbound events of the in-memory store."""

from collections.abc import Iterator, Sequence

from frontdesk.data.delivery import InboxItem, WaitingEvent
from frontdesk.errors import LostEventError
from frontdesk.stores.memory_drawers import Shelf


class MemoryInbox:
    """Events that were accepted and are not finished."""

    def __init__(self, limit: int) -> None:
        self.known: Shelf[tuple[str, str], None] = Shelf(limit)
        self.queues: dict[tuple[str, str], dict[str, InboxItem]] = {}
        self.holders: dict[tuple[str, str], str] = {}
        self.errors: Shelf[int, tuple[InboxItem, str]] = Shelf(limit, self._forget)
        self.order: dict[int, None] = {}
        self.count = 0

    def _forget(self, number: int, _: object) -> None:
        self.order.pop(number, None)

    async def next(self, channel: str, conversation_id: str) -> InboxItem | None:
        queue = self.queues.get((channel, conversation_id), {})
        return next(iter(queue.values()), None)

    async def claim(self, channel: str, conversation_id: str, holder: str) -> InboxItem | None:
        item = await self.next(channel, conversation_id)
        if item is None or self.holders.get((channel, item.event_id)) == holder:
            return None
        taken = item.replace(fence=item.fence + 1, attempts=item.attempts + 1)
        self.queues[channel, conversation_id][item.event_id] = taken
        self.holders[channel, item.event_id] = holder
        return taken

    async def renew(self, items: Sequence[InboxItem]) -> Sequence[InboxItem]:
        return [item for item in items if self._is_mine(item) and (item.channel, item.event_id) in self.holders]

    async def waiting(self, holder: str, *, after: int = 0, limit: int = 500) -> Sequence[WaitingEvent]:
        free = (item for item in self._all() if self.holders.get((item.channel, item.event_id)) != holder)
        items = sorted((item for item in free if item.number > after), key=lambda item: item.number)[:limit]
        return [WaitingEvent(item.channel, item.conversation_id, item.number) for item in items]

    def _all(self) -> Iterator[InboxItem]:
        for queue in self.queues.values():
            yield from queue.values()

    async def failed(self, *, before: int | None = None, limit: int = 100) -> Sequence[tuple[InboxItem, str]]:
        numbers = [number for number in reversed(self.order) if before is None or number < before][:limit]
        failures = (self.errors.get(number) for number in numbers)
        return [failure for failure in failures if failure is not None]

    def accept(self, item: InboxItem) -> None:
        if (item.channel, item.event_id) in self.known:
            return
        self.count += 1
        self.known.put((item.channel, item.event_id), None)
        queue = self.queues.setdefault((item.channel, item.conversation_id), {})
        queue[item.event_id] = item.replace(number=self.count)

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
