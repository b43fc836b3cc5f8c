"""The drawers of the in-memory store. Nothing here awaits, so on one event loop every call is atomic."""

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from frontdesk.data.approval import ApprovalStatus, PendingApproval
from frontdesk.data.conversation import Conversation, ConversationItem
from frontdesk.data.delivery import Delivery, DeliveryStatus, InboxItem
from frontdesk.data.identity import ChannelIdentity, IdentityRecord, LastSeen
from frontdesk.data.link import LinkRecord
from frontdesk.data.run import RunEvent, RunRecord
from frontdesk.data.session import Lease, SessionName, SessionRecord
from frontdesk.errors import StaleTurnError, StoreError

K = TypeVar("K")
V = TypeVar("V")


class Shelf(Generic[K, V]):
    """A dictionary that drops what was longest untouched when it is full."""

    __slots__ = ("_items", "_limit", "_on_drop")

    def __init__(self, limit: int, on_drop: Callable[[K, V], None] | None = None) -> None:
        self._items: OrderedDict[K, V] = OrderedDict()
        self._limit = limit
        self._on_drop = on_drop

    def get(self, key: K) -> V | None:
        return self._items.get(key)

    def put(self, key: K, value: V) -> None:
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._limit:
            dropped = self._items.popitem(last=False)
            if self._on_drop is not None:
                self._on_drop(*dropped)

    def pop(self, key: K) -> V | None:
        return self._items.pop(key, None)

    def __contains__(self, key: K) -> bool:
        return key in self._items

    def __len__(self) -> int:
        return len(self._items)


class MemorySessions:
    """Sessions, their names and their messages."""

    def __init__(self, limit: int) -> None:
        self.records: Shelf[str, SessionRecord] = Shelf(limit, self._forget)
        self.names: Shelf[SessionName, str] = Shelf(4 * limit)
        self.messages: dict[str, list[Any]] = {}
        self.fences: Shelf[str, int] = Shelf(4 * limit)

    def _forget(self, session_id: str, record: SessionRecord) -> None:
        self.messages.pop(session_id, None)
        self.fences.pop(session_id)
        self.names.pop(SessionName(owner=record.owner, kind="named", value=record.key))

    async def find(self, name: SessionName) -> SessionRecord | None:
        session_id = self.names.get(name)
        return None if session_id is None else self.records.get(session_id)

    async def get(self, owner: str, session_id: str) -> SessionRecord | None:
        record = self.records.get(session_id)
        return record if record is not None and record.owner == owner else None

    async def reserve(self, name: SessionName, session_id: str) -> str:
        known = self.names.get(name)
        if known is None:
            self.names.put(name, session_id)
            return session_id
        return known

    async def claim(self, session_id: str) -> Lease:
        fence = (self.fences.get(session_id) or 0) + 1
        self.fences.put(session_id, fence)
        return Lease(session_id=session_id, fence=fence)

    async def history(self, owner: str, session_id: str) -> Sequence[Any]:
        record = await self.get(owner, session_id)
        if record is None:
            return ()
        own = self.messages.get(session_id, [])
        if record.parent is None:
            return list(own)
        shared = await self.history(owner, record.parent.session_id)
        return [*shared[: record.parent.messages], *own]

    def check(self, lease: Lease) -> None:
        if self.fences.get(lease.session_id) != lease.fence:
            raise StaleTurnError

    def save(self, record: SessionRecord) -> None:
        self.records.put(record.session_id, record)

    def append(self, session_id: str, messages: Sequence[Any]) -> None:
        self.messages.setdefault(session_id, []).extend(messages)


