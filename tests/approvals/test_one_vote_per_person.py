"""One person has one vote, with whichever accounts; and a vote counts only while its voter holds the right."""

import pytest

from frontdesk.models.identity import Caller
from tests.approvals.committee import Committee, account

BOB, BOB_AGAIN, KIM, EVE = (account(name) for name in ("bob", "bob-again", "kim", "eve"))


async def test_one_person_votes_twice_by_unlinking_and_linking_a_second_account_with_the_same_subject() -> None:
    committee = Committee()
    await committee.ask()
    await committee.link(BOB, "s|bob", "finance")
    assert await committee.vote(BOB) == "needs_more"
    await committee.unlink(BOB)
    await committee.link(BOB_AGAIN, "s|bob", "finance")
    assert await committee.vote(BOB_AGAIN) == "needs_more"
    assert (await committee.get_approval()).status == "pending"
    await committee.link(KIM, "s|kim", "finance")
    assert await committee.vote(KIM) == "recorded"


async def test_one_person_votes_twice_by_name_and_by_claim() -> None:
    committee = Committee()
    await committee.ask(approvers=(BOB,))
    await committee.link(BOB, "s|bob")
    assert await committee.vote(BOB) == "needs_more"
    await committee.unlink(BOB)
    await committee.link(BOB_AGAIN, "s|bob", "finance")
    assert await committee.vote(BOB_AGAIN) == "needs_more"


async def test_one_person_votes_twice_by_two_named_accounts_that_are_unlinked_in_between() -> None:
    committee = Committee()
    await committee.ask(approvers=(BOB, BOB_AGAIN))
    await committee.link(BOB, "s|bob")
    await committee.link(BOB_AGAIN, "s|bob")
    assert await committee.vote(BOB) == "needs_more"
    await committee.unlink(BOB_AGAIN)
    assert await committee.vote(BOB_AGAIN) == "needs_more"


async def test_two_accounts_that_are_linked_after_they_have_voted_are_one_person() -> None:
    committee = Committee()
    await committee.ask(approvers=(BOB, BOB_AGAIN, KIM), votes=3)
    assert await committee.vote(BOB) == await committee.vote(BOB_AGAIN) == "needs_more"
    await committee.link(BOB, "s|bob")
    await committee.link(BOB_AGAIN, "s|bob")
    assert await committee.vote(KIM) == "needs_more"


async def test_one_person_votes_twice_with_a_token_on_two_channels() -> None:
    committee = Committee()
    await committee.ask()
    for channel in ("invocations", "responses"):
        assert await committee.vote(account("bob", channel), groups=["finance"]) == "needs_more"
    assert await committee.vote(account("kim", "responses"), groups=["finance"]) == "recorded"


async def test_one_person_votes_twice_with_a_link_and_with_a_token_of_the_same_subject() -> None:
    # Without `link_verified_claims` the host does not link the account of the token.
    committee = Committee(link_verified_claims=False)
    await committee.ask()
    await committee.link(BOB, "s|bob", "finance")
    assert await committee.vote(BOB) == "needs_more"
    assert await committee.vote(BOB_AGAIN, groups=["finance"], sub="s|bob") == "needs_more"
    assert await committee.vote(KIM, groups=["finance"], sub="s|kim") == "recorded"


async def test_a_second_vote_keeps_what_the_first_has_proved_about_the_person() -> None:
    committee = Committee()
    await committee.ask(approvers=(BOB,))
    await committee.link(BOB, "s|bob")
    assert await committee.vote(BOB) == "needs_more"
    await committee.unlink(BOB)
    assert await committee.vote(BOB) == "needs_more"
    await committee.link(BOB_AGAIN, "s|bob", "finance")
    assert await committee.vote(BOB_AGAIN) == "needs_more"


@pytest.mark.parametrize("has_link", [True, False])
async def test_an_excluded_requester_votes_with_a_second_account_of_the_same_subject(has_link: bool) -> None:
    committee = Committee(link_verified_claims=False)
    ada, ada_again = account("ada"), account("ada-again", "responses")
    if has_link:
        requester = Caller(identity=ada)
        await committee.link(ada, "s|ada")
    else:
        requester = Caller(identity=ada, claims={"sub": "s|ada"}, claim_source="badges")
    await committee.ask(requester=requester, votes=1, exclude_requester=True)
    if has_link:
        assert await committee.vote(ada_again, groups=["finance"], sub="s|ada") == "not_yours"
    else:
        await committee.link(ada_again, "s|ada", "finance")
        assert await committee.vote(ada_again) == "not_yours"
    assert await committee.vote(KIM, groups=["finance"], sub="s|kim") == "recorded"


