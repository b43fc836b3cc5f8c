"""`InMemoryStateStore`: bounded state in the memory of this process, for tests and trials.

It keeps references to the objects instead of copies, so a message must not be changed after it was stored.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from frontdesk.auth.nonces import ProcessNonces
from frontdesk.clock import Clock, SystemClock
from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.errors import ApprovalExistsError, LostRunError, RunExistsError, TooManyRequestsError
from frontdesk.interfaces.store import OnChange
from frontdesk.models.approval import ApprovalPlace, ApprovalStatus, ApprovalVote, AuditLine, PendingApproval
from frontdesk.models.conversation import Conversation, ConversationItem
from frontdesk.models.delivery import Delivery, InboxItem
from frontdesk.models.file import FileLimits, check_limits
from frontdesk.models.identity import ChannelIdentity, IdentityRecord, LastSeen, PushGroup
from frontdesk.models.link import Grant, LinkRecord
from frontdesk.models.live_message import LiveMessageRecord
from frontdesk.models.operations import YEAR, Expiry
from frontdesk.models.run import BackgroundRun, RunEvent, RunRecord
from frontdesk.models.session import Lease, SessionName, SessionRecord
from frontdesk.models.watcher import WatcherRecord
from frontdesk.stores.memory.approvals import MemoryApprovals, MemoryAudit, is_same_question
from frontdesk.stores.memory.channels import (
    MemoryChannelValues,
    MemoryConversationAliases,
    MemoryFiles,
    MemoryLeaderships,
)
from frontdesk.stores.memory.delivery import MemoryInbox, MemoryLiveAnswers, MemoryOutbox
from frontdesk.stores.memory.identities import MemoryIdentities
from frontdesk.stores.memory.operations import MemoryLedger, MemoryTasks
from frontdesk.stores.memory.sessions import (
    MemoryCheckpoints,
    MemoryConversations,
    MemoryRuns,
    MemorySessions,
    MemoryWatchers,
)

TOO_MANY = "Too many runs wait in the background."
TOO_MANY_OF_OWNER = "Too many of your runs are in the background."
RETRY_SECONDS = 5.0


class MemoryBackground:
    def __init__(self) -> None:
        self.jobs: dict[tuple[str, str], BackgroundRun] = {}

    async def get(self, owner: str, run_id: str) -> BackgroundRun | None:
        return self.jobs.get((owner, run_id))

    async def of_owner(self, owner: str) -> Sequence[BackgroundRun]:
        return [job for job in self.jobs.values() if job.admitted.owner == owner]

    async def claim(self, holder: str, *, limit: int, skip: Sequence[tuple[str, str]] = ()) -> Sequence[BackgroundRun]:
        free = [job for job in self.jobs.values() if job.holder != holder and job.key not in skip][:limit]
        taken = [job.replace(holder=holder, fence=job.fence + 1) for job in free]
        self.jobs.update({job.key: job for job in taken})
        return taken

    async def renew(self, jobs: Sequence[BackgroundRun]) -> Sequence[BackgroundRun]:
        return [self.jobs[job.key] for job in jobs if self._holds(job)]

    def _holds(self, job: BackgroundRun) -> bool:
        current = self.jobs.get(job.key)
        return current is not None and current.fence == job.fence

    def check(self, job: BackgroundRun) -> None:
        if not self._holds(job):
            raise LostRunError

    def check_fence(self, owner: str, run_id: str, fence: int) -> None:
        current = self.jobs.get((owner, run_id))
        if current is None or current.fence != fence:
            raise LostRunError

    def check_capacity(self, job: BackgroundRun, most_waiting: int, most_of_owner: int) -> None:
        owner = job.admitted.owner
        if sum(other.admitted.owner == owner for other in self.jobs.values()) >= most_of_owner:
            raise TooManyRequestsError(TOO_MANY_OF_OWNER, retry_after=RETRY_SECONDS)
        if not job.holder and sum(not other.holder for other in self.jobs.values()) >= most_waiting:
            raise TooManyRequestsError(TOO_MANY, retry_after=RETRY_SECONDS)

    def add(self, job: BackgroundRun) -> None:
        self.jobs[job.key] = job

    def save(self, job: BackgroundRun) -> None:
        # A cancellation that was requested meanwhile is kept.
        self.jobs[job.key] = job.replace(cancelled=self.jobs[job.key].cancelled)

    def cancel(self, owner: str, run_id: str) -> None:
        job = self.jobs.get((owner, run_id))
        if job is not None:
            self.jobs[owner, run_id] = job.replace(cancelled=True)

    def end(self, owner: str, run_id: str) -> None:
        self.jobs.pop((owner, run_id), None)


SWEEP_INTERVAL_SECONDS = 60.0
_FILES_KEPT = Expiry().files or 0.0


class MemorySweep:
    """Periodically drops idle sessions, conversations, identities, unused files, and expired records.

    The other collections evict old records by themselves.
    """

    def __init__(self, store: "InMemoryStateStore", idle_seconds: float | None, clock: Clock) -> None:
        self._store = store
        self._idle = idle_seconds
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = spawn_clean(self._go_on())

    async def stop(self) -> None:
        await cancel_and_wait(self._task)

    async def _go_on(self) -> None:
        while True:
            # A new store has nothing to drop.
            await asyncio.sleep(SWEEP_INTERVAL_SECONDS)
            self.once()

    def once(self) -> int:
        """Drop all idle or expired records. Return the number of sessions, conversations and identities."""
        now = self._clock.now()
        self._store.identities.drop_ended(now)
        self._store.channel_values.drop_expired(now)
        self._store.live.drop_expired(now)
        self._store.watchers.drop_expired(now)
        self._store.files.drop_unused(now - _FILES_KEPT)
        if self._idle is None:
            return 0
        dropped = self._store.conversations.drop_idle(now - self._idle)
        while gone := self._store.sessions.drop_idle(now - self._idle):
            # These may have been the last branches of other sessions.
            self._store.approvals.drop_sessions(gone)
            self._store.checkpoints.drop_sessions(gone)
            dropped += len(gone)
        # Last, because the dropped records may have been all that an identity owned.
        return dropped + self._store.identities.drop_idle(now, self._idle, self._owners)

    def _owners(self) -> set[str]:
        """Return the isolation keys that own something."""
        store = self._store
        sessions = (kept.owner if kept.record is None else kept.record.owner for _, kept in store.sessions.kept.items())
        return {
            *(owner for owner in sessions if owner is not None),
            *(record.owner for _, record in store.conversations.records.items()),
            *(record.owner for _, record in store.runs.records.items()),
            *store.approvals.owned,
            *(owner for owner, _ in store.background.jobs),
            *(owner for (owner, _), _ in store.files.kept.items()),
            *(delivery.owner for queue in store.outbox.queues.values() for delivery in queue.values()),
        }


class InMemoryStateStore:
    """A state store in memory."""

    durable = False
    lease_seconds = None
    directory: Path | None = None
    set_aside = 0
    unreadable = 0

    def __init__(
        self,
        *,
        limit: int = 4_000,
        idle_seconds: float | None = YEAR,
        clock: Clock | None = None,
        file_limits: FileLimits | None = None,
    ) -> None:
        """Keep at most `limit` sessions, runs, approvals and conversations each.

        On overflow, the owner with the most entries loses their least recently used one.

        Sessions, conversations and identities that are unused for `idle_seconds` are dropped too. With `None` they are
        not.
        """
        clock = clock or SystemClock()
        self.sessions = MemorySessions(limit)
        self.identities = MemoryIdentities(10 * limit)
        self.runs = MemoryRuns(limit)
        self.watchers = MemoryWatchers(limit)
        self.background = MemoryBackground()
        self.approvals = MemoryApprovals(limit)
        self.audit = MemoryAudit(10 * limit)
        self.inbox = MemoryInbox(10 * limit)
        self.outbox = MemoryOutbox(limit)
        self.live = MemoryLiveAnswers(limit)
        self.tasks = MemoryTasks(10 * limit)
        self.conversations = MemoryConversations(limit, clock)
        self.checkpoints = MemoryCheckpoints(limit, self.sessions.get_owner)
        self.nonces = ProcessNonces(250 * limit)
        self.leaderships = MemoryLeaderships()
        self.channel_values = MemoryChannelValues(10 * limit, self.live)
        self.conversation_aliases = MemoryConversationAliases()
        self.files = MemoryFiles(limit, check_limits(file_limits), clock)
        self.ledger = MemoryLedger(self)
        self._sweep = MemorySweep(self, idle_seconds, clock)

    def transaction(self) -> "MemoryTransaction":
        return MemoryTransaction(self)

    def listen(self, on_change: OnChange) -> None: ...

    async def open(self) -> None:
        self._sweep.start()

    async def close(self) -> None:
        await self._sweep.stop()


class MemoryTransaction:
    """Collects writes, and makes all checks before the first write."""

    __slots__ = ("_checks", "_store", "_writes")

    def __init__(self, store: InMemoryStateStore) -> None:
        self._store = store
        self._checks: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._writes: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        for check, arguments in self._checks:
            check(*arguments)
        for write, arguments in self._writes:
            write(*arguments)

    def save_session(self, record: SessionRecord, lease: Lease, *, keep: bool = False) -> None:
        self._checks.append((self._store.sessions.check, (lease, record.session_id)))
        self._writes.append((self._store.sessions.save, (record, lease)))

    def name_session(self, name: SessionName, session_id: str) -> None:
        self._writes.append((self._store.sessions.point, (name, session_id)))

    def title_session(self, owner: str, session_id: str, title: str | None) -> None:
        self._writes.append((self._store.sessions.retitle, (owner, session_id, title)))

    def append_history(self, session_id: str, messages: Sequence[Any]) -> None:
        self._writes.append((self._store.sessions.append, (session_id, messages)))

    def remember_identity(self, record: IdentityRecord, *, instead_of: IdentityRecord | None = None) -> None:
        if instead_of is None:
            self._writes.append((self._store.identities.introduce, (record,)))
            return
        self._checks.append((self._store.identities.check_record, (instead_of,)))
        self._writes.append((self._store.identities.save, (record,)))

    def keep_reference(self, identity: ChannelIdentity, reference: Mapping[str, Any]) -> None:
        self._writes.append((self._store.identities.keep_reference, (identity, reference)))

    def keep_group(self, identity: ChannelIdentity, group: PushGroup | None) -> None:
        self._writes.append((self._store.identities.keep_group, (identity, group)))

    def see(self, seen: LastSeen) -> None:
        self._writes.append((self._store.identities.see, (seen,)))

    def add_link(self, link: LinkRecord) -> None:
        self._writes.append((self._store.identities.add_link, (link,)))

    def remove_link(self, isolation_key: str, identity: ChannelIdentity) -> None:
        self._writes.append((self._store.identities.unlink, (isolation_key, identity)))

    def add_grant(self, grant: Grant, *, free_at: float | None = None) -> None:
        used = (self._store.identities.check_grant, (grant.grant_id,))
        if free_at is not None and used not in self._checks:
            self._checks.append((self._store.identities.check_free, (grant.grant_id, free_at)))
        self._writes.append((self._store.identities.grants.put, (grant.grant_id, grant)))

    def use_grant(self, grant_id: str) -> None:
        self._checks.append((self._store.identities.check_grant, (grant_id,)))
        self._writes.append((self._store.identities.drop_grant, (grant_id,)))

    def save_run(self, record: RunRecord, *, new: bool = False) -> None:
        if new:
            self._checks.append((self._check_new, (record,)))
        self._writes.append((self._store.runs.save, (record,)))

    def delete_run(self, owner: str, run_id: str) -> None:
        self._writes.append((self._store.runs.delete, (owner, run_id)))
        self._writes.append((self._store.background.end, (owner, run_id)))
        self._writes.append((self._store.watchers.drop_chain, (owner, run_id)))

    def add_watcher(self, watcher: WatcherRecord, *, most_of_owner: int, most_of_chain: int) -> None:
        self._checks.append((self._store.watchers.check_capacity, (watcher, most_of_owner, most_of_chain)))
        self._writes.append((self._store.watchers.add, (watcher,)))

    def remove_watcher(self, owner: str, watcher_id: str) -> None:
        self._writes.append((self._store.watchers.remove, (owner, watcher_id)))

    def add_events(self, events: Sequence[RunEvent], job: BackgroundRun | None = None) -> None:
        if job is not None:
            self._checks.append((self._store.background.check, (job,)))
        self._writes.append((self._store.runs.add_events, (events,)))

    def queue_run(self, record: RunRecord, job: BackgroundRun, *, most_waiting: int, most_of_owner: int) -> None:
        self._checks.append((self._check_new, (record,)))
        self._checks.append((self._store.background.check_capacity, (job, most_waiting, most_of_owner)))
        self._writes.append((self._store.runs.save, (record,)))
        self._writes.append((self._store.background.add, (job,)))

    def _check_new(self, record: RunRecord) -> None:
        if (record.owner, record.run_id) in self._store.runs.records:
            raise RunExistsError

    def save_job(self, job: BackgroundRun) -> None:
        self._checks.append((self._store.background.check, (job,)))
        self._writes.append((self._store.background.save, (job,)))

    def cancel_job(self, owner: str, run_id: str, *, fence: int | None = None) -> None:
        if fence is not None:
            self._checks.append((self._store.background.check_fence, (owner, run_id, fence)))
        self._writes.append((self._store.background.cancel, (owner, run_id)))

    def end_job(self, job: BackgroundRun) -> None:
        self._checks.append((self._store.background.check, (job,)))
        self._writes.append((self._store.background.end, job.key))

    def add_approval(self, approval: PendingApproval) -> None:
        self._checks.append((self._store.approvals.check_new, (approval,)))
        # Of two in one transaction neither is there when they are checked.
        added = [arguments[0] for write, arguments in self._writes if write == self._store.approvals.add]
        if any(_is_known(known, approval) for known in added):
            self._checks.append((_refuse_second, ()))
        self._writes.append((self._store.approvals.add, (approval,)))

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
        self._checks.append((self._store.approvals.check, (owner, approval_id, status, first)))
        decision = (owner, approval_id, status, at, reason, attempt, resumed_by)
        self._writes.append((self._store.approvals.decide, decision))

    def count_vote(self, owner: str, approval_id: str, *, seen: int) -> None:
        self._checks.append((self._store.approvals.check_votes, (owner, approval_id, seen)))
        self._writes.append((self._store.approvals.count_vote, (owner, approval_id, seen)))

    def escalate_approval(self, owner: str, approval_id: str) -> None:
        self._checks.append((self._store.approvals.check_escalation, (owner, approval_id)))
        self._writes.append((self._store.approvals.escalate, (owner, approval_id)))

    def begin_approval(self, owner: str, approval_id: str, attempt: str) -> None:
        self._checks.append((self._store.approvals.check_attempt, (owner, approval_id, attempt)))
        self._writes.append((self._store.approvals.begin, (owner, approval_id)))

    def release_approval(self, owner: str, approval_id: str, attempt: str) -> None:
        self._writes.append((self._store.approvals.release, (owner, approval_id, attempt)))

    def cancel_approvals(self, owner: str, *, at: float, reason: str | None = None) -> None:
        self._writes.append((self._store.approvals.cancel_all, (owner, at, reason, self._store.audit)))

    def add_vote(self, vote: ApprovalVote) -> None:
        self._writes.append((self._store.approvals.add_vote, (vote,)))

    def add_place(self, place: ApprovalPlace) -> None:
        self._writes.append((self._store.approvals.add_place, (place,)))

    def add_audit(self, line: AuditLine) -> None:
        self._writes.append((self._store.audit.add, (line,)))

    def accept(self, item: InboxItem, *, owner: str = "") -> None:
        self._writes.append((self._store.inbox.accept, (item,)))

    def finish(self, item: InboxItem, *, error: str | None = None) -> None:
        for member in item.members:
            self._checks.append((self._store.inbox.check_finish, (member, error)))
            self._writes.append((self._store.inbox.finish, (member, error)))

    def postpone_earlier(self, item: InboxItem) -> None:
        self._writes.append((self._store.inbox.postpone_earlier, (item,)))

    def interrupt_earlier(self, item: InboxItem, *, only: Sequence[str] | None = None) -> None:
        self._writes.append((self._store.inbox.interrupt_earlier, (item, only)))

    def cancel_earlier(self, item: InboxItem, *, anyone: bool = False, session_id: str = "") -> None:
        self._writes.append((self._store.inbox.cancel_earlier, (item, anyone, session_id)))

    def cancel_event(self, item: InboxItem) -> None:
        self._checks.append((self._store.inbox.check_turn, (item,)))
        self._writes.append((self._store.inbox.cancel, (item,)))

    def give_back(self, item: InboxItem, *, tried: bool = False) -> None:
        for member in item.members:
            self._checks.append((self._store.inbox.check, (member,)))
            self._writes.append((self._store.inbox.give_back, (member, tried)))

    def isolate(self, item: InboxItem, *, isolated: bool = True) -> None:
        for member in item.members:
            self._checks.append((self._store.inbox.check, (member,)))
            self._writes.append((self._store.inbox.isolate, (member, isolated)))

    def add_delivery(self, delivery: Delivery, *, once: bool = False) -> None:
        if once:
            self._checks.append((self._store.outbox.check_new, (delivery.delivery_id,)))
        self._writes.append((self._store.outbox.add, (delivery,)))

    def change_delivery(self, delivery: Delivery, *, hold: float = 0.0) -> None:
        self._checks.append((self._store.outbox.check, (delivery,)))
        self._writes.append((self._store.outbox.change, (delivery,)))
        if (shown := delivery.shown_question) is not None:
            self.add_place(shown)

    def end_rest(self, delivery: Delivery, *, error: str, at: float) -> None:
        self._writes.append((self._store.outbox.end_rest, (delivery, error, at)))

    def save_live(self, live: LiveMessageRecord) -> None:
        self._checks.append((self._store.live.check, (live,)))
        self._writes.append((self._store.live.save, (live,)))

    def save_conversation(self, conversation: Conversation) -> None:
        self._writes.append((self._store.conversations.save, (conversation,)))

    def delete_conversation(self, owner: str, conversation_id: str) -> None:
        self._writes.append((self._store.conversations.delete, (owner, conversation_id)))

    def add_items(self, owner: str, items: Sequence[ConversationItem]) -> None:
        self._writes.append((self._store.conversations.add_items, (owner, items)))

    def delete_item(self, owner: str, conversation_id: str, item_id: str) -> None:
        self._writes.append((self._store.conversations.delete_item, (owner, conversation_id, item_id)))

    def save_checkpoint(self, session_id: str, checkpoint_id: str, data: bytes) -> None:
        self._writes.append((self._store.checkpoints.kept.put, ((session_id, checkpoint_id), data)))

    def delete_checkpoint(self, session_id: str, checkpoint_id: str) -> None:
        self._writes.append((self._store.checkpoints.delete, (session_id, checkpoint_id)))


def _is_known(known: PendingApproval, other: PendingApproval) -> bool:
    same_id = (known.owner, known.approval_id) == (other.owner, other.approval_id)
    return same_id or (known.owner == other.owner and is_same_question(known, other))


def _refuse_second() -> None:
    raise ApprovalExistsError


InMemoryHostStateStore = InMemoryStateStore
"""The name that the design gives it."""
