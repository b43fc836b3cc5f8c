"""`SqlStateStore`: the state store on a SQL database, and its transactions."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from frontdesk.clock import Clock
from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.errors import IdentityChangedError, RunExistsError, StaleTurnError, StoreError, StoreUnavailableError
from frontdesk.interfaces.context import ReportsWriteFailures
from frontdesk.interfaces.store import OnChange
from frontdesk.loggers import store as log
from frontdesk.models.approval import ApprovalPlace, ApprovalStatus, ApprovalVote, AuditLine, PendingApproval
from frontdesk.models.conversation import Conversation, ConversationItem
from frontdesk.models.delivery import Delivery, InboxItem
from frontdesk.models.file import FileLimits, check_limits
from frontdesk.models.identity import ChannelIdentity, IdentityRecord, LastSeen, PushGroup
from frontdesk.models.link import Grant, LinkRecord
from frontdesk.models.live_message import LiveMessageRecord
from frontdesk.models.operations import Expiry
from frontdesk.models.run import BackgroundRun, RunEvent, RunRecord
from frontdesk.models.session import Lease, SessionName, SessionRecord
from frontdesk.models.watcher import WatcherRecord
from frontdesk.serialization.codec import build_form, encode, seal
from frontdesk.stores.sql import approvals, background, identities, inbox, outbox, tables
from frontdesk.stores.sql.approvals import SqlApprovals, SqlAudit
from frontdesk.stores.sql.background import LOCAL, LeaseSql, SqlBackground
from frontdesk.stores.sql.channels import (
    SqlChannelValues,
    SqlConversationAliases,
    SqlConversations,
    SqlLeaderships,
    SqlNonces,
)
from frontdesk.stores.sql.files import MIN_FILE_LENGTH, FileUse, SqlFiles, has_large
from frontdesk.stores.sql.identities import SqlIdentities
from frontdesk.stores.sql.inbox import SqlInbox
from frontdesk.stores.sql.migrations.schema import (
    MIN_READER_AND_VERSION,
    VERSION,
    NewerStoreError,
    backfills,
    check_min_reader,
)
from frontdesk.stores.sql.migrations.steps import BATCH_ROWS, Backfill
from frontdesk.stores.sql.operations import SqlLedger, SqlTasks
from frontdesk.stores.sql.outbox import SqlLiveAnswers, SqlOutbox, save_live
from frontdesk.stores.sql.records import Records
from frontdesk.stores.sql.sessions import (
    Leases,
    SqlCheckpoints,
    SqlRuns,
    SqlSessions,
    SqlWatchers,
    build_watcher_insert,
)
from frontdesk.stores.sql.sweeper import Sweep
from frontdesk.stores.sql.tables import as_bytes, build_list_columns, key, name_key
from frontdesk.stores.sql.writes import Do, Engine, Fence, Op, Put


class SqlTransaction:
    """Collects operations, and writes them together when the block exits."""

    __slots__ = (
        *("_changed", "_clock", "_engine", "_files", "_forget", "_forms", "_grants_for"),
        *("_lease_sql", "_on_watcher", "_ops", "_owners", "_uses"),
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
        on_watcher: Callable[[], None],
    ) -> None:
        """Call `forget` with changed identities, `on_watcher` for watchers. `grants_for` limits new grants."""
        self._on_watcher = on_watcher
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
            operations = await self._files.detach(self._ops, self._uses) if self._uses else self._ops
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
            if len(data) > MIN_FILE_LENGTH:
                self._note_use(1, "session", session_id, self._owners.get(session_id, f"session {session_id}"))

    def _note_use(self, count: int, kind: str, place: str, owner: str, of: str = "") -> None:
        """Record that the last operations may write large data, to be kept as files of an owner."""
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
        self._ops.extend(identities.insert_claims(link))

    def remove_link(self, isolation_key: str, identity: ChannelIdentity) -> None:
        self._changed.append(identity)
        place = (key(isolation_key), key(identity.channel), key(identity.native_id))
        self._ops.append(Do("DELETE FROM links WHERE isolation_key = ? AND channel = ? AND native_id = ?", place))
        self._ops.append(identities.delete_claims(identity))

    def add_grant(self, grant: Grant, *, free_at: float | None = None) -> None:
        longest = inf if self._grants_for is None else self._clock.now() + self._grants_for
        row = (key(grant.grant_id), min(grant.expires_at, longest), encode(grant))
        if free_at is None:
            self._ops.append(Put(tables.GRANTS, row))
        else:
            self._ops.append(Do(_IF_FREE, (*row, free_at), StoreError("the grant already exists")))

    def use_grant(self, grant_id: str) -> None:
        gone = StoreError("grant not found")
        self._ops.append(Do("DELETE FROM grants WHERE grant_id = ?", (key(grant_id),), gone))

    def save_run(self, record: RunRecord, *, new: bool = False) -> None:
        kind = "background" if record.background else "request"
        outcome = None if record.finished_at is None else record.status
        listed = build_list_columns(record)
        row = (key(record.run_id), key(record.owner), kind, record.finished_at, outcome, *listed, self._encode(record))
        self._ops.append(Do(_NEW_RUN, row, RunExistsError()) if new else Put(tables.RUNS, row))
        if len(row[-1]) > MIN_FILE_LENGTH:
            self._note_use(1, "run", record.run_id, record.owner, record.owner)

    def _encode(self, record: RunRecord) -> bytes:
        messages: Any = record.input
        if type(messages) is not list:
            return encode(record)
        forms = [self._form(message) for message in cast("list[Any]", messages)]
        form = build_form(record.replace(input=None))
        # A record with fields of a newer version is a dict.
        return seal({**form, "input": forms} if isinstance(form, dict) else form.replace(input=forms))

    def _form(self, value: Any) -> Any:
        """Return the form of a value. A run's input is also in the history, and need not be encoded twice."""
        cached = self._forms.get(id(value))
        if cached is None:
            # The value is kept with it, so that its id is not reused.
            cached = self._forms[id(value)] = (value, build_form(value))
        return cached[1]

    def delete_run(self, owner: str, run_id: str) -> None:
        place = (key(run_id), key(owner))
        self._ops.append(Do("DELETE FROM runs WHERE run_id = ? AND owner = ?", place))
        self._ops.append(Do("DELETE FROM events WHERE run_id = ? AND owner = ?", place))
        self._ops.append(Do("DELETE FROM background WHERE run_id = ? AND owner = ?", place))
        self._ops.append(Do("DELETE FROM watchers WHERE chain_id = ? AND owner = ?", place))

    def add_watcher(self, watcher: WatcherRecord, *, most_of_owner: int, most_of_chain: int) -> None:
        self._on_watcher()
        self._ops.append(build_watcher_insert(watcher, most_of_owner, most_of_chain))

    def remove_watcher(self, owner: str, watcher_id: str) -> None:
        place = (key(owner), key(watcher_id))
        self._ops.append(Do("DELETE FROM watchers WHERE owner = ? AND watcher_id = ?", place))

    def add_events(self, events: Sequence[RunEvent], job: BackgroundRun | None = None) -> None:
        if events:
            self._ops += background.insert_events(events, job, self._lease_sql)

    def queue_run(self, record: RunRecord, job: BackgroundRun, *, most_waiting: int, most_of_owner: int) -> None:
        most, data, before = (most_waiting, most_of_owner), self._encode(record), len(self._ops)
        self._ops += background.insert_run(record, data, job, most, self._lease_sql)
        if len(data) > MIN_FILE_LENGTH:
            self._note_use(len(self._ops) - before, "run", record.run_id, record.owner, record.owner)

    def save_job(self, job: BackgroundRun) -> None:
        self._ops += background.save_job(job, self._lease_sql)

    def cancel_job(self, owner: str, run_id: str, *, fence: int | None = None) -> None:
        self._ops += background.cancel_job(owner, run_id, fence, self._lease_sql)

    def end_job(self, job: BackgroundRun) -> None:
        self._ops += background.delete_job(job, self._lease_sql)

    def add_approval(self, approval: PendingApproval) -> None:
        self._ops.append(approvals.insert_approval(approval))
        self._ops.extend(approvals.insert_approvers(approval))

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
        self._ops.append(approvals.record_decision(owner, approval_id, status, at, reason, attempt, first, resumed_by))
        self._ops.append(approvals.delete_approvers(owner, approval_id))

    def count_vote(self, owner: str, approval_id: str, *, seen: int) -> None:
        self._ops.append(approvals.count_vote(owner, approval_id, seen))

    def escalate_approval(self, owner: str, approval_id: str) -> None:
        self._ops.append(approvals.mark_escalated(owner, approval_id))

    def begin_approval(self, owner: str, approval_id: str, attempt: str) -> None:
        self._ops.append(approvals.mark_begun(owner, approval_id, attempt))

    def release_approval(self, owner: str, approval_id: str, attempt: str) -> None:
        self._ops.append(approvals.release_attempt(owner, approval_id, attempt))

    def cancel_approvals(self, owner: str, *, at: float, reason: str | None = None) -> None:
        self._ops.extend(approvals.cancel_pending(owner, at, reason))

    def add_vote(self, vote: ApprovalVote) -> None:
        self._ops.append(approvals.insert_vote(vote))

    def add_place(self, place: ApprovalPlace) -> None:
        self._ops.append(approvals.insert_place(place))

    def add_audit(self, line: AuditLine) -> None:
        self._ops.append(approvals.insert_audit_line(line))

    def accept(self, item: InboxItem, *, owner: str = "") -> None:
        operation = inbox.insert_event(item)
        self._ops.append(operation)
        if len(operation.values[-1]) > MIN_FILE_LENGTH:
            self._note_use(1, "event", item.event_id, owner or f"channel {item.channel}", item.channel)

    def finish(self, item: InboxItem, *, error: str | None = None) -> None:
        self._ops.extend(inbox.finish_event(item, error, self._clock.now(), self._lease_sql))

    def postpone_earlier(self, item: InboxItem) -> None:
        self._ops.append(inbox.postpone_earlier(item))

    def interrupt_earlier(self, item: InboxItem, *, only: Sequence[str] | None = None) -> None:
        self._ops.extend(inbox.interrupt_earlier(item, only, self._lease_sql))

    def cancel_earlier(self, item: InboxItem, *, anyone: bool = False, session_id: str = "") -> None:
        now, lease_sql = self._clock.now(), self._lease_sql
        self._ops.extend(inbox.cancel_earlier(item, anyone, session_id, now, lease_sql))

    def cancel_event(self, item: InboxItem) -> None:
        self._ops.extend(inbox.cancel_alone(item, self._clock.now(), self._lease_sql))

    def give_back(self, item: InboxItem, *, tried: bool = False) -> None:
        self._ops.extend(inbox.give_back(item, tried))

    def isolate(self, item: InboxItem, *, isolated: bool = True) -> None:
        self._ops.extend(inbox.set_isolated(item, isolated))

    def add_delivery(self, delivery: Delivery, *, once: bool = False) -> None:
        self._ops.append(outbox.insert_delivery(delivery, once=once))

    def change_delivery(self, delivery: Delivery, *, hold: float = 0.0) -> None:
        self._ops.append(outbox.save_delivery(delivery, hold, self._lease_sql))
        if (shown := delivery.shown_question) is not None:
            self.add_place(shown)

    def end_rest(self, delivery: Delivery, *, error: str, at: float) -> None:
        self._ops.append(outbox.rest_ended(delivery, error, at))

    def save_live(self, live: LiveMessageRecord) -> None:
        self._ops.append(save_live(live))

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
            self._ops.append(self._touch(owner, conversation_id))

    def _touch(self, owner: str, conversation_id: str) -> Do:
        return Do(_TOUCHED, (self._clock.now(), key(conversation_id), key(owner)))

    def delete_item(self, owner: str, conversation_id: str, item_id: str) -> None:
        values = (key(conversation_id), key(owner), key(item_id))
        self._ops.append(Do(f"DELETE FROM items WHERE conversation_id IN ({_OWNED}) AND item_id = ?", values))
        self._ops.append(self._touch(owner, conversation_id))

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
    "INSERT INTO runs (run_id, owner, kind, ended_at, outcome, channel, session_key, root_run_id, data) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (run_id, owner) DO NOTHING"
)
_OWNED = "SELECT conversation_id FROM conversations WHERE conversation_id = ? AND owner = ?"


