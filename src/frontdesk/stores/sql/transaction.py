"""The transaction, which collects rows and statements."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import TracebackType
from typing import Any, Self, cast

from frontdesk.clock import Clock
from frontdesk.data.approval import ApprovalPlace, ApprovalStatus, ApprovalVote, AuditLine, PendingApproval
from frontdesk.data.background import BackgroundRun
from frontdesk.data.codec import encode, form_of, seal
from frontdesk.data.conversation import Conversation, ConversationItem
from frontdesk.data.delivery import Delivery, InboxItem
from frontdesk.data.identity import ChannelIdentity, IdentityRecord, LastSeen, PushGroup
from frontdesk.data.link import Grant, LinkRecord
from frontdesk.data.live import LiveAnswer
from frontdesk.data.run import RunEvent, RunRecord
from frontdesk.data.session import Lease, SessionName, SessionRecord
from frontdesk.errors import IdentityChangedError, RunExistsError, StaleTurnError, StoreError
from frontdesk.stores.sql import approvals, background, inbox, outbox, people, tables
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.file_references import LEAST
from frontdesk.stores.sql.files import FileUse, SqlFiles, has_large
from frontdesk.stores.sql.live import saved
from frontdesk.stores.sql.tables import as_bytes, key, name_key
from frontdesk.stores.sql.writes import Do, Fence, Op, Put


class SqlTransaction:
    """Collects operations, and writes them together when the block is left."""

    __slots__ = (
        *("_changed", "_clock", "_engine", "_files", "_forget", "_forms", "_grants_for"),
        *("_lease_sql", "_ops", "_owners", "_uses"),
    )

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        lease_sql: background.LeaseSql,
        forget: Callable[[ChannelIdentity], None],
        files: SqlFiles,
        *,
        grants_for: float | None,
    ) -> None:
        """Begin with no operations; `forget` is called with changed identities, `grants_for` limits new grants."""
        self._engine = engine
        self._clock = clock
        self._lease_sql = lease_sql
        self._forget = forget
        self._grants_for = grants_for
        self._changed: list[ChannelIdentity] = []
        self._ops: list[Op] = []
        self._forms: dict[int, tuple[Any, Any]] = {}
        self._files = files
        self._uses: list[FileUse] = []
        self._owners: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None or not self._ops:
            return
        try:
            operations = await self._files.detached(self._ops, self._uses) if self._uses else self._ops
            await self._engine.write(operations)
        finally:
            for identity in self._changed:
                self._forget(identity)

    def save_session(self, record: SessionRecord, lease: Lease, *, keep: bool = False) -> None:
        if lease.session_id != record.session_id:
            raise StaleTurnError
        parent = record.parent
        row = (
            key(record.session_id),
            key(record.owner),
            # Whether its id is also its name.
            int(record.key == record.session_id),
            None if parent is None else key(parent.session_id),
            None if parent is None else parent.messages,
            record.updated_at,
            encode(record),
        )
        self._owners[record.session_id] = record.owner
        self._ops.append(Fence(lease, keep))
        self._ops.append(Put(tables.SESSIONS, row))

    def name_session(self, name: SessionName, session_id: str) -> None:
        place = name_key(name)
        self._ops.append(Do(_PAST, (place, session_id)))
        self._ops.append(Put(tables.NAMES, (place, session_id)))

    def title_session(self, owner: str, session_id: str, title: str | None) -> None:
        if title is None:
            self._ops.append(Do(_UNTITLED, (key(session_id), key(owner))))
        else:
            titled = f"{_TITLED} {self._lease_sql.share} {_RETITLED}"
            self._ops.append(Do(titled, (as_bytes(title), key(session_id), key(owner))))

    def append_history(self, session_id: str, messages: Sequence[Any]) -> None:
        if messages:
            forms = [self._form(message) for message in messages]
            data = seal(forms)
            self._ops.append(Put(tables.HISTORY, (key(session_id), data)))
            if len(data) > LEAST:
                self._note_use(1, "session", session_id, self._owners.get(session_id, f"session {session_id}"))

    def _note_use(self, count: int, kind: str, place: str, owner: str, of: str = "") -> None:
        """Note that the last operations may write large data, to be kept as files of an owner."""
        last = len(self._ops)
        for number in range(last - count, last):
            if has_large(self._ops[number]):
                self._uses.append(FileUse(number, kind, key(place), key(of) if of else "", key(owner)))

    def remember_identity(self, record: IdentityRecord, *, instead_of: IdentityRecord | None = None) -> None:
        self._changed.append(record.identity)
        place = (key(record.identity.channel), key(record.identity.native_id))
        row = (key(record.isolation_key), record.version, encode(record), self._clock.now())
        if instead_of is None:
            self._ops.append(Put(tables.IDENTITIES, (*place, *row)))
        else:
            expected = (*place, key(instead_of.isolation_key), instead_of.version)
            self._ops.append(Do(_CHANGED, (*row, *expected), IdentityChangedError()))

    def keep_reference(self, identity: ChannelIdentity, reference: Mapping[str, Any]) -> None:
        self._keep(identity, "reference", encode(dict(reference)) if reference else None)

    def keep_group(self, identity: ChannelIdentity, group: PushGroup | None) -> None:
        self._keep(identity, "push_group", None if group is None else encode(group))

    def _keep(self, identity: ChannelIdentity, column: str, data: bytes | None) -> None:
        self._changed.append(identity)
        place = (key(identity.channel), key(identity.native_id))
        self._ops.append(Do(f"UPDATE identities SET {column} = ? WHERE channel = ? AND native_id = ?", (data, *place)))

    def see(self, seen: LastSeen) -> None:
        self._ops.append(Put(tables.LAST_SEEN, (key(seen.isolation_key), seen.at, encode(seen))))

    def add_link(self, link: LinkRecord) -> None:
        identity = link.identity
        self._changed.append(identity)
        subject = None if link.subject is None else key(link.subject)
        place = (key(identity.channel), key(identity.native_id), key(link.isolation_key))
        self._ops.append(Put(tables.LINKS, (*place, subject, link.linked_at, encode(link))))
        self._ops.extend(people.claimed(link))

    def remove_link(self, isolation_key: str, identity: ChannelIdentity) -> None:
        self._changed.append(identity)
        place = (key(isolation_key), key(identity.channel), key(identity.native_id))
        self._ops.append(Do("DELETE FROM links WHERE isolation_key = ? AND channel = ? AND native_id = ?", place))
        self._ops.append(people.unclaimed(identity))

    def add_grant(self, grant: Grant, *, free_at: float | None = None) -> None:
        longest = inf if self._grants_for is None else self._clock.now() + self._grants_for
        row = (key(grant.grant_id), min(grant.expires_at, longest), encode(grant))
        if free_at is None:
            self._ops.append(Put(tables.GRANTS, row))
        else:
            self._ops.append(Do(_IF_FREE, (*row, free_at), StoreError("there is such a grant already")))

    def use_grant(self, grant_id: str) -> None:
        gone = StoreError("there is no such grant")
        self._ops.append(Do("DELETE FROM grants WHERE grant_id = ?", (key(grant_id),), gone))

    def save_run(self, record: RunRecord, *, new: bool = False) -> None:
        kind = "background" if record.background else "request"
        outcome = None if record.finished_at is None else record.status
        row = (key(record.run_id), key(record.owner), kind, record.finished_at, outcome, self._encoded(record))
        self._ops.append(Do(_NEW_RUN, row, RunExistsError()) if new else Put(tables.RUNS, row))
        if len(row[5]) > LEAST:
            self._note_use(1, "run", record.run_id, record.owner, record.owner)

    def _encoded(self, record: RunRecord) -> bytes:
        messages: Any = record.input
        if type(messages) is not list:
            return encode(record)
        forms = [self._form(message) for message in cast("list[Any]", messages)]
        form = form_of(record.replace(input=None))
        # A record with fields of a newer version is a dict.
        return seal({**form, "input": forms} if isinstance(form, dict) else form.replace(input=forms))

    def _form(self, value: Any) -> Any:
        """Return the form of a value; the input of a run is in the history too, and need not be encoded twice."""
        cached = self._forms.get(id(value))
        if cached is None:
            # The value is kept with it, so that its id is not reused.
            cached = self._forms[id(value)] = (value, form_of(value))
        return cached[1]

    def delete_run(self, owner: str, run_id: str) -> None:
        place = (key(run_id), key(owner))
        self._ops.append(Do("DELETE FROM runs WHERE run_id = ? AND owner = ?", place))
        self._ops.append(Do("DELETE FROM events WHERE run_id = ? AND owner = ?", place))
        self._ops.append(Do("DELETE FROM background WHERE run_id = ? AND owner = ?", place))

    def add_events(self, events: Sequence[RunEvent], job: BackgroundRun | None = None) -> None:
        if events:
            self._ops += background.logged(events, job, self._lease_sql)

    def queue_run(self, record: RunRecord, job: BackgroundRun, *, most_waiting: int, most_of_owner: int) -> None:
        most, data, before = (most_waiting, most_of_owner), self._encoded(record), len(self._ops)
        self._ops += background.queued(record, data, job, most, self._lease_sql)
        if len(data) > LEAST:
            self._note_use(len(self._ops) - before, "run", record.run_id, record.owner, record.owner)

    def save_job(self, job: BackgroundRun) -> None:
        self._ops += background.saved(job, self._lease_sql)

    def cancel_job(self, owner: str, run_id: str, *, fence: int | None = None) -> None:
        self._ops += background.cancelled(owner, run_id, fence, self._lease_sql)

    def end_job(self, job: BackgroundRun) -> None:
        self._ops += background.ended(job, self._lease_sql)

    def add_approval(self, approval: PendingApproval) -> None:
        self._ops.append(approvals.added(approval))
        self._ops.extend(approvals.awaited(approval))

    def decide_approval(
        self,
        owner: str,
        approval_id: str,
        status: ApprovalStatus,
        *,
        at: float,
        reason: str | None = None,
        attempt: str | None = None,
        first: bool = False,
        resumed_by: str | None = None,
    ) -> None:
        self._ops.append(approvals.decided(owner, approval_id, status, at, reason, attempt, first, resumed_by))
        self._ops.append(approvals.closed(owner, approval_id))

    def count_vote(self, owner: str, approval_id: str, *, seen: int) -> None:
        self._ops.append(approvals.counted(owner, approval_id, seen))

    def escalate_approval(self, owner: str, approval_id: str) -> None:
        self._ops.append(approvals.escalated(owner, approval_id))

    def begin_approval(self, owner: str, approval_id: str, attempt: str) -> None:
        self._ops.append(approvals.begun(owner, approval_id, attempt))

    def release_approval(self, owner: str, approval_id: str, attempt: str) -> None:
        self._ops.append(approvals.released(owner, approval_id, attempt))

    def cancel_approvals(self, owner: str, *, at: float, reason: str | None = None) -> None:
        self._ops.extend(approvals.cancelled(owner, at, reason))

    def add_vote(self, vote: ApprovalVote) -> None:
        self._ops.append(approvals.voted(vote))

    def add_place(self, place: ApprovalPlace) -> None:
        self._ops.append(approvals.placed(place))

    def add_audit(self, line: AuditLine) -> None:
        self._ops.append(approvals.audited(line))

    def accept(self, item: InboxItem) -> None:
        operation = inbox.accepted(item)
        self._ops.append(operation)
        if len(operation.values[-1]) > LEAST:
            self._note_use(1, "event", item.event_id, f"channel {item.channel}", item.channel)

    def finish(self, item: InboxItem, *, error: str | None = None) -> None:
        self._ops.extend(inbox.finished(item, error, self._clock.now(), self._lease_sql))

    def postpone_earlier(self, item: InboxItem) -> None:
        self._ops.append(inbox.postponed_earlier(item))

    def interrupt_earlier(self, item: InboxItem, *, only: Sequence[str] | None = None) -> None:
        self._ops.extend(inbox.interrupted_earlier(item, only, self._lease_sql))

    def cancel_earlier(self, item: InboxItem, *, anyone: bool = False, session_id: str = "") -> None:
        now, lease_sql = self._clock.now(), self._lease_sql
        self._ops.extend(inbox.cancelled_earlier(item, anyone, session_id, now, lease_sql))

    def cancel_event(self, item: InboxItem) -> None:
        self._ops.extend(inbox.cancelled_alone(item, self._clock.now(), self._lease_sql))

    def give_back(self, item: InboxItem, *, tried: bool = False) -> None:
        self._ops.extend(inbox.given_back(item, tried))

    def add_delivery(self, delivery: Delivery, *, once: bool = False) -> None:
        self._ops.append(outbox.added(delivery, once=once))

    def change_delivery(self, delivery: Delivery, *, hold: float = 0.0) -> None:
        self._ops.append(outbox.changed(delivery, hold, self._lease_sql))
        if (shown := delivery.shown_question) is not None:
            self.add_place(shown)

    def end_rest(self, delivery: Delivery, *, error: str, at: float) -> None:
        self._ops.append(outbox.rest_ended(delivery, error, at))

    def save_live(self, live: LiveAnswer) -> None:
        self._ops.append(saved(live))

    def save_conversation(self, conversation: Conversation) -> None:
        row = (key(conversation.conversation_id), key(conversation.owner), self._clock.now(), encode(conversation))
        self._ops.append(Put(tables.CONVERSATIONS, row))

    def delete_conversation(self, owner: str, conversation_id: str) -> None:
        place = (key(conversation_id), key(owner))
        self._ops.append(Do(f"DELETE FROM items WHERE conversation_id IN ({_OWNED})", place))
        self._ops.append(Do("DELETE FROM conversations WHERE conversation_id = ? AND owner = ?", place))

    def add_items(self, owner: str, items: Sequence[ConversationItem]) -> None:
        for item in items:
            self._ops.append(
                Do(
                    "INSERT INTO items (conversation_id, item_id, data) "
                    "SELECT conversation_id, ?, ? FROM conversations AS kept WHERE conversation_id = ? AND owner = ? "
                    f"{self._lease_sql.share}",
                    (key(item.item_id), encode(item), key(item.conversation_id), key(owner)),
                )
            )
            self._note_use(1, "conversation", item.conversation_id, owner)
        for conversation_id in sorted({item.conversation_id for item in items}):
            self._ops.append(self._touched(owner, conversation_id))

    def _touched(self, owner: str, conversation_id: str) -> Do:
        return Do(_TOUCHED, (self._clock.now(), key(conversation_id), key(owner)))

    def delete_item(self, owner: str, conversation_id: str, item_id: str) -> None:
        values = (key(conversation_id), key(owner), key(item_id))
        self._ops.append(Do(f"DELETE FROM items WHERE conversation_id IN ({_OWNED}) AND item_id = ?", values))
        self._ops.append(self._touched(owner, conversation_id))

    def save_checkpoint(self, session_id: str, checkpoint_id: str, data: bytes) -> None:
        self._ops.append(Put(tables.CHECKPOINTS, (key(session_id), key(checkpoint_id), data)))

    def delete_checkpoint(self, session_id: str, checkpoint_id: str) -> None:
        place = (key(session_id), key(checkpoint_id))
        self._ops.append(Do("DELETE FROM checkpoints WHERE session_id = ? AND checkpoint_id = ?", place))


_CHANGED = (
    "UPDATE identities SET isolation_key = ?, version = ?, data = ?, seen_at = ? "
    "WHERE channel = ? AND native_id = ? AND isolation_key = ? AND version = ?"
)
_IF_FREE = (
    "INSERT INTO grants (grant_id, expires_at, data) VALUES (?, ?, ?) ON CONFLICT (grant_id) "
    "DO UPDATE SET expires_at = excluded.expires_at, data = excluded.data WHERE grants.expires_at <= ?"
)
_PAST = (
    "INSERT INTO past_sessions (name, session_id) "
    "SELECT name, session_id FROM names WHERE name = ? AND session_id <> ? "
    "ON CONFLICT (name, session_id) DO NOTHING"
)
_ITS = "SELECT session_id FROM sessions WHERE session_id = ? AND owner = ?"
_UNTITLED = f"DELETE FROM session_titles WHERE session_id IN ({_ITS})"
_TITLED = (
    "INSERT INTO session_titles (session_id, title) "
    "SELECT session_id, ? FROM sessions AS kept WHERE session_id = ? AND owner = ?"
)
_RETITLED = "ON CONFLICT (session_id) DO UPDATE SET title = excluded.title"
_TOUCHED = "UPDATE conversations SET updated_at = ? WHERE conversation_id = ? AND owner = ?"
_NEW_RUN = (
    "INSERT INTO runs (run_id, owner, kind, ended_at, outcome, data) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (run_id, owner) DO NOTHING"
)
_OWNED = "SELECT conversation_id FROM conversations WHERE conversation_id = ? AND owner = ?"
