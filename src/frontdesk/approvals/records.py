"""Records that a decision writes: votes, audit log lines, and the event that resumes the run. Pure."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from frontdesk.models.approval import (
    ApprovalAnswer,
    ApprovalStatus,
    ApprovalVote,
    ApproverClaim,
    ApproverTerms,
    AuditLine,
    PendingApproval,
    Resumption,
    list_values,
    owner_key,
    person_key,
)
from frontdesk.models.base import FrozenStruct
from frontdesk.models.delivery import Delivery, InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.request import ChannelRequest

NewRunId = Callable[[str], str]
"""Makes an id for a run of a channel."""
Resume = Callable[[InboxItem], Awaitable[None]]
OPERATOR_SEAT = "operator"
"""The seat of an operator, who decides alone."""


def get_status(answer: ApprovalAnswer) -> ApprovalStatus:
    return "approved" if answer.approved else "rejected"


def build_vote(
    question: PendingApproval,
    answer: ApprovalAnswer,
    at: float,
    *,
    voter: str,
    identity: ChannelIdentity | None,
    seat: str = "",
    person_keys: Iterable[str] = (),
    claims: Mapping[str, Any] | None = None,
) -> ApprovalVote:
    """Return the vote of a person, by their isolation key and account.

    The person keys and channel claims are stored until the decision, because the vote is counted again then.
    """
    return ApprovalVote(
        owner=question.owner,
        approval_id=question.approval_id,
        voter=voter,
        approved=answer.approved,
        at=at,
        reason=answer.reason,
        identity=identity,
        seat=seat,
        person_keys=tuple(sorted(person_keys)),
        claims=claims or {},
    )


def audit_line(question: PendingApproval, action: str, at: float, by: str = "", reason: str | None = None) -> AuditLine:
    return AuditLine(at=at, owner=question.owner, subject=question.approval_id, action=action, by=by, reason=reason)


def build_caller(vote: ApprovalVote) -> Caller | None:
    return None if vote.identity is None else Caller(identity=vote.identity)


def build_resume_event(
    question: PendingApproval, answer: ApprovalAnswer, requester: Caller, at: float, new_run_id: NewRunId
) -> InboxItem:
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


CLAIM_SEAT = "claim:"
"""The prefix of the seat of a person who votes because of a claim."""


class FindsPeople(Protocol):
    """Finds the accounts of one person."""

    async def find_key(self, identity: ChannelIdentity, /) -> str | None:
        """Return the isolation key of an account, or None."""
        ...

    async def find_person_keys(self, caller: Caller, /) -> frozenset[str]:
        """Return the keys of a person: all linked accounts, the isolation key, and all verified subjects."""
        ...


class Voter(FrozenStruct, frozen=True, kw_only=True):
    """A person who answers a question: the account, its isolation key, and the verified claims."""

    identity: ChannelIdentity
    key: str
    claims: Mapping[str, Any] = {}
    caller: Caller | None = None
    """The caller as the channel has verified them, with the claims of the channel alone."""
    person_keys: frozenset[str] = frozenset()
    """The keys of the person, as `FindsPeople.find_person_keys`."""

    @classmethod
    def of_owner(cls, caller: Caller, owner: str) -> "Voter":
        """Return the caller of a request that was admitted for an owner."""
        return cls(identity=caller.identity, key=owner, claims=caller.claims, caller=caller)


class CountedVote(NamedTuple):
    """A vote, its current validity, and the current keys of its voter."""

    vote: ApprovalVote
    counts: bool
    person_keys: frozenset[str] = frozenset()


async def find_seat(question: PendingApproval, terms: ApproverTerms, voter: Voter, people: FindsPeople) -> str | None:
    """Return the seat in which a person votes, or None if the vote does not count.

    A person matches by the named account, or by another account that is linked with it now.
    """
    if await is_requester(question, voter, people):
        if terms.exclude_requester:
            return None
        if terms.asks_requester:
            return "requester"
    named = (*terms.approvers, *(terms.escalate_to if question.escalated else ()))
    for person in named:
        if person.key == voter.identity.key:
            return seat_name(person)
    for person in named:
        if voter.key and await people.find_key(person) == voter.key:
            return seat_name(person)
    return f"{CLAIM_SEAT}{voter.key}" if has_claim(list_claims(question, terms), voter.claims) else None


def list_claims(question: PendingApproval, terms: ApproverTerms) -> Sequence[ApproverClaim]:
    return (*terms.claims, *(terms.escalate_claims if question.escalated else ()))


async def owns_question(question: PendingApproval, voter: Voter, people: FindsPeople) -> bool:
    """Return True if the question was asked for this account, or for one with the same isolation key."""
    if voter.key == question.owner:
        return True
    asking = None if question.requester is None else question.requester.identity
    if asking is None:
        return False
    return asking.key == voter.identity.key or bool(voter.key and await people.find_key(asking) == voter.key)


async def is_requester(question: PendingApproval, voter: Voter, people: FindsPeople) -> bool:
    """Return True if a voter is the person for whom the run asked, with any account.

    Two accounts with one verified subject belong to one person, even if they are not linked.
    """
    if await owns_question(question, voter, people):
        return True
    if not voter.person_keys.isdisjoint(question.requester_keys):
        return True
    asking = question.requester
    return asking is not None and not voter.person_keys.isdisjoint(await people.find_person_keys(asking))


def seat_name(person: ChannelIdentity) -> str:
    """Return the seat name of an approver. Two votes with one seat count as one."""
    return f"{len(person.channel)}:{person.channel}:{person.native_id}"


def is_decided(terms: ApproverTerms, votes: Sequence[CountedVote], vote: ApprovalVote) -> bool:
    """Return True if a vote decides: a rejection does, and an approval if enough people have approved."""
    if not vote.approved:
        return True
    earlier = [given for given in votes if given.vote.voter != vote.voter]
    return count_people([*earlier, CountedVote(vote, True)]) >= terms.votes


def count_people(votes: Sequence[CountedVote]) -> int:
    """Return the number of people with a valid approval. Votes that share a key belong to one person.

    Votes that do not count still prove which accounts belong together.
    """
    groups: list[tuple[set[str], bool]] = []
    for given in votes:
        keys, approves = set(_list_keys(given)), given.counts and given.vote.approved
        apart: list[tuple[set[str], bool]] = []
        for others, approved in groups:
            if keys.isdisjoint(others):
                apart.append((others, approved))
            else:
                keys, approves = keys | others, approves or approved
        groups = [*apart, (keys, approves)]
    return sum(approves for _, approves in groups)


def _list_keys(given: CountedVote) -> frozenset[str]:
    vote = given.vote
    keys = {owner_key(vote.voter), *vote.person_keys, *given.person_keys}
    if vote.identity is not None:
        keys.add(person_key(vote.identity))
    if vote.seat:
        keys.add(f"seat:{vote.seat}")
    return frozenset(keys)


def has_claim(needed: Sequence[ApproverClaim], claims: Mapping[str, Any]) -> bool:
    return any(
        type(value) is type(held) and value == held
        for one in needed
        for value in one.values
        for held in list_values(claims.get(one.claim))
    )


class UpdatesApprovalMessages(Protocol):
    """Creates the deliveries that update the messages of a question."""

    async def rows(self, question: PendingApproval, by: Caller | None) -> Sequence[Delivery]:
        """Return the update deliveries of a decided question, one for each message."""
        ...

    async def confirmations(self, event: InboxItem, question: PendingApproval) -> Sequence[Delivery]:
        """Return the deliveries that confirm the decision to the event that made it."""
        ...

    async def rows_of_leavers(self, people: Sequence[ChannelIdentity]) -> Sequence[Delivery]:
        """Return the deliveries for asked people who may no longer answer once they are unlinked."""
        ...

    async def wake(self, rows: Sequence[Delivery]) -> None:
        """Send deliveries that are already written."""
        ...

    async def settle_rest(self, question: PendingApproval, by: Caller | None, rows: Sequence[Delivery]) -> None:
        """Update messages that became known while the decision and the other deliveries were written."""
        ...


class NoApprovalMessages:
    """Does nothing. For hosts without channels that support message updates."""

    async def rows(self, question: PendingApproval, by: Caller | None) -> Sequence[Delivery]:
        return ()

    async def confirmations(self, event: InboxItem, question: PendingApproval) -> Sequence[Delivery]:
        return ()

    async def rows_of_leavers(self, people: Sequence[ChannelIdentity]) -> Sequence[Delivery]:
        return ()

    async def wake(self, rows: Sequence[Delivery]) -> None:
        """Do nothing."""

    async def settle_rest(self, question: PendingApproval, by: Caller | None, rows: Sequence[Delivery]) -> None:
        """Do nothing."""