async def test_a_requester_with_two_accounts_of_one_subject_may_vote_unless_excluded() -> None:
    committee = Committee(link_verified_claims=False)
    await committee.link(account("ada"), "s|ada")
    await committee.ask(requester=Caller(identity=account("ada")), votes=1)
    assert await committee.vote(account("ada-again"), groups=["finance"], sub="s|ada") == "recorded"


@pytest.mark.parametrize("by", ["person", "operator"])
async def test_a_vote_counts_after_its_voter_has_lost_the_link(by: str) -> None:
    committee = Committee()
    await committee.ask()
    for person in (BOB, KIM, EVE):
        await committee.link(person, f"s|{person.native_id}", "finance")
    assert await committee.vote(BOB) == "needs_more"
    await (committee.revoke(BOB) if by == "operator" else committee.unlink(BOB))
    assert await committee.vote(KIM) == "needs_more"
    assert await committee.vote(EVE) == "recorded"


async def test_a_vote_counts_after_the_claim_of_its_voter_has_changed() -> None:
    committee = Committee()
    await committee.ask()
    for person in (BOB, KIM):
        await committee.link(person, f"s|{person.native_id}", "finance")
    assert await committee.vote(BOB) == "needs_more"
    await committee.link(BOB, "s|bob", "sales")
    assert await committee.vote(KIM) == "needs_more"
    # Who holds the right again need not vote again.
    await committee.link(BOB, "s|bob", "finance")
    assert await committee.vote(KIM) == "recorded"


async def test_a_vote_of_a_linked_account_counts_after_the_named_account_was_unlinked() -> None:
    committee = Committee()
    await committee.ask(approvers=(BOB, KIM), claims=())
    await committee.link(BOB, "s|bob")
    await committee.link(BOB_AGAIN, "s|bob")
    assert await committee.vote(BOB_AGAIN) == "needs_more"
    await committee.unlink(BOB_AGAIN)
    assert await committee.vote(KIM) == "needs_more"
    assert await committee.vote(BOB) == "recorded"


async def test_a_vote_of_another_account_replaces_one_that_does_not_count_any_more() -> None:
    committee = Committee()
    await committee.ask(approvers=(BOB,))
    await committee.link(BOB, "s|bob")
    await committee.link(BOB_AGAIN, "s|bob", "finance")
    assert await committee.vote(BOB_AGAIN) == "needs_more"
    await committee.link(BOB_AGAIN, "s|bob", "sales")
    assert await committee.vote(BOB) == "needs_more"
    await committee.link(KIM, "s|kim", "finance")
    assert await committee.vote(KIM) == "recorded"


class TestVotesOfTheVersionBefore:
    """They have neither the keys of the person nor claims: the account is looked up at the decision."""

    async def store_votes(self, committee: Committee) -> None:
        (vote,) = await committee.votes()
        await committee.store_old_vote(vote)

    async def test_a_linked_voter_counts(self) -> None:
        committee = Committee()
        await committee.ask()
        await committee.link(BOB, "s|bob", "finance")
        await committee.vote(BOB)
        await self.store_votes(committee)
        await committee.link(KIM, "s|kim", "finance")
        assert await committee.vote(KIM) == "recorded"

    async def test_an_unlinked_voter_does_not_count(self) -> None:
        committee = Committee()
        await committee.ask()
        await committee.link(BOB, "s|bob", "finance")
        await committee.vote(BOB)
        await self.store_votes(committee)
        await committee.unlink(BOB)
        await committee.link(KIM, "s|kim", "finance")
        assert await committee.vote(KIM) == "needs_more"

    async def test_a_named_voter_counts(self) -> None:
        committee = Committee()
        await committee.ask(approvers=(BOB, KIM), claims=())
        await committee.vote(BOB)
        await self.store_votes(committee)
        assert await committee.vote(KIM) == "recorded"

    async def test_a_voter_with_a_token_who_was_never_linked_counts(self) -> None:
        committee = Committee()
        await committee.ask()
        await committee.vote(BOB, groups=["finance"])
        await self.store_votes(committee)
        assert await committee.vote(KIM, groups=["finance"]) == "recorded"

    async def test_a_voter_who_votes_again_is_stored_with_all_keys_and_without_a_second_audit_line(self) -> None:
        committee = Committee()
        await committee.ask()
        await committee.link(BOB, "s|bob", "finance")
        await committee.vote(BOB)
        (before,) = await committee.votes()
        await self.store_votes(committee)
        assert await committee.vote(BOB) == "needs_more"
        assert await committee.votes() == [before]
        assert await committee.actions() == ["voted"]
