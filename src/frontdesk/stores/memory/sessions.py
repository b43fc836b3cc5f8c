"""Sessions, runs, conversations and checkpoints of the in-memory store. Calls are atomic.

Nothing here awaits, so every call is atomic on one event loop.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from frontdesk.clock import Clock
from frontdesk.concurrency.offload import compute_weight
from frontdesk.errors import StaleTurnError, TooManyRequestsError
from frontdesk.interfaces.store_sessions import FREE_BYTES, Charge
from frontdesk.json_size import estimate_parts
from frontdesk.models.conversation import Conversation, ConversationItem, HistoryPage, build_page
from frontdesk.models.operations import OPEN
from frontdesk.models.run import MAX_COUNTED_RUNS, NO_FILTER, RunEvent, RunFilter, RunPosition, RunRecord, RunSlice
from frontdesk.models.session import Lease, SessionName, SessionRecord
from frontdesk.models.watcher import TOO_MANY_WATCHERS, WatcherRecord
from frontdesk.stores.memory.bounded_dict import FairBoundedDict
from frontdesk.stores.memory.pages import limit_page

_body = attrgetter("body")
_VALUES_OF_CONTENT = 3
_BYTES_OF_VALUE = 512
_MAX_WEIGHT = 2**40
_MAX_PAST_SESSIONS = 100
"""The number of earlier sessions that are kept for a name."""


class _Session:
    __slots__ = ("fence", "first", "messages", "owner", "record", "title", "weighed", "weight")

    def __init__(self, owner: str | None = None) -> None:
        self.owner = owner
        """The owner of a session that is named by its own id."""
        self.fence = 0
        self.record: SessionRecord | None = None
        self.messages: list[Any] = []
        self.first = 0
        """The number of messages that its first turn has added."""
        self.title: str | None = None
        self.weight = self.weighed = 0
        """The estimate of the memory of its messages, and how many of them are in it."""

    def weigh(self) -> int:
        if self.weighed < len(self.messages):
            self.weight += sum(map(_compute_weight, self.messages[self.weighed :]))
            self.weighed = len(self.messages)
        return self.weight


def _compute_weight(message: Any) -> int:
    size = values = 0
    for content in message.contents:
        values += _VALUES_OF_CONTENT
        text = content.text or content.uri
        if text is not None:
            size += len(text)
        else:
            size += compute_weight((content.arguments, content.result), _MAX_WEIGHT, each=_BYTES_OF_VALUE, inside=True)
    return estimate_parts(size, values)


def owner_in_key(key: tuple[str, str], _: Any) -> str:
    return key[0]


def _owner_of_session(session_id: str, kept: _Session) -> str | None:
    if kept.record is not None:
        return kept.record.owner
    # While the first turn runs, nobody has it; what failed turns have left behind counts as one owner's.
    return kept.owner or (session_id if kept.fence else None)


def _owner_of_name(name: SessionName, _: Any) -> Hashable:
    # A name that belongs to nobody is that of a chat.
    return name.owner or (name.channel, name.conversation_id)


class MemorySessions:
    def __init__(self, limit: int) -> None:
        self.kept: FairBoundedDict[str, _Session] = FairBoundedDict(limit, _owner_of_session, self._forget)
        self.names: FairBoundedDict[SessionName, str] = FairBoundedDict(4 * limit, _owner_of_name)
        self._past: FairBoundedDict[SessionName, tuple[str, ...]] = FairBoundedDict(limit, _owner_of_name)
        self._count = 0

    def _forget(self, session_id: str, kept: _Session) -> None:
        if kept.record is not None and kept.owner is None:
            self.names.pop(SessionName(owner=kept.record.owner, kind="named", value=kept.record.key))

    async def find(self, name: SessionName) -> SessionRecord | None:
        session_id = self._find_named(name)
        kept = None if session_id is None else self.kept.get(session_id)
        return None if kept is None else kept.record

    def _find_named(self, name: SessionName) -> str | None:
        session_id = self.names.get(name)
        if session_id is not None:
            self.names.touch(name)
            return session_id
        kept = self.kept.get(name.value) if name.kind == "named" else None
        return name.value if kept is not None and kept.owner == name.owner else None

    async def get(self, owner: str, session_id: str) -> SessionRecord | None:
        kept = self.kept.get(session_id)
        record = None if kept is None else kept.record
        return record if record is not None and record.owner == owner else None

    def point(self, name: SessionName, session_id: str) -> None:
        before = self.names.get(name)
        if before is not None and before != session_id:
            earlier = (past_id for past_id in self._past.get(name) or () if past_id != before)
            self._past.put(name, (*earlier, before)[-_MAX_PAST_SESSIONS:])
        self.names.put(name, session_id)

    async def past(self, name: SessionName, *, limit: int = 20) -> Sequence[SessionRecord]:
        records = [await self.get(name.owner, session_id) for session_id in self._past.get(name) or ()]
        existing = [record for record in records if record is not None]
        return sorted(existing, key=lambda record: (record.updated_at, record.session_id), reverse=True)[:limit]

    async def was(self, name: SessionName, session_id: str) -> bool:
        is_past = session_id in (self._past.get(name) or ())
        return is_past and await self.get(name.owner, session_id) is not None

    async def titles(self, owner: str, session_ids: Sequence[str]) -> Mapping[str, str]:
        kept = {session_id: self._find_owned(owner, session_id) for session_id in session_ids}
        return {name: session.title for name, session in kept.items() if session and session.title is not None}

    async def first_messages(self, owner: str, session_ids: Sequence[str]) -> Mapping[str, Sequence[Any]]:
        kept = {session_id: self._find_owned(owner, session_id) for session_id in session_ids}
        return {name: session.messages[: session.first] for name, session in kept.items() if session and session.first}

    def retitle(self, owner: str, session_id: str, title: str | None) -> None:
        kept = self._find_owned(owner, session_id)
        if kept is not None:
            kept.title = title

    def get_owner(self, session_id: str) -> str:
        """Return the owner of a session, or the session id if there is none."""
        kept = self.kept.get(session_id)
        return (None if kept is None else _owner_of_session(session_id, kept)) or session_id

    def _find_owned(self, owner: str, session_id: str) -> _Session | None:
        kept = self.kept.get(session_id)
        return kept if kept is not None and kept.record is not None and kept.record.owner == owner else None

    async def reserve(self, name: SessionName, session_id: str) -> str:
        reserved = self._find_named(name)
        if reserved is None:
            self.names.put(name, session_id)
            return session_id
        return reserved

    def begin(self, owner: str, session_id: str) -> Lease:
        kept = _Session(owner)
        kept.fence = self._count = self._count + 1
        self.kept.put(session_id, kept)
        return Lease(session_id=session_id, fence=kept.fence)

    async def claim(self, session_id: str, *, force: bool = False) -> Lease:
        kept = self.kept.get(session_id)
        is_new, kept = kept is None, kept or _Session()
        # One counter for all sessions, so that a session which was dropped and comes back never gets a fence twice.
        kept.fence = self._count = self._count + 1
        if is_new:
            self.kept.put(session_id, kept)
        return Lease(session_id=session_id, fence=kept.fence)

    async def renew(self, leases: Sequence[Lease]) -> Sequence[Lease]:
        return ()

    def release(self, lease: Lease) -> None:
        kept = self.kept.get(lease.session_id)
        if kept is not None and kept.fence == lease.fence:
            kept.fence = 0
            if kept.record is None:
                self.kept.own(lease.session_id)

    async def history(self, owner: str, session_id: str, *, charge: Charge | None = None) -> Sequence[Any]:
        weight = 0
        lineage: list[tuple[list[Any], int | None]] = []
        shared: int | None = None
        while (kept := self.kept.get(session_id)) is not None and kept.record and kept.record.owner == owner:
            lineage.append((kept.messages, shared))
            if charge is not None:
                weight += kept.weigh()
            if kept.record.parent is None:
                break
            session_id, shared = kept.record.parent.session_id, kept.record.parent.messages
        if charge is not None and weight > FREE_BYTES:
            await charge(weight)
        history: list[Any] = []
        for messages, shared in reversed(lineage):
            history += messages
            if shared is not None:
                del history[shared:]
        return history

    async def history_page(
        self, owner: str, session_id: str, *, before: int | None = None, limit: int = 50
    ) -> HistoryPage:
        return build_page(await self.history(owner, session_id), before, limit)

    def check(self, lease: Lease, session_id: str) -> None:
        kept = self.kept.get(lease.session_id)
        if lease.session_id != session_id or (kept is not None and kept.fence != lease.fence):
            raise StaleTurnError

    def save(self, record: SessionRecord, lease: Lease) -> None:
        kept = self.kept.get(record.session_id)
        if kept is None:
            # It was dropped while its turn ran, because the store was full; the turn must not be lost.
            kept = _Session()
            kept.fence = lease.fence
            self.kept.put(record.session_id, kept)
        elif kept.record is not None:
            self.kept.touch(record.session_id)
        is_first, kept.record = kept.record is None, record
        if is_first and kept.owner != record.owner:
            self.kept.own(record.session_id)

    def append(self, session_id: str, messages: Sequence[Any]) -> None:
        kept = self.kept.get(session_id)
        if kept is None:
            return
        if kept.messages:
            kept.messages.extend(messages)
        else:
            # Most sessions are short, and a list that is made whole has no room to spare.
            kept.messages = list(messages)
            kept.first = len(kept.messages)

    def drop_idle(self, before: float) -> set[str]:
        """Drop sessions without turns since a time, branches or a running turn. Return their ids."""
        sessions = [(session_id, kept, kept.record) for session_id, kept in self.kept.items()]
        built_on = {record.parent.session_id for _, _, record in sessions if record is not None and record.parent}
        gone = {
            session_id
            for session_id, kept, record in sessions
            if record is not None and record.updated_at < before and not kept.fence and session_id not in built_on
        }
        for session_id in gone:
            self.kept.pop(session_id)
        for name, session_id in self.names.items() if gone else ():
            if session_id in gone:
                self.names.pop(name)
        return gone


def _position(run: RunRecord) -> RunPosition:
    return OPEN if run.finished_at is None else run.finished_at, run.run_id


class _RunList:
    """The sorted positions of an owner's runs, the last of the list first."""

    def __init__(self) -> None:
        self.positions: list[RunPosition] = []
        self._known: dict[str, RunPosition] = {}

    def put(self, runs: Sequence[RunRecord]) -> None:
        for run in runs:
            self.drop(run.run_id)
            self._known[run.run_id] = _position(run)
        added = sorted(self._known[run.run_id] for run in runs)
        # Most runs have ended after those of the list.
        if added and self.positions and added[0] < self.positions[-1]:
            for position in added:
                insort(self.positions, position)
        else:
            self.positions += added

    def drop(self, run_id: str) -> None:
        position = self._known.pop(run_id, None)
        if position is not None:
            del self.positions[bisect_left(self.positions, position)]


