"""Questions that a human has to answer before a tool runs."""

from typing import Any, Literal

from frontdesk.data.noun import Noun

ANSWERED = "approval_answered"
"""The code of the refusal of a second answer."""
ApprovalStatus = Literal["pending", "approved", "rejected", "cancelled"]


class ApprovalAnswer(Noun, frozen=True, kw_only=True):
    """The answer of a human to one question."""

    approval_id: str
    approved: bool
    reason: str | None = None


class PendingApproval(Noun, frozen=True, kw_only=True):
    """One tool call that waits for a human; bound to its session, its owner, the call and its arguments."""

    approval_id: str
    owner: str
    session_id: str
    run_id: str
    tool: str
    digest: str
    """The hash of the call's name and arguments."""
    request: Any
    """The framework's approval request, as it was shown."""
    created_at: float
    status: ApprovalStatus = "pending"
    decided_at: float | None = None
    reason: str | None = None
    attempt: str | None = None
    """The attempt that may act on the answer; a later one may take it over until something was done with it."""
    begun: bool = True
    """False from an answer until it is acted on, which happens at most once."""

    @property
    def waits(self) -> bool:
        """Tell whether an answer counts: none was given yet, or it was not acted on."""
        return self.status == "pending" or not self.begun