class MemoryIdentities:
    """Who was issued which isolation key."""

    def __init__(self, limit: int) -> None:
        self.records: Shelf[tuple[str, str], IdentityRecord] = Shelf(limit, self._forget)
        self.seen: Shelf[str, LastSeen] = Shelf(limit)
        self.owned: dict[str, dict[tuple[str, str], ChannelIdentity]] = {}
        self.linked: dict[str, dict[tuple[str, str], LinkRecord]] = {}

    def _forget(self, key: tuple[str, str], record: IdentityRecord) -> None:
        owned = self.owned.get(record.isolation_key, {})
        owned.pop(key, None)
        if not owned:
            self.owned.pop(record.isolation_key, None)

    async def find(self, identity: ChannelIdentity) -> IdentityRecord | None:
        return self.records.get(identity.key)

    async def remember(self, record: IdentityRecord) -> IdentityRecord:
        known = self.records.get(record.identity.key)
        if known is None:
            self.save(record)
            return record
        return known

    async def of_owner(self, isolation_key: str) -> Sequence[ChannelIdentity]:
        return list(self.owned.get(isolation_key, {}).values())

    async def last_seen(self, isolation_key: str) -> LastSeen | None:
        return self.seen.get(isolation_key)

    async def links(self, isolation_key: str) -> Sequence[LinkRecord]:
        return list(self.linked.get(isolation_key, {}).values())

    def save(self, record: IdentityRecord) -> None:
        known = self.records.get(record.identity.key)
        if known is not None:
            self._forget(record.identity.key, known)
        self.owned.setdefault(record.isolation_key, {})[record.identity.key] = record.identity
        self.records.put(record.identity.key, record)

    def see(self, seen: LastSeen) -> None:
        self.seen.put(seen.isolation_key, seen)

    def link(self, link: LinkRecord) -> None:
        self.linked.setdefault(link.isolation_key, {})[link.identity.key] = link

    def unlink(self, isolation_key: str, identity: ChannelIdentity) -> None:
        self.linked.get(isolation_key, {}).pop(identity.key, None)


class MemoryRuns:
    """Runs and the events of background streams."""

    def __init__(self, limit: int) -> None:
        self.records: Shelf[tuple[str, str], RunRecord] = Shelf(limit, self._forget)
        self.log: dict[tuple[str, str], list[RunEvent]] = {}

    def _forget(self, key: tuple[str, str], record: RunRecord) -> None:
        self.log.pop(key, None)

    async def get(self, owner: str, run_id: str) -> RunRecord | None:
        return self.records.get((owner, run_id))

    async def events(self, owner: str, run_id: str, *, after: int = 0, limit: int = 1000) -> Sequence[RunEvent]:
        # Events are numbered from 1 without gaps, so that the number is the position.
        return self.log.get((owner, run_id), [])[after : after + limit]

    def save(self, record: RunRecord) -> None:
        self.records.put((record.owner, record.run_id), record)

    def delete(self, owner: str, run_id: str) -> None:
        self.records.pop((owner, run_id))
        self.log.pop((owner, run_id), None)

    def add_events(self, events: Sequence[RunEvent]) -> None:
        for event in events:
            self.log.setdefault((event.owner, event.run_id), []).append(event)


class MemoryApprovals:
    """Questions that wait for a human."""

    def __init__(self, limit: int) -> None:
        self.records: Shelf[str, PendingApproval] = Shelf(limit, self._forget)
        self.owned: dict[str, dict[str, None]] = {}

    def _forget(self, approval_id: str, record: PendingApproval) -> None:
        owned = self.owned.get(record.owner, {})
        owned.pop(approval_id, None)
        if not owned:
            self.owned.pop(record.owner, None)

    async def get(self, owner: str, approval_id: str) -> PendingApproval | None:
        record = self.records.get(approval_id)
        return record if record is not None and record.owner == owner else None

    async def of_session(self, owner: str, session_id: str) -> Sequence[PendingApproval]:
        return [one for one in self._of(owner) if one.session_id == session_id]

    async def pending(self, owner: str) -> Sequence[PendingApproval]:
        return [one for one in self._of(owner) if one.status == "pending"]

    def _of(self, owner: str) -> list[PendingApproval]:
        found = (self.records.get(approval_id) for approval_id in self.owned.get(owner, ()))
        return [one for one in found if one is not None]

    def check(self, owner: str, approval_id: str) -> None:
        record = self.records.get(approval_id)
        if record is None or record.owner != owner or record.status != "pending":
            raise StoreError("the approval is not pending")

    def decide(self, approval_id: str, status: ApprovalStatus, at: float, reason: str | None) -> None:
        record = self.records.get(approval_id)
        if record is not None:
            self.records.put(approval_id, record.replace(status=status, decided_at=at, reason=reason))

    def add(self, approval: PendingApproval) -> None:
        self.owned.setdefault(approval.owner, {})[approval.approval_id] = None
        self.records.put(approval.approval_id, approval)