class MemoryRuns:
    def __init__(self, limit: int) -> None:
        self.records: FairBoundedDict[tuple[str, str], RunRecord] = FairBoundedDict(limit, owner_in_key, self._forget)
        self.log: dict[tuple[str, str], list[RunEvent]] = {}
        self._changed: dict[str, dict[str, None]] = {}
        """The runs of each owner that are not in its list yet."""
        self._lists: dict[str, _RunList] = {}
        """The lists of owners that were asked for. Other owners cost no sorting."""
        self._chains: dict[tuple[str, str], dict[str, None]] = {}

    def _forget(self, key: tuple[str, str], record: RunRecord) -> None:
        owner, run_id = key
        self.log.pop(key, None)
        changed, listed = self._changed.get(owner, {}), self._lists.get(owner)
        changed.pop(run_id, None)
        if not changed:
            self._changed.pop(owner, None)
        if listed is not None:
            listed.drop(run_id)
            if not listed.positions:
                del self._lists[owner]
        chain = self._chains.get((owner, record.chain_id), {})
        chain.pop(run_id, None)
        if not chain:
            self._chains.pop((owner, record.chain_id), None)

    async def get(self, owner: str, run_id: str) -> RunRecord | None:
        return self.records.get((owner, run_id))

    async def newest_of_chain(self, owner: str, root_run_id: str) -> RunRecord | None:
        return max(self._chain(owner, root_run_id), key=_position, default=None)

    async def next_of_chain(self, owner: str, root_run_id: str, after: RunRecord) -> RunRecord | None:
        later = (run for run in self._chain(owner, root_run_id) if _position(run) > _position(after))
        return min(later, key=_position, default=None)

    def _chain(self, owner: str, root_run_id: str) -> list[RunRecord]:
        runs = (self.records.get((owner, run_id)) for run_id in self._chains.get((owner, root_run_id), ()))
        return [run for run in runs if run is not None]

    async def page(
        self, owner: str, where: RunFilter, *, after: RunPosition | None = None, limit: int = 50
    ) -> RunSlice:
        positions = self._list_positions(owner)
        # The part of the list that the filter reads.
        if where.status in ("queued", "running"):
            positions = positions[bisect_left(positions, (OPEN, "")) :]
        elif where.since is not None:
            positions = positions[bisect_left(positions, (where.since, "")) :]
        end = len(positions) if after is None else bisect_left(positions, after)
        start = max(0, end - max(limit, MAX_COUNTED_RUNS) - 1)
        found: list[RunRecord] = []
        for position in reversed(range(start, end)):
            run = self.records.get((owner, positions[position][1]))
            if run is not None and where.matches(run):
                found.append(run)
                if len(found) > limit:
                    break
        kept = found[:limit]
        last = _position(kept[-1]) if len(found) > limit else positions[start] if start else None
        total, is_exact = self._count(owner, positions, where), len(positions) <= MAX_COUNTED_RUNS
        return RunSlice(runs=tuple(kept), after=last, total=total, is_total_exact=is_exact)

    def _count(self, owner: str, positions: Sequence[RunPosition], where: RunFilter) -> int:
        counted = positions[-MAX_COUNTED_RUNS - 1 :]
        if where == NO_FILTER:
            return len(counted)
        runs = (self.records.get((owner, run_id)) for _, run_id in counted)
        return sum(run is not None and where.matches(run) for run in runs)

    def _list_positions(self, owner: str) -> list[RunPosition]:
        changed, listed = self._changed.pop(owner, None), self._lists.get(owner)
        if changed is None:
            return [] if listed is None else listed.positions
        if listed is None:
            listed = self._lists[owner] = _RunList()
        listed.put([run for run in (self.records.get((owner, run_id)) for run_id in changed) if run is not None])
        return listed.positions

    async def events(self, owner: str, run_id: str, *, after: int = 0, limit: int = 1000) -> Sequence[RunEvent]:
        # Events are numbered from 1 without gaps, so that the number is the position.
        after = max(after, 0)
        return self.log.get((owner, run_id), [])[after : after + limit]

    def save(self, record: RunRecord) -> None:
        owner, run_id = record.owner, record.run_id
        changed = self._changed.get(owner)
        if changed is None:
            self._changed[owner] = {run_id: None}
        else:
            changed[run_id] = None
        if record.root_run_id is not None:
            self._chains.setdefault((owner, record.root_run_id), {})[run_id] = None
        # Last, because a full store may drop it at once.
        self.records.put((owner, run_id), record)

    def delete(self, owner: str, run_id: str) -> None:
        record = self.records.pop((owner, run_id))
        if record is not None:
            self._forget((owner, run_id), record)

    def add_events(self, events: Sequence[RunEvent]) -> None:
        for event in events:
            # A run that was deleted while it ran keeps nothing.
            if (event.owner, event.run_id) in self.records:
                self.log.setdefault((event.owner, event.run_id), []).append(event)


