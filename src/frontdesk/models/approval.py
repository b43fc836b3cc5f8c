"""Approvals, their votes and decisions, approver keys, and audit log lines."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, cast

from frontdesk.models.base import FrozenStruct, StoredRecord
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.person_name import PersonName

MAX_CLAIMS = 200
"""The number of claims of a person that are looked up; of more, the first count."""
_KINDS: Mapping[type[Any], str] = {bool: "bool", int: "int", str: "str"}
# True equals 1, and a claim that is true is not one that is 1.


def person_key(identity: ChannelIdentity) -> str:
    return f"person:{len(identity.channel)}:{identity.channel}:{identity.native_id}"


def owner_key(isolation_key: str) -> str:
    return f"key:{isolation_key}"


def subject_key(linker: str, subject: str) -> str:
    """Return the key of a subject verified by a linker."""
    return f"subject:{len(linker)}:{linker}:{subject}"


def principal_key(auth: str, principal: str) -> str:
    """Return the key of a principal verified by an authenticator."""
    return f"principal:{len(auth)}:{auth}:{principal}"


def claim_key(claim: str, value: Any) -> str | None:
    """Return the key of a claim with one value, or `None` if rules do not support such a value."""
    kind = _KINDS.get(cast("type[Any]", type(value)))
    return None if kind is None else f"claim:{len(claim)}:{claim}:{kind}:{value}"


def claim_keys(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of all claims of a person, one for each value of a list."""
    return tuple(islice(dict.fromkeys(_keys(claims)), MAX_CLAIMS))


def _keys(claims: Mapping[str, Any]) -> Iterator[str]:
    for claim, given in claims.items():
        for value in list_values(given):
            if (key := claim_key(claim, value)) is not None:
                yield key


def list_values(given: Any) -> Collection[Any]:
    return cast("Collection[Any]", given) if isinstance(given, (list, tuple, set, frozenset)) else (given,)


ANSWERED = "approval_answered"
"""The code of the refusal of a second answer."""
EXPIRED = "expired"
"""The reason of a question that is a no because nobody answered it in time."""
ApprovalStatus = Literal["pending", "approved", "rejected", "cancelled"]
Outcome = Literal["recorded", "needs_more", "late", "not_yours", "changed"]


