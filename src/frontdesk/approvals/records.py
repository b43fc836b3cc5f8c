"""The records that a decision writes: votes, lines of the audit log, and the event that goes on with the run. Pure."""

from collections.abc import Awaitable, Callable

from frontdesk.data.approval import (
    ApprovalAnswer,
    ApprovalStatus,
    ApprovalVote,
    AuditLine,
    PendingApproval,
    Resumption,
)
from frontdesk.data.delivery import InboxItem
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.data.request import ChannelRequest

NewRunId = Callable[[str], str]
"""Makes an id for a run of a channel."""
Resume = Callable[[InboxItem], Awaitable[None]]
OPERATOR_SEAT = "operator"
"""The seat of an operator, who decides alone."""


def status_of(answer: ApprovalAnswer) -> ApprovalStatus:
    """Return the status of a question after an answer."""
    return "approved" if answer.approved else "rejected"


def vote_of(
    question: PendingApproval,
    answer: ApprovalAnswer,
    at: float,
    *,
    voter: str,
    identity: ChannelIdentity | None,
    seat: str = "",
) -> ApprovalVote:
    """Return the vote of a person, by their isolation key and account."""
    return ApprovalVote(
        owner=question.owner,
        approval_id=question.approval_id,
        voter=voter,
        approved=answer.approved,
        at=at,
        reason=answer.reason,
        identity=identity,
        seat=seat,
    )


def line_of(question: PendingApproval, action: str, at: float, by: str = "", reason: str | None = None) -> AuditLine:
    """Return a line of the audit log about a question."""
    return AuditLine(at=at, owner=question.owner, subject=question.approval_id, action=action, by=by, reason=reason)


def caller_of(vote: ApprovalVote) -> Caller | None:
    """Return the person who has given a vote, for those who are told of it."""
    return None if vote.identity is None else Caller(identity=vote.identity)


def resuming(
    question: PendingApproval, answer: ApprovalAnswer, requester: Caller, at: float, new_run_id: NewRunId
) -> InboxItem:
    """Make the event that goes on with a run, as the person who asked."""
    request: ChannelRequest = question.resume or ChannelRequest(
        channel=requester.identity.channel, operation="approval"
    )
    # Until the tool begins, the run is begun again by itself; after that it fails as interrupted.
    request = request.replace(approvals=(answer,), background=True, on_interrupt="restart", identity=requester.identity)
    name = f"decided:{question.approval_id}"
    return InboxItem(
        channel=request.channel,
        event_id=name,
        # A queue of its own: it waits for its session, and for nothing else.
        conversation_id=name,
        caller=requester,
        request=request,
        received_at=at,
        payload=Resumption(approval_id=question.approval_id, owner=question.owner),
        run_id=new_run_id(request.channel),
        kind="resume",
    )