_number = attrgetter("number")


class MemoryConversations:
    def __init__(self, limit: int, clock: Clock) -> None:
        self.records: FairBoundedDict[str, Conversation] = FairBoundedDict(
            limit, lambda _, conversation: conversation.owner, self._forget
        )
        self.contents: dict[str, list[ConversationItem]] = {}
        self.used_at: dict[str, float] = {}
        self.count = 0
        self._clock = clock

    def _forget(self, conversation_id: str, record: Conversation) -> None:
        self.contents.pop(conversation_id, None)
        self.used_at.pop(conversation_id, None)

    def drop_idle(self, before: float) -> int:
        """Drop conversations that were unchanged since a time. Return their number."""
        gone = [conversation_id for conversation_id, used_at in self.used_at.items() if used_at < before]
        for conversation_id in gone:
            self.records.pop(conversation_id)
            self.contents.pop(conversation_id, None)
            del self.used_at[conversation_id]
        return len(gone)

    async def get(self, owner: str, conversation_id: str) -> Conversation | None:
        record = self.records.get(conversation_id)
        return record if record is not None and record.owner == owner else None

    async def items(
        self,
        owner: str,
        conversation_id: str,
        *,
        after: int = 0,
        limit: int = 100,
        descending: bool = False,
        charge: Charge | None = None,
        max_bytes: int | None = None,
    ) -> Sequence[ConversationItem]:
        if await self.get(owner, conversation_id) is None:
            return ()
        items = self.contents.get(conversation_id, [])
        # Numbers only grow, so a page is found by bisection.
        if descending:
            end = bisect_left(items, after, key=_number) if after else len(items)
            return limit_page(items[max(end - limit, 0) : end][::-1], max_bytes, _body)
        start = bisect_right(items, after, key=_number)
        if charge is not None:
            bodies = [item.body for item in items[start:]]
            size = compute_weight(bodies, _MAX_WEIGHT, each=_BYTES_OF_VALUE)
            if size > FREE_BYTES:
                await charge(size)
        return limit_page(items[start : start + limit], max_bytes, _body)

    async def item(self, owner: str, conversation_id: str, item_id: str) -> ConversationItem | None:
        if await self.get(owner, conversation_id) is None:
            return None
        return next((item for item in self.contents.get(conversation_id, ()) if item.item_id == item_id), None)

    def save(self, conversation: Conversation) -> None:
        # First, because a full store may drop it at once.
        self.used_at[conversation.conversation_id] = self._clock.now()
        self.records.put(conversation.conversation_id, conversation)

    def delete(self, owner: str, conversation_id: str) -> None:
        record = self.records.get(conversation_id)
        if record is not None and record.owner == owner:
            self.records.pop(conversation_id)
            self._forget(conversation_id, record)

    def add_items(self, owner: str, items: Sequence[ConversationItem]) -> None:
        for item in items:
            if not self._owned(owner, item.conversation_id):
                continue
            self.count += 1
            self.records.touch(item.conversation_id)
            self.used_at[item.conversation_id] = self._clock.now()
            self.contents.setdefault(item.conversation_id, []).append(item.replace(number=self.count))

    def _owned(self, owner: str, conversation_id: str) -> bool:
        record = self.records.get(conversation_id)
        return record is not None and record.owner == owner

    def delete_item(self, owner: str, conversation_id: str, item_id: str) -> None:
        if not self._owned(owner, conversation_id):
            return
        self.used_at[conversation_id] = self._clock.now()
        items = self.contents.get(conversation_id, [])
        items[:] = [item for item in items if item.item_id != item_id]


