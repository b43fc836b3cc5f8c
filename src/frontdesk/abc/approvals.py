"""The storage for questions that wait for a human."""

from collections.abc import Sequence
from typing import Protocol

from frontdesk.data.approval import ApprovalPlace, ApprovalStatus, ApprovalVote, AuditLine, PendingApproval


class Approvals(Protocol):
    """The questions of every owner; they are written and decided in the store's transactions."""

    async def get(self, owner: str, approval_id: str) -> PendingApproval | None:
        """Return a question, decided or not, if it is the owner's."""
        ...

    async def find(self, approval_id: str) -> PendingApproval | None:
        """Return the question of any owner that others than its requester decide; `None` for all others."""
        ...

    async def of_session(self, owner: str, session_id: str) -> Sequence[PendingApproval]:
        """List all questions of a session, decided ones too, oldest first."""
        ...

    async def pending(self, owner: str) -> Sequence[PendingApproval]:
        """List the owner's questions for which an answer counts (`PendingApproval.waits`), oldest first."""
        ...

    async def asked_as(self, owner: str, target_request_id: str) -> Sequence[PendingApproval]:
        """List all questions that the target has asked an owner under an id of its own, oldest first."""
        ...

    async def expired(self, now: float, *, limit: int = 100) -> Sequence[PendingApproval]:
        """List pending questions of every owner that were to be answered before a time, some at once."""
        ...

    async def to_escalate(self, now: float, *, limit: int = 100) -> Sequence[PendingApproval]:
        """List pending questions of every owner that others were to be asked about by a time, some at once."""
        ...

    async def waiting_for(
        self, approvers: Sequence[str], *, after: str | None = None, limit: int = 100
    ) -> Sequence[PendingApproval]:
        """List pending questions of every owner that name one of some approvers (`ApproverTerms.keys`), oldest first.

        `after` is the id of the last one seen.
        """
        ...

    async def votes(self, owner: str, approval_id: str) -> Sequence[ApprovalVote]:
        """List the votes about a question of an owner's, oldest first."""
        ...

    async def places(self, owner: str, approval_id: str) -> Sequence[ApprovalPlace]:
        """List where a question of an owner's is shown, oldest first."""
        ...


class AuditLog(Protocol):
    """The audit log of every owner, for the operator; its lines are added in the store's transactions."""

    async def lines(self, *, subject: str | None = None, after: int = 0, limit: int = 200) -> Sequence[AuditLine]:
        """List lines, oldest first, perhaps only those about a subject; `after` is the last number seen."""
        ...


class ApprovalWrites(Protocol):
    """Write questions and their decisions, in the store's transactions."""

    def add_approval(self, approval: PendingApproval) -> None:
        """Keep a new question; an id that its owner has, decided or not, fails with `ApprovalExistsError`.

        So does a second question of one run under the same id of the target's.
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
        """Decide a pending question; a decided or foreign one fails the transaction with `StoreError`.

        With an `attempt`, the same decision may be made again until `begin_approval`: the last attempt has the answer.
        Without one, the decision is final at once. With `first`, it fails if there is a decision, even the same one.
        `resumed_by` is the run that goes on, where that is one of the host's own.
        """
        ...

    def count_vote(self, owner: str, approval_id: str, *, seen: int) -> None:
        """Count a vote that decides nothing; `StoreError` if the question has another number of them, or is decided."""
        ...

    def escalate_approval(self, owner: str, approval_id: str) -> None:
        """Note that others are asked about a pending question; `StoreError` if that was noted, or it is decided."""
        ...

    def add_vote(self, vote: ApprovalVote) -> None:
        """Keep a vote about a question, instead of an earlier one of the same voter."""
        ...

    def add_place(self, place: ApprovalPlace) -> None:
        """Keep where a question is shown; a place that is known changes nothing."""
        ...

    def add_audit(self, line: AuditLine) -> None:
        """Add a line to the audit log; the store gives it a number."""
        ...

    def begin_approval(self, owner: str, approval_id: str, attempt: str) -> None:
        """Make the decision of an attempt final, once or again; `LostAnswerError` if the attempt has it no more."""
        ...

    def release_approval(self, owner: str, approval_id: str, attempt: str) -> None:
        """Let the same decision be made again, as if the attempt had not begun; nothing if it has it no more."""
        ...

    def cancel_approvals(self, owner: str, *, at: float, reason: str | None = None) -> None:
        """Decide every question that waits for an owner as cancelled, and take its answer from whoever has it.

        Each of them gets a line in the audit log.
        """
        ...
