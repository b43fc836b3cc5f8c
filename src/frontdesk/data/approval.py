"""Questions that a human has to answer before a tool runs, and the answers."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from frontdesk.data.approver_keys import claim_key, person_key
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.data.noun import Noun, Value

ANSWERED = "approval_answered"
"""The code of the refusal of a second answer."""
EXPIRED = "expired"
"""The reason of a question that is a no because nobody answered it in time."""
ApprovalStatus = Literal["pending", "approved", "rejected", "cancelled"]
Outcome = Literal["recorded", "needs_more", "late", "not_yours", "changed"]


class ApproverClaim(Noun, frozen=True, kw_only=True):
    """A verified claim whose holders may answer a question."""

    claim: str
    values: tuple[str | int | bool, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys under which people with the claim are found."""
        return tuple(key for value in self.values if (key := claim_key(self.claim, value)) is not None)


class ApproverTerms(Noun, frozen=True, kw_only=True):
    """The people who may answer one question, as its rule named them when it was asked.

    Hosts of earlier versions can't read a question with terms, and leave it alone.
    """

    approvers: tuple[ChannelIdentity, ...] = ()
    """The people who are asked, each on the channel of the identity."""
    claims: tuple[ApproverClaim, ...] = ()
    """The claims of others who may answer."""
    asked: tuple[ChannelIdentity, ...] = ()
    """The people who are asked because they have one of the claims; their vote counts while they have it."""
    asks_requester: bool = False
    """Whether the requester is asked too, where the run was asked for."""
    exclude_requester: bool = False
    """Whether no vote of the requester counts, on whichever channel."""
    votes: int = 1
    """The number of people who have to approve; one who rejects is enough."""
    escalate_at: float | None = None
    """When others are asked too, if it still waits."""
    escalate_to: tuple[ChannelIdentity, ...] = ()
    escalate_claims: tuple[ApproverClaim, ...] = ()
    """The claims of others who may answer from then on."""
    escalate_asked: tuple[ChannelIdentity, ...] = ()
    """The people who are asked then because they have one of those."""
    names: tuple[str, ...] = ()
    """The names by which the requester is told whom it waits for."""
    shows_arguments: bool = True
    """Whether the arguments are shown in the group in which the run was asked for."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys under which the question is found for those who may answer it."""
        people = (*self.approvers, *self.asked, *self.escalate_to, *self.escalate_asked)
        claims = [key for needed in (*self.claims, *self.escalate_claims) for key in needed.keys]
        return tuple(dict.fromkeys([*map(person_key, people), *claims]))


def named_people(people: Sequence[ChannelIdentity]) -> str:
    """Return people as the audit log names them."""
    return ", ".join(f"{person.native_id} on {person.channel}" for person in people)


ApprovalRule = Literal["requester"] | ApproverTerms
"""The people who decide: the person for whom the run asked, or those of the terms."""


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
    """When it is a no if nobody has answered it."""
    status: ApprovalStatus = "pending"
    decided_at: float | None = None
    reason: str | None = None
    attempt: str | None = None
    """The attempt that may act on the answer; a later one may take it over until something was done with it."""
    trace: str | None = None
    """The trace of the run that asked, as the telemetry has given it."""
    begun: bool = True
    """False from an answer until it is acted on, which happens at most once."""
    escalated: bool = False
    """Whether those were asked to whom it escalates."""
    voted: int = 0
    """The number of votes that did not decide it."""
    resumed_by: str | None = None
    """The run that goes on after a decision, if that is a run of the host's own."""

    @property
    def terms(self) -> ApproverTerms | None:
        """Return the people who decide; `None` if it is the requester alone."""
        return None if self.rule == "requester" else self.rule

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

    def is_to_escalate(self, now: float) -> bool:
        """Tell whether others are to be asked about it by a time, and were not."""
        at = None if self.terms is None else self.terms.escalate_at
        return self.status == "pending" and not self.escalated and at is not None and at <= now


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
    identity: ChannelIdentity | None = None
    """The account with which it was given; `None` in votes of earlier versions."""
    seat: str = ""
    """The approver of the terms as whom the person voted; two votes of one seat count once."""


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


class QuestionView(Value, frozen=True, kw_only=True):
    """A question as an approver is asked it."""

    approval: PendingApproval
    asker: str
    """The name of the person for whom the run asks, or their id on the channel."""
    channel: str
    """The channel on which the run was asked for."""
    group: bool = False
    """Whether that was in a group."""
    locale: str | None = None
    """The language of the approver, if the platform has said it."""


class WaitingPage(Value, frozen=True, kw_only=True):
    """Some of the questions that wait for one approver."""

    questions: tuple[QuestionView, ...] = ()
    after: str | None = None
    """The id after which the next page begins; `None` if there is none."""


class AuditLine(Value, frozen=True, kw_only=True):
    """One line of the audit log, which only grows."""

    at: float
    owner: str
    subject: str
    """The id of what it is about, such as an approval."""
    action: str
    """The action: for an approval `asked`, `voted`, `escalated`, `approved`, `rejected`, `cancelled`, `expired`,
    `failed` for a decision that nothing could be done with, or an operator's `read` and `exported`."""
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
