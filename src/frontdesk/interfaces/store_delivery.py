"""The store interfaces for inbox events, deliveries, approvals and the audit log."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from frontdesk.models.approval import ApprovalPlace, ApprovalStatus, ApprovalVote, AuditLine, PendingApproval
from frontdesk.models.delivery import (
    Cancelled,
    Delivery,
    DeliveryStatus,
    Destination,
    EventKind,
    InboxItem,
    KnownEvent,
    WaitingEvent,
)


class Inbox(Protocol):
    """Accepted events that are not finished."""

    async def next(self, channel: str, conversation_id: str, *, kind: EventKind = "turn") -> InboxItem | None:
        """Return the oldest unfinished event of a kind in a conversation."""
        ...

    async def claim(
        self, channel: str, conversation_id: str, holder: str, *, kind: EventKind = "turn"
    ) -> InboxItem | None:
        """Claim the oldest unfinished event of a kind for `lease_seconds`, unless it is claimed by another holder.

        If the last holder has neither finished nor released the event, its `lost` count increases.

        An event that only a newer version can read stays unclaimed and raises `UnreadableRecordError`. The events after
        it wait.
        """
        ...

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
        """Claim the oldest turn of a conversation if it is due, with the following messages of its sender.

        A turn is due at its `not_before` or its `due_by`, or if it would wait for more than `longest` seconds because
        the clock was set back. The waiting messages of an album (`waits_for_album`) are claimed together, whatever came
        between them, and with `albums_only` no others. At most `limit` are claimed. The first has the others as its
        `bundle`. Later calls of `renew`, `finish` or `give_back` apply to all of them.
        """
        ...

    async def renew(self, items: Sequence[InboxItem]) -> Sequence[InboxItem]:
        """Extend events by another `lease_seconds`. Return those that still belong to the holder, cancelled or not."""
        ...

    async def find(self, channel: str, event_id: str) -> KnownEvent | None:
        """Return the state of an event, or None if it was not accepted or its record has expired."""
        ...

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
        """Return unfinished events that a holder could claim, in order of arrival. `after` is the last number seen.

        `channels` limits the list to some channels, or with `other` to all channels except those.
        """
        ...

    async def count_earlier(self, item: InboxItem, *, anyone: bool = False) -> Cancelled:
        """Return the number of turns that `cancel_earlier` would currently cancel."""
        ...

    async def count_waiting(self, item: InboxItem) -> int:
        """Return the number of unfinished turns of an event's sender on its channel in all conversations, except the
        event."""
        ...

    async def count_waiting_on(self, channel: str) -> int:
        """Return the number of unfinished turns of a channel."""
        ...

    async def outside_album(self, item: InboxItem) -> Sequence[str]:
        """Return the ids of the sender's unfinished messages in a conversation outside the event's album."""
        ...

    async def failed(self, *, before: int | None = None, limit: int = 100) -> Sequence[tuple[InboxItem, str]]:
        """Return failed events with the reason, newest first. `before` is the last number seen."""
        ...


class InboxWrites(Protocol):
    def accept(self, item: InboxItem, *, owner: str = "") -> None:
        """Store an event. Does nothing for a known one.

        Its large data is stored once as files of `owner`, by default of its channel.
        """
        ...

    def finish(self, item: InboxItem, *, error: str | None = None) -> None:
        """Mark an event as done, with the error if it failed. It is kept so that a repeated one is not run again.

        Here and in the following methods, the transaction fails with `LostEventError` if the event is done or claimed
        by another holder. The same applies to a cancelled event, unless it is finished as `cancelled`. If its sender
        waits for the HTTP response of another process (`reply_by`), that process is notified of its run.
        """
        ...

    def give_back(self, item: InboxItem, *, tried: bool = False) -> None:
        """Release an event for the next claim. Unless `tried`, the attempt does not count."""
        ...

    def isolate(self, item: InboxItem, *, isolated: bool = True) -> None:
        """Record whether the holder of an event works on no other event.

        If the holder crashes while it is isolated, the next claim counts that as `alone`. A claim after a crashed
        holder counts as `lost` in any case. `give_back` ends the isolation.
        """
        ...

    def interrupt_earlier(self, item: InboxItem, *, only: Sequence[str] | None = None) -> None:
        """Mark earlier messages of the same sender in the conversation of an accepted event as cancelled.

        Waiting messages are marked too, and not finished: their next claimant keeps their question. `only` limits this
        to messages with the given ids.
        """
        ...

    def postpone_earlier(self, item: InboxItem) -> None:
        """Delay the sender's waiting messages in a conversation until the `not_before` of an accepted one."""
        ...

    def cancel_earlier(self, item: InboxItem, *, anyone: bool = False, session_id: str = "") -> None:
        """Cancel the turns of the same sender, or of anyone, that came before an event in its conversation.

        Unclaimed ones are finished as `cancelled`. The others are marked, with the session that
        they belong to, and only their holder, or the next one, can finish them. In a group, events of earlier versions
        are left alone: their rows don't tell who sent them.
        """
        ...

    def cancel_event(self, item: InboxItem) -> None:
        """Cancel one turn: finish it as `cancelled` if it is unclaimed, or mark it for its holder to finish.

        One that has changed since it was read fails the transaction with `LostEventError`.
        """
        ...