class MemoryCheckpoints:
    def __init__(self, limit: int, owner_of_session: Callable[[str], Hashable]) -> None:
        self.kept: FairBoundedDict[tuple[str, str], bytes] = FairBoundedDict(
            limit, lambda key, _: owner_of_session(key[0])
        )

    async def get(self, session_id: str, checkpoint_id: str) -> bytes | None:
        return self.kept.get((session_id, checkpoint_id))

    def delete(self, session_id: str, checkpoint_id: str) -> None:
        self.kept.pop((session_id, checkpoint_id))

    def drop_sessions(self, gone: Collection[str]) -> None:
        for key, _ in self.kept.items():
            if key[0] in gone:
                self.kept.pop(key)


class MemoryWatchers:
    def __init__(self, limit: int) -> None:
        self.records: FairBoundedDict[tuple[str, str], WatcherRecord] = FairBoundedDict(limit, lambda key, _: key[0])

    async def get(self, owner: str, watcher_id: str) -> WatcherRecord | None:
        return self.records.get((owner, watcher_id))

    async def of_chain(self, owner: str, chain_id: str, *, now: float) -> Sequence[WatcherRecord]:
        found = [one for one in self._of_owner(owner, now) if one.chain_id == chain_id]
        return sorted(found, key=lambda one: (one.created_at, one.watcher_id))

    async def may_exist(self) -> bool:
        return len(self.records) > 0

    def check_capacity(self, watcher: WatcherRecord, most_of_owner: int, most_of_chain: int) -> None:
        owned = list(self._of_owner(watcher.owner, watcher.created_at))
        same_chain = sum(one.chain_id == watcher.chain_id for one in owned)
        if len(owned) >= most_of_owner or same_chain >= most_of_chain:
            raise TooManyRequestsError(TOO_MANY_WATCHERS)

    def _of_owner(self, owner: str, now: float) -> Iterator[WatcherRecord]:
        return (one for (key, _), one in self.records.items() if key == owner and one.expires_at > now)

    def add(self, watcher: WatcherRecord) -> None:
        self.records.put((watcher.owner, watcher.watcher_id), watcher)

    def remove(self, owner: str, watcher_id: str) -> None:
        self.records.pop((owner, watcher_id))

    def drop_chain(self, owner: str, chain_id: str) -> None:
        for key, one in list(self.records.items()):
            if key[0] == owner and one.chain_id == chain_id:
                self.records.pop(key)

    def drop_expired(self, now: float) -> None:
        for key, one in list(self.records.items()):
            if one.expires_at <= now:
                self.records.pop(key)
