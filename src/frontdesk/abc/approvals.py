"""Where questions wait for a human."""

from collections.abc import Sequence
from typing import Protocol

from frontdesk.data.approval import PendingApproval


class ApprovalStorage(Protocol):
    """The questions of every owner; they are written and decided in the store's transactions."""

    async def get(self, owner: str, approval_id: str) -> PendingApproval | None:
        """A question, decided or not, if it is the owner's."""
        ...

    async def of_session(self, owner: str, session_id: str) -> Sequence[PendingApproval]:
        """All questions of a session, decided ones too, oldest first."""
        ...

    async def pending(self, owner: str) -> Sequence[PendingApproval]:
        """List the owner's questions for which an answer counts (`PendingApproval.waits`), oldest first."""
        ...
