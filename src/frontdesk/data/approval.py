"""Questions that a human has to answer before a tool runs, and the answers."""

from collections.abc import Mapping
from typing import Any, Literal

from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.data.noun import Noun, Value

ANSWERED = "approval_answered"
"""The code of the refusal of a second answer."""
EXPIRED = "expired"
"""The reason of a question that was cancelled because nobody answered it in time."""
ApprovalStatus = Literal["pending", "approved", "rejected", "cancelled"]
ApprovalRule = Literal["requester"]
"""The person who decides: the one for whom the run asked."""
Outcome = Literal["recorded", "needs_more", "late", "not_yours", "changed"]


class ApprovalAnswer(Noun, frozen=True, kw_only=True):
    """The answer of a human to one question."""

    approval_id: str
    approved: bool
    reason: str | None = None


class PendingApproval(Noun, frozen=True, kw_only=True):
    """One tool call that waits for a human; bound to its session, its owner, the call and its arguments."""

    approval_id: str
    """The id that is shown and answered: the host's own. In records of earlier versions it is the target's."""
    owner: str
    session_id: str
    run_id: str
    tool: str
    digest: str
    """The hash of the call's name and arguments."""
    request: Any
    """The framework's approval request, as the target has made it, with the target's own id."""
    created_at: float
    target_request_id: str | None = None
    """The id by which the target knows the question; `None` in records of earlier versions."""
    requester: Caller | None = None
    """The caller whose run asked, as whom a decided call runs."""
    resume: Any = None
    """The `ChannelRequest` that goes on with the run once the question is decided, without the answer."""
    schema_digest: str | None = None
    """The hash of the tool's parameters when it was asked; `None` if the host can't see them."""
    rule: ApprovalRule = "requester"
    expires_at: float | None = None
    """When the question is cancelled if nobody has answered it."""
    status: ApprovalStatus = "pending"
    decided_at: float | None = None
    reason: str | None = None
    attempt: str | None = None
    """The attempt that may act on the answer; a later one may take it over until something was done with it."""
    trace: str | None = None
    """The trace of the run that asked, as the telemetry has given it."""
    begun: bool = True
    """False from an answer until it is acted on, which happens at most once."""

    @property
    def target_id(self) -> str:
        """Return the id by which the target knows the question."""
        return self.approval_id if self.target_request_id is None else self.target_request_id

    @property
    def waits(self) -> bool:
        """Tell whether an answer counts: none was given yet, or it was not acted on."""
        return self.status == "pending" or not self.begun

    def is_expired(self, now: float) -> bool:
        """Tell whether it was to be answered before a time, and was not."""
        return self.status == "pending" and self.expires_at is not None and self.expires_at <= now


class ApprovalVote(Noun, frozen=True, kw_only=True):
    """The vote of one person about one question."""

    owner: str
    """The owner of the question."""
    approval_id: str
    voter: str
    """The isolation key of the person."""
    approved: bool
    at: float
    reason: str | None = None


class ApprovalPlace(Noun, frozen=True, kw_only=True):
    """A message on a platform that shows a question, to be settled once the question is decided."""

    owner: str
    approval_id: str
    channel: str
    place: str
    """The destination within the channel, as that of its delivery."""
    handle: str
    """The platform's receipt of the message."""
    identity: ChannelIdentity
    conversation_id: str | None = None
    reference: Mapping[str, Any] = {}
    queue: str = ""
    at: float


class AuditLine(Value, frozen=True, kw_only=True):
    """One line of the audit log, which only grows."""

    at: float
    owner: str
    subject: str
    """The id of what it is about, such as an approval."""
    action: str
    """The action: for an approval `approved`, `rejected`, `cancelled` or `expired`."""
    by: str = ""
    """The isolation key of the person who did it; empty for the host itself."""
    reason: str | None = None
    number: int = 0
    """Its place in the log, given by the store."""


class Resumption(Noun, frozen=True, kw_only=True):
    """The payload of an event of the host's own, which goes on with a run after a decision."""

    approval_id: str
    owner: str


class Decision(Value, frozen=True, kw_only=True):
    """The outcome of an attempt to decide a question."""

    outcome: Outcome
    """`recorded`, or why nothing was: it was decided before or has expired (`late`), it is not the caller's
    (`not_yours`), or the call is no longer the one that was shown (`changed`). `needs_more` is a vote that was
    recorded and does not decide yet."""
    approval: PendingApproval | None = None
    """The question as it is afterwards; none if it is not the caller's."""
    run_id: str | None = None
    """The run that goes on with the decision."""
