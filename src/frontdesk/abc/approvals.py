"""Where questions wait for a human."""

from collections.abc import Sequence
from typing import Protocol

from frontdesk.data.approval import ApprovalStatus, PendingApproval


class ApprovalStorage(Protocol):
    """The questions of every owner; they are written and decided in the store's transactions."""

    async def get(self, owner: str, approval_id: str) -> PendingApproval | None:
        """Return a question, decided or not, if it is the owner's."""
        ...

    async def of_session(self, owner: str, session_id: str) -> Sequence[PendingApproval]:
        """List all questions of a session, decided ones too, oldest first."""
        ...

    async def pending(self, owner: str) -> Sequence[PendingApproval]:
        """List the owner's questions for which an answer counts (`PendingApproval.waits`), oldest first."""
        ...


class ApprovalWrites(Protocol):
    """Write questions and their decisions, in the store's transactions."""

    def add_approval(self, approval: PendingApproval) -> None:
        """Keep a new question; an id that its owner has, decided or not, fails with `ApprovalExistsError`."""
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
    ) -> None:
        """Decide a pending question; a decided or foreign one fails the transaction with `StoreError`.

        With an `attempt`, the same decision may be made again until `begin_approval`: the last attempt has the answer.
        Without one, the decision is final at once.
        """
        ...

    def begin_approval(self, owner: str, approval_id: str, attempt: str) -> None:
        """Make the decision of an attempt final, once or again; `LostAnswerError` if the attempt has it no more."""
        ...

    def release_approval(self, owner: str, approval_id: str, attempt: str) -> None:
        """Let the same decision be made again, as if the attempt had not begun; nothing if it has it no more."""
        ...

    def cancel_approvals(self, owner: str, *, at: float, reason: str | None = None) -> None:
        """Decide every question that waits for an owner as cancelled, and take its answer from whoever has it."""
        ...
