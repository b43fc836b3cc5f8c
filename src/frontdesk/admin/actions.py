"""The actions of operators on records. Each is one transaction, including its line in the audit log."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from frontdesk.access.identify import IdentityKeys
from frontdesk.access.joining import PrincipalJoiner
from frontdesk.access.links import Links
from frontdesk.admin.deliveries import Deliveries
from frontdesk.admin.messages import AdminMessagingDeps
from frontdesk.admin.queries import AdminQueries, check_kind
from frontdesk.admin.rows import Row, summary
from frontdesk.approvals.decisions import Decisions
from frontdesk.approvals.records import NewRunId, NoApprovalMessages, Resume
from frontdesk.clock import Clock
from frontdesk.errors import (
    CodecError,
    ConflictError,
    InvalidRequestError,
    LostDeliveryError,
    LostEventError,
    LostRunError,
    NotFoundError,
    UnreadableRecordError,
)
from frontdesk.ids import Ids
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import audit
from frontdesk.models.approval import ApprovalAnswer, AuditLine, PendingApproval
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.operations import LedgerKind, LedgerRow
from frontdesk.serialization.codec import from_json

ACTIONS: Mapping[LedgerKind, tuple[str, ...]] = {
    "deliveries": ("retry", "drop"),
    "runs": ("cancel",),
    "approvals": ("cancel", "approve", "reject"),
    "links": ("revoke",),
    "inbox": ("cancel",),
}
OPERATOR = "operator:"
"""The beginning of the names of operators in the audit log."""
_MAX_NAME_LENGTH = 100
_CHANGED = "The record has changed since it was read. Read it again."


async def _no_run(owner: str, run_id: str) -> None:
    pass


async def _no_events() -> None:
    pass


async def _no_event(event: InboxItem) -> None:
    """Leave an event for the next host."""


@dataclass(frozen=True, kw_only=True)
class AdminParts:
    """The dependencies of an action. Parts for channels and local work exist only within a host."""

    store: HostStateStore
    clock: Clock
    deliveries: Deliveries
    decisions: Decisions
    links: Links
    joiner: PrincipalJoiner
    reload_principals: Callable[[], Awaitable[None]] = _no_events
    """Has the host read anew which channels share principals."""
    stop_run: Callable[[str, str], Awaitable[None]] = _no_run
    """Ends a background run that was cancelled, if this process works on it."""
    look_for_cancelled: Callable[[], Awaitable[None]] = _no_events
    """Ends the events that were cancelled while this process works on them."""
    new_run_id: NewRunId
    """Makes the id of the run that goes on after an answer."""
    resume: Resume = _no_event
    """Takes up the event that goes on with a run, in a process that can."""
    speaking: AdminMessagingDeps | None = None
    """The way to speak to people, and to run the target; only a host has it."""

    @classmethod
    def of_store(cls, store: HostStateStore, clock: Clock, ids: Ids) -> "AdminParts":
        """Build the parts for a process that has only the store."""
        links = Links(store, IdentityKeys(store, ids, clock), ids, clock)
        decisions = Decisions(store, clock, None, NoApprovalMessages(), sees_tools=False)
        return cls(
            store=store,
            clock=clock,
            deliveries=Deliveries(store, clock),
            decisions=decisions,
            links=links,
            joiner=PrincipalJoiner(store, links, clock, ids),
            new_run_id=lambda channel: ids.new("run"),
        )


def operator_name(by: str) -> str:
    if not 0 < len(by) <= _MAX_NAME_LENGTH or not by.isprintable():
        raise InvalidRequestError("An operator name must have 1 to 100 printable characters.", param="by")
    return by if by.startswith(OPERATOR) else f"{OPERATOR}{by}"


class AdminActions:
    """Actions of one operator. Each action takes the `seen` of its row, and is rejected if the row has changed."""

    def __init__(self, parts: AdminParts, by: str) -> None:
        """Act as the operator `by`, whose name is written to each audit line."""
        self._parts = parts
        self._by = operator_name(by)
        self._queries = AdminQueries(parts.store)
        self._reason: str | None = None
        self._work: Mapping[LedgerKind, Callable[[LedgerRow, str], Awaitable[None]]] = {
            "deliveries": self._on_delivery,
            "runs": self._on_run,
            "approvals": self._on_approval,
            "links": self._on_link,
            "inbox": self._on_event,
        }

    async def act(
        self, kind: str, action: str, name: Mapping[str, str], *, seen: str, reason: str | None = None
    ) -> Row:
        """Act on a row and return its new state. `reason` is the reason of an answer to a question."""
        self._reason = reason
        known = check_kind(kind)
        if action not in ACTIONS.get(known, ()):
            raise InvalidRequestError(f"Unknown action {action!r} on {kind}.", param="action")
        row = await self._queries.find(known, name)
        if summary(known, row)["seen"] != seen:
            raise ConflictError(_CHANGED, code="changed")
        try:
            await self._work[known](row, action)
        except (LostDeliveryError, LostEventError, LostRunError) as error:
            raise ConflictError(_CHANGED, code="changed") from error
        try:
            return summary(known, await self._queries.find(known, name))
        except NotFoundError:
            # A link that was revoked is gone, and so is an event of the store in memory.
            return {**summary(known, row), "gone": True}

    async def _on_delivery(self, row: LedgerRow, action: str) -> None:
        work = self._parts.deliveries.retry if action == "retry" else self._parts.deliveries.drop
        await work(str(row.columns["delivery_id"]), by=self._by, fence=int(row.columns["fence"]))

    async def _on_run(self, row: LedgerRow, action: str) -> None:
        owner, run_id = _read(row, "owner"), _read(row, "run_id")
        fence = row.columns["fence"]
        if fence is None:
            raise ConflictError("Only a pending or running background run can be cancelled.", code="not_cancellable")
        async with self._parts.store.transaction() as transaction:
            transaction.cancel_job(owner, run_id, fence=int(fence))
            transaction.add_audit(self._line(owner, run_id, "run_cancelled"))
        audit.info("run cancelled by operator: run_id=%s actor=%s", run_id, self._by)
        await self._parts.stop_run(owner, run_id)

    async def _on_event(self, row: LedgerRow, action: str) -> None:
        if row.columns["kind"] != "turn" or row.columns["done_at"] is not None:
            raise ConflictError("Only a pending or running turn can be cancelled.", code="not_cancellable")
        item = _event(row)
        number = str(row.columns["number"])
        async with self._parts.store.transaction() as transaction:
            transaction.cancel_event(item)
            transaction.add_audit(self._line("", f"event {number}", "event_cancelled"))
        audit.info("event cancelled by operator: event_id=%s channel=%s actor=%s", number, item.channel, self._by)
        await self._parts.look_for_cancelled()

    async def _on_approval(self, row: LedgerRow, action: str) -> None:
        owner, approval_id = _read(row, "owner"), _read(row, "approval_id")
        question = await self._parts.store.approvals.get(owner, approval_id)
        if question is None:
            raise NotFoundError("Approval not found.")
        if question.status != "pending":
            done = "cancelled" if action == "cancel" else "answered"
            raise ConflictError(f"The approval can't be {done}: its status is {question.status}.", code="not_pending")
        if action != "cancel":
            return await self._answer(question, approved=action == "approve")
        if not await self._parts.decisions.cancel(question, by=self._by):
            raise ConflictError(_CHANGED, code="changed")
        audit.info("approval cancelled by operator: approval_id=%s actor=%s", approval_id, self._by)

    async def _answer(self, question: PendingApproval, *, approved: bool) -> None:
        answer = ApprovalAnswer(approval_id=question.approval_id, approved=approved, reason=self._reason)
        parts = self._parts
        decision = await parts.decisions.decide_as_operator(question, answer, self._by, parts.new_run_id, parts.resume)
        if decision.outcome != "recorded":
            raise ConflictError(_CHANGED, code="changed")
        audit.info(
            "approval decided by operator: approval_id=%s decision=%s actor=%s",
            question.approval_id,
            "approved" if approved else "rejected",
            self._by,
        )

    async def note_read(self, shown: Row, action: str) -> None:
        """Add an audit line that the operator has read the content of a question."""
        line = self._line(str(shown["person"]), str(shown["approval_id"]), action)
        async with self._parts.store.transaction() as transaction:
            transaction.add_audit(line)

    async def _on_link(self, row: LedgerRow, action: str) -> None:
        identity: ChannelIdentity = _record_name(_read(row, "identity"))
        link = await self._parts.store.identities.link(identity)
        if link is None or link.link_id != _read(row, "link_id"):
            raise ConflictError(_CHANGED, code="changed")
        await self._parts.links.revoke(link, by=self._by)

    def _line(self, owner: str, subject: str, action: str) -> AuditLine:
        return AuditLine(at=self._parts.clock.now(), owner=owner, subject=subject, action=action, by=self._by)


def _read(row: LedgerRow, name: str) -> Any:
    if row.record is None or name not in row.record:
        raise UnreadableRecordError
    return row.record[name]


def _record_name(tree: Any) -> Any:
    try:
        return from_json(tree)
    except CodecError as error:
        raise UnreadableRecordError(str(error)) from error


def _event(row: LedgerRow) -> InboxItem:
    item: InboxItem = _record_name({"$": "InboxItem", **(row.record or {})})
    return item.replace(fence=int(row.columns["fence"]))