SCHEMA_CHECK_SECONDS = 10.0
_OPEN = "SELECT name, position FROM backfills WHERE done = 0 ORDER BY name"
_MOVED = "UPDATE backfills SET position = ?, done = ? WHERE name = ? AND position = ? AND done = 0"


class Upkeep:
    """Runs backfills and schema checks in the background while a store is open."""

    def __init__(self, engine: Engine, refuse: Callable[[], None] | None) -> None:
        """Call `refuse` if the schema has become too new. `None` if no other process can change it."""
        self._engine = engine
        self._refuse = refuse
        self._noticed = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = spawn_clean(self._run())

    async def stop(self) -> None:
        await cancel_and_wait(self._task)

    async def _run(self) -> None:
        open_backfills = backfills()
        while open_backfills or self._refuse is not None:
            with suppress(StoreUnavailableError, StoreError):
                if self._refuse is not None and not await self.check(self._refuse):
                    return
                if open_backfills and await self.fill():
                    open_backfills = {}
            await asyncio.sleep(SCHEMA_CHECK_SECONDS)

    async def check(self, refuse: Callable[[], None]) -> bool:
        """Return True if this version may continue to use the store. Otherwise call `refuse`."""
        ((min_reader, version),) = await self._engine.read(MIN_READER_AND_VERSION)
        try:
            check_min_reader(min_reader)
        except NewerStoreError as error:
            log.error("state store no longer usable by this host: %s", error)
            refuse()
            return False
        if version > max(VERSION, self._noticed):
            self._noticed = version
            log.warning(
                "schema migrated by a newer host, continuing: schema_version=%d known_version=%d",
                version,
                VERSION,
            )
        return True

    async def fill(self) -> bool:
        """Complete the backfills that this version knows. Return True if none are left."""
        for name, position in await self._engine.read(_OPEN):
            backfill = backfills().get(name)
            if backfill is not None:
                await self._fill(backfill, position)
        return True

    async def _fill(self, backfill: Backfill, position: str) -> None:
        done = False
        while not done:
            rows = await self._engine.read(backfill.select, (position, BATCH_ROWS))
            done, last = not rows, str(rows[-1][0]) if rows else position
            moved = Do(_MOVED, (last, int(done), backfill.name, position), StoreError("another process has done it"))
            # The rows and the position in one transaction, so that another process continues from here.
            await self._engine.write([moved, *(Do(sql, values) for sql, values in backfill.changes(rows))])
            position = last
        log.info("backfill complete: name=%s schema_version=%s", backfill.name, VERSION)