class Outbox(Protocol):
    """Deliveries and their state."""

    async def get(self, delivery_id: str) -> Delivery | None: ...

    async def by_receipt(self, channel: str, receipt: str) -> Delivery | None:
        """Return the delivery of a channel with a non-empty receipt, the newest if there are several."""
        ...

    async def open(self, destination: Destination, *, limit: int = 20) -> Sequence[Delivery]:
        """Return the unfinished deliveries to a destination, in order."""
        ...

    async def waiting(
        self, channel: str, *, now: float, longest: float | None = None, after: str | None = None, limit: int = 500
    ) -> Sequence[str]:
        """Return the destinations of a channel whose first open delivery is due and unclaimed, in a stable order.

        A delivery that is due more than `longest` seconds from now is included: its time may come from a clock that was
        set back. `after` is the last destination seen.
        """
        ...

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
        """Return the deliveries that match all given filters, newest first. `before` is the id of the last one seen."""
        ...

    async def counts(self) -> Mapping[DeliveryStatus, int]:
        """Return the number of deliveries by status."""
        ...


class OutboxWrites(Protocol):
    def add_delivery(self, delivery: Delivery, *, once: bool = False) -> None:
        """Store a delivery. A known one is unchanged, or fails the transaction with `DeliveryExistsError` (`once`)."""
        ...

    def change_delivery(self, delivery: Delivery, *, hold: float = 0.0) -> None:
        """Store the state of a delivery. While it is being sent, the sender holds it for `hold` seconds.

        The transaction fails with `LostDeliveryError` if the delivery has changed since it was read.
        """
        ...

    def end_rest(self, delivery: Delivery, *, error: str, at: float) -> None:
        """End the parts after a dead one in the same answer."""
        ...


