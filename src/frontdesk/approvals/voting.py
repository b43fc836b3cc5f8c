"""Decides whose votes about a question count, and whether they are enough. Pure, but for the look-up of people."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from frontdesk.data.approval import ApprovalVote, ApproverClaim, ApproverTerms, PendingApproval
from frontdesk.data.approver_keys import held_values
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.noun import Value

FindKey = Callable[[ChannelIdentity], Awaitable[str | None]]
"""Returns the isolation key of an account, if it has one."""


class Voter(Value, frozen=True, kw_only=True):
    """A person who answers a question: the account, its isolation key, and the claims that were proved."""

    identity: ChannelIdentity
    key: str
    claims: Mapping[str, Any] = {}


async def seat_of(question: PendingApproval, terms: ApproverTerms, voter: Voter, find_key: FindKey) -> str | None:
    """Return the approver of the terms as whom a person votes; `None` if their vote does not count.

    A person is known by the account that is named, or by another that is linked with it now.
    """
    if await is_requester(question, voter, find_key):
        if terms.exclude_requester:
            return None
        if terms.asks_requester:
            return "requester"
    named = (*terms.approvers, *(terms.escalate_to if question.escalated else ()))
    for person in named:
        if person.key == voter.identity.key:
            return seat_name(person)
    for person in named:
        if await find_key(person) == voter.key:
            return seat_name(person)
    claims = (*terms.claims, *(terms.escalate_claims if question.escalated else ()))
    return f"claim:{voter.key}" if has_claim(claims, voter.claims) else None


async def is_requester(question: PendingApproval, voter: Voter, find_key: FindKey) -> bool:
    """Tell whether a voter is the person for whom the run asked, with whichever account."""
    if voter.key == question.owner:
        return True
    asking = None if question.requester is None else question.requester.identity
    if asking is None:
        return False
    return asking.key == voter.identity.key or await find_key(asking) == voter.key


def seat_name(person: ChannelIdentity) -> str:
    """Return the name of an approver's seat, by which two votes are known as one."""
    return f"{len(person.channel)}:{person.channel}:{person.native_id}"


def is_decided(terms: ApproverTerms, votes: Sequence[ApprovalVote], vote: ApprovalVote) -> bool:
    """Tell whether a vote decides, after others: a no does, and a yes if enough people have approved."""
    if not vote.approved:
        return True
    approving = [given for given in votes if given.approved and given.voter != vote.voter] + [vote]
    # A person who was unlinked meanwhile has another key, and the same seat.
    seats = {given.seat or given.voter for given in approving}
    return min(len(seats), len({given.voter for given in approving})) >= terms.votes


def has_claim(needed: Sequence[ApproverClaim], claims: Mapping[str, Any]) -> bool:
    """Tell whether somebody has one of the claims that are needed."""
    return any(
        type(value) is type(held) and value == held
        for one in needed
        for value in one.values
        for held in held_values(claims.get(one.claim))
    )
