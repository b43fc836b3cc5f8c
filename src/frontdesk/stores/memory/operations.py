"""Tasks and operators' lists of the in-memory store."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from frontdesk.errors import CodecError, StoreUnavailableError
from frontdesk.models.approval import AuditLine
from frontdesk.models.base import UNKNOWN
from frontdesk.models.operations import ASCENDING, COMMON, OPEN, LedgerKind, LedgerRow, TaskRecord, TaskStatus
from frontdesk.serialization.codec import to_json

if TYPE_CHECKING:
    from frontdesk.stores.memory.store import InMemoryStateStore


class _Entry(NamedTuple):
    place: tuple[Any, ...]
    columns: Mapping[str, Any]
    filters: Mapping[str, Collection[str]]
    """The values of each filter under which it is listed."""
    record: Any = None


class MemoryLedger:
    """Rows by owner. For answered events the store keeps only their ids."""

    def __init__(self, store: "InMemoryStateStore") -> None:
        self._store = store
        self._entries: Mapping[LedgerKind, Callable[[], Iterator[_Entry]]] = {
            "sessions": self._sessions,
            "runs": self._runs,
            "deliveries": self._deliveries,
            "approvals": self._approvals,
            "people": self._people,
            "links": self._links,
            "inbox": self._inbox,
            "audit": self._audit,
        }

    async def rows(
        self,
        kind: LedgerKind,
        *,
        by: Mapping[str, str] | None = None,
        after: Sequence[Any] | None = None,
        limit: int = 200,
    ) -> Sequence[LedgerRow]:
        wanted = {name: value for name, value in (by or {}).items() if (name, value) != ("status", COMMON.get(kind))}
        matching = [
            entry
            for entry in self._entries[kind]()
            if all(value in entry.filters[name] for name, value in wanted.items())
        ]
        matching.sort(key=lambda entry: entry.place, reverse=kind not in ASCENDING)
        if after is not None:
            last, rising = tuple(after), kind in ASCENDING
            matching = [entry for entry in matching if (entry.place > last if rising else entry.place < last)]
        return [
            LedgerRow(place=entry.place, columns=entry.columns, record=_tree(entry.record))
            for entry in matching[:limit]
        ]

    def _sessions(self) -> Iterator[_Entry]:
        for session_id, kept in self._store.sessions.kept.items():
            record = kept.record
            if record is not None:
                parent_id = None if record.parent is None else record.parent.session_id
                columns: dict[str, Any] = {"session_id": session_id, "owner": record.owner, "parent_id": parent_id}
                columns["updated_at"] = record.updated_at
                place = (record.updated_at, session_id)
                yield _Entry(place, columns, {"id": (session_id,), "person": (record.owner,)}, record)

    def _runs(self) -> Iterator[_Entry]:
        for (owner, run_id), record in self._store.runs.records.items():
            job = self._store.background.jobs.get((owner, run_id))
            columns = {
                "run_id": run_id,
                "owner": owner,
                "kind": "background" if record.background else "request",
                "ended_at": record.finished_at,
                "fence": None if job is None else job.fence,
                "holder": None if job is None else job.holder,
                "cancelled": None if job is None else int(job.cancelled),
            }
            place = (OPEN if record.finished_at is None else record.finished_at, run_id, owner)
            yield _Entry(place, columns, {"id": (run_id,), "person": (owner,), "status": (record.status,)}, record)

    def _deliveries(self) -> Iterator[_Entry]:
        for record in self._store.outbox.newest_first():
            names = ("delivery_id", "status", "attempts", "due_at", "ended_at", "error", "receipt", "fence")
            columns = {name: getattr(record, name) for name in (*names, "owner", "channel", "run_id")}
            columns["history"] = [{"at": attempt.at, "code": attempt.code} for attempt in record.history]
            filters = {"id": (record.delivery_id,), "run": (record.run_id,), "person": (record.owner,)}
            filters |= {"status": (record.status,), "channel": (record.channel,)}
            place = (record.number, record.answer_id, record.part, record.delivery_id)
            yield _Entry(place, columns, filters, record)

    def _approvals(self) -> Iterator[_Entry]:
        for name, record in self._store.approvals.records.items():
            names = ("approval_id", "owner", "session_id", "status", "decided_at", "reason", "expires_at", "attempt")
            columns = {column: getattr(record, column) for column in names} | {"begun": int(record.begun)}
            filters = {"id": (record.approval_id,), "person": (record.owner,), "status": (record.status,)}
            yield _Entry((self._store.approvals.numbers[name],), columns, filters, record)

    def _people(self) -> Iterator[_Entry]:
        for (channel, native_id), record in self._store.identities.records.items():
            columns = {"channel": channel, "native_id": native_id, "isolation_key": record.isolation_key}
            columns |= {"version": record.version, "seen_at": None}
            yield _Entry((channel, native_id), columns, _build_names(channel, native_id, record.isolation_key), record)

    def _links(self) -> Iterator[_Entry]:
        for (channel, native_id), record in self._store.identities.linked.items():
            columns: dict[str, Any] = {"channel": channel, "native_id": native_id}
            columns |= {"isolation_key": record.isolation_key, "linked_at": record.linked_at}
            yield _Entry((channel, native_id), columns, _build_names(channel, native_id, record.isolation_key), record)

    def _inbox(self) -> Iterator[_Entry]:
        inbox = self._store.inbox
        waiting = [(item, None) for queue in inbox.queues.values() for item in queue.values()]
        failed = [failure for _, failure in inbox.errors.items()]
        for item, error in (*waiting, *failed):
            names = ("number", "channel", "event_id", "conversation_id", "kind", "cancelled", "fence", "attempts")
            columns = {name: getattr(item, name) for name in names}
            columns |= {"done_at": None if error is None else item.received_at, "error": error}
            columns["holder"] = "" if error else inbox.holders.get((item.channel, item.event_id), "")
            filters: dict[str, Collection[str]] = {"id": (str(item.number),), "channel": (item.channel,)}
            # As in a database, where one index has all that wait, and another all that failed or were cancelled.
            filters["status"] = ("waiting", "working") if error is None else ("failed", "cancelled")
            yield _Entry((item.number,), columns, filters, item)

    def _audit(self) -> Iterator[_Entry]:
        for line in self._store.audit.all_lines():
            yield _Entry((line.number,), _audit_columns(line), _audit_filters(line))


def _build_names(channel: str, native_id: str, person: str) -> Mapping[str, Collection[str]]:
    return {"channel": (channel,), "id": (native_id,), "person": (person,)}


def _audit_columns(line: AuditLine) -> Mapping[str, Any]:
    return {
        "number": line.number,
        "at": line.at,
        "owner": line.owner,
        "subject": line.subject,
        "action": line.action,
        "actor": line.by,
        "reason": line.reason,
    }


def _audit_filters(line: AuditLine) -> Mapping[str, Collection[str]]:
    return {"id": (str(line.number),), "subject": (line.subject,), "person": (line.owner,), "by": (line.by,)}


def _tree(record: Any) -> Mapping[str, Any] | None:
    if record is None:
        return None
    tree: dict[str, Any] = {}
    for name in record.__struct_fields__:
        if name == UNKNOWN:
            continue
        try:
            tree[name] = to_json(getattr(record, name))
        except CodecError:
            continue
    return tree


_ENDED = ("succeeded", "failed", "cancelled")


class MemoryTasks:
    """Scheduled tasks. Of ended tasks only the last ones are kept."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.open: dict[str, TaskRecord] = {}
        self.ended: dict[str, TaskRecord] = {}
        self.again: dict[str, TaskRecord] = {}

    async def get(self, task_id: str) -> TaskRecord | None:
        return self.open.get(task_id) or self.ended.get(task_id)

    async def schedule(self, task: TaskRecord) -> None:
        current = self.open.get(task.task_id)
        if current is None:
            if len(self.open) >= self.limit:
                raise StoreUnavailableError
            self.ended.pop(task.task_id, None)
            self.open[task.task_id] = task
        elif current.holder:
            earlier = self.again.get(task.task_id, task).due_at
            self.again[task.task_id] = task.replace(due_at=min(task.due_at, earlier))
        else:
            self.open[task.task_id] = current.replace(due_at=min(current.due_at, task.due_at))

    async def due(self, names: Sequence[str], before: float, *, holder: str, limit: int) -> Sequence[TaskRecord]:
        return self._free(names, holder, limit, lambda task: task.due_at < before)

    async def stranded(self, names: Sequence[str], after: float, *, holder: str, limit: int) -> Sequence[TaskRecord]:
        return self._free(names, holder, limit, lambda task: task.due_at > after and task.attempts > 0)

    def _free(
        self, names: Sequence[str], holder: str, limit: int, when: Callable[[TaskRecord], bool]
    ) -> Sequence[TaskRecord]:
        free = (task for task in self.open.values() if task.holder != holder and task.name in names)
        return sorted(filter(when, free), key=_due_at)[:limit]

    async def claim(self, task_id: str, holder: str, *, now: float) -> TaskRecord | None:
        current = self.open.get(task_id)
        if current is None or current.holder == holder or current.due_at > now:
            return None
        current = self.again.pop(task_id, current).replace(fence=current.fence, attempts=current.attempts)
        taken = current.replace(holder=holder, fence=current.fence + 1, attempts=current.attempts + 1, status="running")
        self.open[task_id] = taken
        return taken

    async def renew(self, tasks: Sequence[TaskRecord]) -> Sequence[TaskRecord]:
        return [task for task in tasks if self._holds(task)]

    def _holds(self, task: TaskRecord) -> bool:
        current = self.open.get(task.task_id)
        return current is not None and bool(current.holder) and current.fence == task.fence

    async def settle(
        self, task: TaskRecord, status: TaskStatus, *, due_at: float, attempts: int, error: str | None = None
    ) -> TaskRecord | None:
        if not self._holds(task):
            return None
        current = self.open[task.task_id]
        again = self.again.pop(task.task_id, None)
        if again is not None:
            current, status, due_at, attempts = again.replace(fence=current.fence), "pending", again.due_at, 0
        settled = current.replace(status=status, due_at=due_at, attempts=attempts, error=error, holder="")
        self._put(settled)
        return settled

    async def cancel(self, task_id: str) -> bool:
        current = self.open.get(task_id)
        if current is None:
            return False
        self.again.pop(task_id, None)
        self._put(current.replace(status="cancelled", holder="", fence=current.fence + 1))
        return True

    def _put(self, task: TaskRecord) -> None:
        if task.status not in _ENDED:
            self.open[task.task_id] = task
            return
        self.open.pop(task.task_id, None)
        self.ended[task.task_id] = task
        if len(self.ended) > self.limit:
            self.ended.pop(next(iter(self.ended)))


def _due_at(task: TaskRecord) -> float:
    return task.due_at
