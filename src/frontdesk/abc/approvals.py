"""Where pending approvals are kept."""

from typing import Protocol

from frontdesk.data.approval import ApprovalStatus, PendingApproval


class ApprovalStorage(Protocol):
    """Keeps the questions; a decision counts once."""

    async def pending(self, owner: str, approval_id: str) -> PendingApproval | None:
        """A question that still waits, if it is the owner's."""
        ...

    async def list_pending(self, owner: str, session_id: str | None = None) -> list[PendingApproval]:
        """The owner's open questions, oldest first."""
        ...

    async def decide(
        self, owner: str, approval_id: str, status: ApprovalStatus, *, at: float, reason: str | None = None
    ) -> PendingApproval | None:
        """Consumes a question; `None` if it was decided before or is not the owner's."""
        ...