class Approvals(Protocol):
    """The questions of every owner. They are written and decided in the store's transactions."""

    async def get(self, owner: str, approval_id: str) -> PendingApproval | None:
        """Return a question of the owner, decided or not."""
        ...

    async def find(self, approval_id: str) -> PendingApproval | None:
        """Return a question of any owner if others than its requester decide it, else None."""
        ...

    async def of_session(self, owner: str, session_id: str) -> Sequence[PendingApproval]:
        """Return all questions of a session, including decided ones, oldest first."""
        ...

    async def of_chain(self, owner: str, root_run_id: str) -> Sequence[PendingApproval]:
        """Return all questions of a chain of runs, including decided ones, oldest first."""
        ...

    async def pending(self, owner: str) -> Sequence[PendingApproval]:
        """Return the owner's questions that can still be answered (`PendingApproval.waits`), oldest first."""
        ...

    async def asked_as(self, owner: str, target_request_id: str) -> Sequence[PendingApproval]:
        """Return all questions that the target has asked an owner under its own id, oldest first."""
        ...

    async def expired(self, now: float, *, limit: int = 100) -> Sequence[PendingApproval]:
        """Return a limited number of pending questions of any owner whose deadline has passed."""
        ...

    async def to_escalate(self, now: float, *, limit: int = 100) -> Sequence[PendingApproval]:
        """Return a limited number of pending questions of any owner that are due for escalation."""
        ...

    async def waiting_for(
        self,
        approvers: Sequence[str],
        *,
        owner: str | None = None,
        after: str | None = None,
        limit: int = 100,
        max_bytes: int | None = None,
    ) -> Sequence[PendingApproval]:
        """Return pending questions of any owner that name one of the approvers (`ApproverTerms.keys`), oldest first.

        With `owner`, the questions of that owner are included. `after` is the id of the last one seen. With `max_bytes`
        the page ends before the question that would exceed this size. It has at least one question, if there is one.
        """
        ...

    async def votes(self, owner: str, approval_id: str) -> Sequence[ApprovalVote]:
        """Return the votes on a question of an owner, oldest first."""
        ...

    async def places(self, owner: str, approval_id: str) -> Sequence[ApprovalPlace]:
        """Return the locations at which a question of an owner is shown, oldest first."""
        ...


class AuditLog(Protocol):
    """The audit log of every owner, for the operator. Its entries are added in the store's transactions."""

    async def lines(self, *, subject: str | None = None, after: int = 0, limit: int = 200) -> Sequence[AuditLine]:
        """Return entries, oldest first, optionally of one subject. `after` is the last number seen."""
        ...


class ApprovalWrites(Protocol):
    def add_approval(self, approval: PendingApproval) -> None:
        """Store a new question. Raises `ApprovalExistsError` if its owner has the id, decided or not.

        The same applies to a second question of one run with the same id from the target.
        """
        ...

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
        """Decide a pending question. A decided or unknown one fails the transaction with `StoreError`.

        With an `attempt`, the same decision may be repeated until `begin_approval`: the last attempt owns the answer.
        Without one, the decision is final immediately. With `first`, it fails if there is any decision, even the same
        one. `resumed_by` is the run that continues, if it is one of the host's own.
        """
        ...

    def count_vote(self, owner: str, approval_id: str, *, seen: int) -> None:
        """Count a vote that decides nothing. `StoreError` if the vote count differs from `seen` or the question is
        decided."""
        ...

    def escalate_approval(self, owner: str, approval_id: str) -> None:
        """Record the escalation of a pending question. `StoreError` if already recorded or the question is decided."""
        ...

    def add_vote(self, vote: ApprovalVote) -> None:
        """Store a vote on a question, replacing an earlier one of the same voter."""
        ...

    def add_place(self, place: ApprovalPlace) -> None:
        """Store a location at which a question is shown. Does nothing for a known location."""
        ...

    def add_audit(self, line: AuditLine) -> None:
        """Add an entry to the audit log. The store assigns its number."""
        ...

    def begin_approval(self, owner: str, approval_id: str, attempt: str) -> None:
        """Make the decision of an attempt final. Idempotent. `LostAnswerError` if the attempt no longer owns it."""
        ...

    def release_approval(self, owner: str, approval_id: str, attempt: str) -> None:
        """Undo the attempt so that the decision can be repeated. Does nothing if the attempt no longer owns it."""
        ...

    def cancel_approvals(self, owner: str, *, at: float, reason: str | None = None) -> None:
        """Decide all waiting questions of an owner as cancelled, and take their answers from current attempts.

        Each of them gets an entry in the audit log.
        """
        ...