class MemoryInbox:
    """Events that were accepted and are not finished."""

    def __init__(self, limit: int) -> None:
        self.known: Shelf[tuple[str, str], None] = Shelf(limit)
        self.queues: dict[tuple[str, str], dict[str, InboxItem]] = {}
        self.count = 0

    async def next(self, channel: str, conversation_id: str) -> InboxItem | None:
        queue = self.queues.get((channel, conversation_id), {})
        return next(iter(queue.values()), None)

    async def waiting(self) -> Sequence[tuple[str, str]]:
        return list(self.queues)

    def accept(self, item: InboxItem) -> None:
        if (item.channel, item.event_id) in self.known:
            return
        self.count += 1
        self.known.put((item.channel, item.event_id), None)
        queue = self.queues.setdefault((item.channel, item.conversation_id), {})
        queue[item.event_id] = item.replace(number=self.count)

    def finish(self, item: InboxItem) -> None:
        queue = self.queues.get((item.channel, item.conversation_id), {})
        queue.pop(item.event_id, None)
        if not queue:
            self.queues.pop((item.channel, item.conversation_id), None)


class MemoryOutbox:
    """Deliveries and how far they are."""

    def __init__(self, limit: int) -> None:
        self.records: Shelf[str, Delivery] = Shelf(limit, self._forget)
        self.queue: list[tuple[float, str]] = []

    def _forget(self, delivery_id: str, record: Delivery) -> None:
        place = bisect_left(self.queue, (record.due_at, delivery_id))
        if place < len(self.queue) and self.queue[place] == (record.due_at, delivery_id):
            del self.queue[place]

    async def get(self, delivery_id: str) -> Delivery | None:
        return self.records.get(delivery_id)

    async def due(self, now: float, *, limit: int = 100) -> Sequence[Delivery]:
        ready = self.queue[: min(limit, bisect_left(self.queue, (now, chr(0x10FFFF))))]
        found = (self.records.get(delivery_id) for _, delivery_id in ready)
        return [one for one in found if one is not None]

    def add(self, delivery: Delivery) -> None:
        if delivery.delivery_id not in self.records:
            self.records.put(delivery.delivery_id, delivery)
            insort(self.queue, (delivery.due_at, delivery.delivery_id))

    def mark(self, delivery_id: str, status: DeliveryStatus, receipt: str | None, error: str | None) -> None:
        record = self.records.get(delivery_id)
        if record is None:
            return
        self._forget(delivery_id, record)
        self.records.put(delivery_id, record.replace(status=status, receipt=receipt, error=error))
        if status == "pending":
            insort(self.queue, (record.due_at, delivery_id))


class MemoryConversations:
    """Conversations that callers made, and their items."""

    def __init__(self, limit: int) -> None:
        self.records: Shelf[str, Conversation] = Shelf(limit, self._forget)
        self.contents: dict[str, list[ConversationItem]] = {}
        self.count = 0

    def _forget(self, conversation_id: str, record: Conversation) -> None:
        self.contents.pop(conversation_id, None)

    async def get(self, owner: str, conversation_id: str) -> Conversation | None:
        record = self.records.get(conversation_id)
        return record if record is not None and record.owner == owner else None

    async def items(
        self, owner: str, conversation_id: str, *, after: int = 0, limit: int = 100, descending: bool = False
    ) -> Sequence[ConversationItem]:
        if await self.get(owner, conversation_id) is None:
            return ()
        found = self.contents.get(conversation_id, [])
        if descending:
            return [one for one in reversed(found) if not after or one.number < after][:limit]
        return [one for one in found if one.number > after][:limit]

    async def item(self, owner: str, conversation_id: str, item_id: str) -> ConversationItem | None:
        if await self.get(owner, conversation_id) is None:
            return None
        return next((one for one in self.contents.get(conversation_id, ()) if one.item_id == item_id), None)

    def save(self, conversation: Conversation) -> None:
        self.records.put(conversation.conversation_id, conversation)

    def delete(self, owner: str, conversation_id: str) -> None:
        record = self.records.get(conversation_id)
        if record is not None and record.owner == owner:
            self.records.pop(conversation_id)
            self.contents.pop(conversation_id, None)

    def add_items(self, items: Sequence[ConversationItem]) -> None:
        for item in items:
            self.count += 1
            self.contents.setdefault(item.conversation_id, []).append(item.replace(number=self.count))

    def delete_item(self, conversation_id: str, item_id: str) -> None:
        found = self.contents.get(conversation_id, [])
        found[:] = [one for one in found if one.item_id != item_id]