class ApproverClaim(StoredRecord, frozen=True, kw_only=True):
    """A verified claim whose holders may decide an approval."""

    claim: str
    values: tuple[str | int | bool, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the lookup keys of people with the claim."""
        return tuple(key for value in self.values if (key := claim_key(self.claim, value)) is not None)


class ApproverTerms(StoredRecord, frozen=True, kw_only=True):
    """The approvers of one approval, as its rule named them when it was requested.

    Hosts of earlier versions cannot read an approval with terms, and ignore it.
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
    people: tuple[PersonName, ...] = ()
    """The same people and roles with account and channel; empty in records of earlier versions."""
    shows_arguments: bool = True
    """Whether the arguments are shown in the group in which the run was asked for."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys under which approvers find the approval."""
        people = (*self.approvers, *self.asked, *self.escalate_to, *self.escalate_asked)
        claims = [key for needed in (*self.claims, *self.escalate_claims) for key in needed.keys]
        return tuple(dict.fromkeys([*map(person_key, people), *claims]))


def name_people(people: Sequence[ChannelIdentity]) -> str:
    return ", ".join(f"{person.native_id} on {person.channel}" for person in people)


ApprovalRule = Literal["requester"] | ApproverTerms
"""The people who decide: the person for whom the run asked, or those of the terms."""


class ApprovalAnswer(StoredRecord, frozen=True, kw_only=True):
    """A person's answer to one approval."""

    approval_id: str
    approved: bool
    reason: str | None = None


class PendingApproval(StoredRecord, frozen=True, kw_only=True):
    """One tool call that requires approval, bound to its session, its owner, the call and its arguments."""

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
    """The number of writes of votes. A writer that has read another number is refused."""
    resumed_by: str | None = None
    """The run that goes on after a decision, if that is a run of the host's own."""
    requester_keys: tuple[str, ...] = ()
    """The keys of the requester when the call was asked about: accounts, isolation keys and verified subjects.

    Empty in records of earlier versions.
    """
    requester_name: PersonName | None = None
    """The requester as others are shown them; `None` in records of earlier versions."""
    root_run_id: str | None = None
    """The first run of the chain in which it was asked. None if that is the run itself."""
    decided_by: PersonName | None = None
    """The person who has decided it, as others are shown them. The host sets it for display; it is not stored."""

    @property
    def terms(self) -> ApproverTerms | None:
        """Return the approver terms, or `None` if the requester alone decides."""
        return None if self.rule == "requester" else self.rule

    @property
    def target_id(self) -> str:
        return self.approval_id if self.target_request_id is None else self.target_request_id

    @property
    def chain_id(self) -> str:
        """Return the id of the chain in which it was asked."""
        return self.root_run_id or self.run_id

    @property
    def waits(self) -> bool:
        """Return True if an answer counts: none was given yet, or it was not acted on."""
        return self.status == "pending" or not self.begun

    def is_expired(self, now: float) -> bool:
        """Return True if the deadline passed without an answer."""
        return self.status == "pending" and self.expires_at is not None and self.expires_at <= now

    def is_to_escalate(self, now: float) -> bool:
        """Return True if escalation is due and has not happened."""
        at = None if self.terms is None else self.terms.escalate_at
        return self.status == "pending" and not self.escalated and at is not None and at <= now


class ApprovalVote(StoredRecord, frozen=True, kw_only=True):
    """One person's vote on one approval."""

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
    person_keys: tuple[str, ...] = ()
    """The keys of the person at the vote: accounts, isolation keys and verified subjects.

    Two votes that share a key are votes of one person. Empty in votes of earlier versions.
    """
    claims: Mapping[str, Any] = {}
    """The claims that the channel has verified with the vote. Claims of a link are read again at the decision."""


class ApprovalPlace(StoredRecord, frozen=True, kw_only=True):
    """A platform message that shows an approval, to be updated once the approval is decided."""

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


class QuestionView(FrozenStruct, frozen=True, kw_only=True):
    """An approval as displayed to an approver."""

    approval: PendingApproval
    asker: str
    """The name of the person for whom the run asks, or their id on the channel."""
    channel: str
    """The channel on which the run was asked for."""
    group: bool = False
    """Whether that was in a group."""
    own: bool = False
    """Whether the person who is shown it has asked it."""
    locale: str | None = None
    """The language of the approver, if the platform has said it."""
    requester: PersonName | None = None
    """The person for whom the run asks, with their account."""


class WaitingPage(FrozenStruct, frozen=True, kw_only=True):
    """A page of the approvals that wait for one approver."""

    questions: tuple[QuestionView, ...] = ()
    after: str | None = None
    """The id after which the next page begins; `None` if there is none."""


class AuditLine(FrozenStruct, frozen=True, kw_only=True):
    """One line of the audit log, which is append-only."""

    at: float
    owner: str
    subject: str
    """The id of what it is about, such as an approval."""
    action: str
    """The action: for an approval `asked`, `voted`, `escalated`, `approved`, `rejected`, `cancelled`, `expired`,
    `failed` for a decision that nothing could be done with, or an operator's `read` and `exported`. For a link
    `linked` and `unlinked`, for a run `feedback`."""
    by: str = ""
    """The isolation key of the person who did it; empty for the host itself."""
    reason: str | None = None
    number: int = 0
    """Its place in the log, given by the store."""


class Resumption(StoredRecord, frozen=True, kw_only=True):
    """The payload of an internal event that resumes a run after a decision."""

    approval_id: str
    owner: str


class Decision(FrozenStruct, frozen=True, kw_only=True):
    """The outcome of an attempt to decide an approval."""

    outcome: Outcome
    """`recorded`, or why nothing was: it was decided before or has expired (`late`), it is not the caller's
    (`not_yours`), or the call is no longer the one that was shown (`changed`). `needs_more` is a vote that was
    recorded and does not decide yet."""
    approval: PendingApproval | None = None
    """The question as it is afterwards; none if it is not the caller's."""
    run_id: str | None = None
    """The run that goes on with the decision."""