class SqlStateStore(ReportsWriteFailures):
    """A state store on a SQL database."""

    durable = True
    lease_seconds: float | None = None
    directory: Path | None = None

    def __init__(
        self,
        engine: Engine,
        leases: Leases,
        *,
        expiry: Expiry,
        clock: Clock,
        lease_sql: LeaseSql = LOCAL,
        refuse: Callable[[], None] | None = None,
        identities_fresh_for: float | None = None,
        file_limits: FileLimits | None = None,
    ) -> None:
        """Build the collections. `refuse` is called if another process migrates to a schema that is too new."""
        self._engine = engine
        self._clock = clock
        self._expiry = expiry
        self._lease_sql = lease_sql
        self._records = Records(engine, clock)
        self._upkeep = Upkeep(engine, refuse)
        self._sweep = Sweep(engine, expiry, clock, leases.list_taken)
        self.sessions = SqlSessions(engine, self._records, leases)
        self.identities = SqlIdentities(
            engine, self._records, clock, fresh_for=identities_fresh_for, seen_every=expiry.seen_every
        )
        self.runs = SqlRuns(engine, self._records)
        self.watchers = SqlWatchers(engine, self._records, clock, is_shared=lease_sql.notifies)
        self.background = SqlBackground(engine, self._records, lease_sql)
        self.approvals = SqlApprovals(engine, self._records, lease_sql)
        self.audit = SqlAudit(engine)
        self.inbox = SqlInbox(engine, self._records, lease_sql)
        self.outbox = SqlOutbox(engine, self._records, lease_sql)
        self.live = SqlLiveAnswers(engine, self._records)
        self.tasks = SqlTasks(engine, self._records, lease_sql)
        self.conversations = SqlConversations(engine, self._records)
        self.checkpoints = SqlCheckpoints(engine)
        self.nonces = SqlNonces(engine)
        self.leaderships = SqlLeaderships(engine, lease_sql)
        self.channel_values = SqlChannelValues(engine)
        self.files = SqlFiles(engine, clock, check_limits(file_limits))
        self.conversation_aliases = SqlConversationAliases(engine)
        self.ledger = SqlLedger(engine)

    @property
    def set_aside(self) -> int:
        return self._records.set_aside

    @property
    def unreadable(self) -> int:
        return self._records.unreadable

    def transaction(self) -> SqlTransaction:
        return SqlTransaction(
            self._engine,
            self._clock,
            self._lease_sql,
            self.identities.forget,
            self.files,
            grants_for=self._expiry.grants,
            on_watcher=self.watchers.note_new,
        )

    def listen(self, on_change: OnChange) -> None: ...

    def check_writable(self) -> None:
        self._engine.health.check()

    async def open(self) -> None:
        await self._engine.open()
        await self.watchers.refresh()
        self._sweep.start()
        self._upkeep.start()

    async def close(self) -> None:
        await self._upkeep.stop()
        await self._sweep.stop()
        await self._engine.close()
