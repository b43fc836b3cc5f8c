"""Whose votes count, and when they are enough: tables without a store."""

from typing import Any

import pytest

from frontdesk.approvals.records import CountedVote, Voter, build_vote, find_seat, is_decided
from frontdesk.models.approval import ApprovalAnswer, ApprovalVote, ApproverClaim, ApproverTerms, person_key
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk_testing.store_samples import NOW, question

ADA = ChannelIdentity(channel="web", native_id="ada")
BOB, EVE, KIM = (ChannelIdentity(channel="telegram", native_id=name) for name in ("bob", "eve", "kim"))
BOB_AT_HOME = ChannelIdentity(channel="web", native_id="bob")
ADA_AT_HOME = ChannelIdentity(channel="telegram", native_id="ada")
FAMILIES = {"key-ada": (ADA, ADA_AT_HOME), "key-bob": (BOB, BOB_AT_HOME), "key-eve": (EVE,)}
KEYS = {identity.key: key for key, family in FAMILIES.items() for identity in family}
ASKED = question(owner="key-ada", requester=Caller(identity=ADA))


class Families:
    """People, whose accounts are all linked."""

    async def find_key(self, identity: ChannelIdentity, /) -> str | None:
        return KEYS.get(identity.key)

    async def find_person_keys(self, caller: Caller, /) -> frozenset[str]:
        return frozenset({person_key(caller.identity)})


async def seat(terms: ApproverTerms, who: ChannelIdentity, *, escalated: bool = False, **claims: Any) -> str | None:
    voter = Voter(identity=who, key=KEYS.get(who.key, ""), claims=claims)
    return await find_seat(ASKED.replace(rule=terms, escalated=escalated), terms, voter, Families())


@pytest.mark.parametrize(
    ("terms", "who", "counts"),
    [
        (ApproverTerms(approvers=(BOB,)), BOB, True),
        (ApproverTerms(approvers=(BOB,)), BOB_AT_HOME, True),
        (ApproverTerms(approvers=(BOB,)), EVE, False),
        (ApproverTerms(approvers=(BOB,)), ADA, False),
        (ApproverTerms(approvers=(BOB,), asks_requester=True), ADA, True),
        (ApproverTerms(approvers=(BOB,), asks_requester=True), ADA_AT_HOME, True),
        (ApproverTerms(approvers=(BOB, ADA_AT_HOME), exclude_requester=True), ADA_AT_HOME, False),
        (ApproverTerms(approvers=(BOB, ADA_AT_HOME)), ADA_AT_HOME, True),
        # Nobody knows them yet, and they have no key: an empty one is nobody's.
        (ApproverTerms(approvers=(KIM,)), KIM, True),
        (ApproverTerms(approvers=(KIM,)), ChannelIdentity(channel="web", native_id="kim"), False),
        (ApproverTerms(approvers=(KIM,)), ChannelIdentity(channel="telegram", native_id="Kim"), False),
        (ApproverTerms(approvers=(BOB,), escalate_to=(EVE,)), EVE, False),
    ],
)
async def test_a_vote_counts_for_those_who_are_named_and_their_linked_accounts(
    terms: ApproverTerms, who: ChannelIdentity, counts: bool
) -> None:
    assert (await seat(terms, who) is not None) is counts


async def test_those_to_whom_it_escalates_vote_once_it_has() -> None:
    terms = ApproverTerms(approvers=(BOB,), escalate_to=(EVE,))
    assert await seat(terms, EVE, escalated=True) is not None


@pytest.mark.parametrize(
    ("claims", "counts"),
    [
        ({"groups": ["staff", "finance"]}, True),
        ({"groups": "finance"}, True),
        ({"groups": ["staff"]}, False),
        ({"groups": "financed"}, False),
        ({"roles": ["finance"]}, False),
        ({"level": 1}, True),
        ({"level": True}, False),
        ({}, False),
    ],
)
async def test_a_claim_counts_by_its_value_and_type(claims: dict[str, Any], counts: bool) -> None:
    needed = (ApproverClaim(claim="groups", values=("finance",)), ApproverClaim(claim="level", values=(1,)))
    assert (await seat(ApproverTerms(approvers=(BOB,), claims=needed), EVE, **claims) is not None) is counts


def vote(voter: str, name: str, *, approved: bool = True) -> ApprovalVote:
    answer = ApprovalAnswer(approval_id="apr_1", approved=approved)
    account = ChannelIdentity(channel="telegram", native_id=voter)
    return build_vote(ASKED, answer, NOW, voter=voter, identity=account, seat=name)


@pytest.mark.parametrize(
    ("needed", "before", "last", "decided"),
    [
        (1, [], vote("a", "1"), True),
        (2, [], vote("a", "1"), False),
        (2, [vote("a", "1")], vote("b", "2"), True),
        (2, [vote("a", "1")], vote("a", "1"), False),
        # One account of a person after another; and one account before and after it was unlinked.
        (2, [vote("a", "1")], vote("a", "2"), False),
        (2, [vote("a", "1")], vote("b", "1"), False),
        (2, [vote("a", "1", approved=False)], vote("b", "2"), False),
        (3, [vote("a", "1"), vote("b", "2")], vote("c", "3"), True),
        (3, [vote("a", "1")], vote("c", "3", approved=False), True),
    ],
)
def test_enough_different_people_decide(
    needed: int, before: list[ApprovalVote], last: ApprovalVote, decided: bool
) -> None:
    given = [CountedVote(vote, counts=True) for vote in before]
    assert is_decided(ApproverTerms(votes=needed), given, last) is decided
