"""Which channels may share what is known of a person."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.access.policy import (
    AllowAllLinks,
    DenyAllLinks,
    ExplicitAllowList,
    SameConfidentialityTierOnly,
    TierPolicy,
)
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import LinkRefusedError, UnavailableError
from frontdesk.interfaces.access import LinkOperation, LinkPolicyContext
from tests.examples import examples

TIERS = {"teams": "internal", "mail": "internal", "telegram": "public", "web": None, "page": None}
OPERATIONS: list[LinkOperation] = ["link", "deliver"]


def build_policy(policy: Any, tiers: dict[str, str | None] | None = None) -> TierPolicy:
    found = TIERS if tiers is None else tiers
    return TierPolicy(policy, {name: InvocationsChannel(name=name, confidentiality_tier=found[name]) for name in found})


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("policy", [None, AllowAllLinks()])
async def test_all_may_share_by_default(policy: Any, operation: LinkOperation) -> None:
    ties = build_policy(policy)
    assert all([await ties.allows(operation, *pair) for pair in product(TIERS, TIERS)])


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_only_channels_of_the_same_tier(operation: LinkOperation) -> None:
    ties = build_policy(SameConfidentialityTierOnly())
    for source, destination in product(TIERS, TIERS):
        assert await ties.allows(operation, source, destination) is (TIERS[source] == TIERS[destination])


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_only_the_pairs_that_are_listed(operation: LinkOperation) -> None:
    ties = build_policy(ExplicitAllowList([("teams", "mail"), ("web", "page")]))
    listed = [{"teams", "mail"}, {"web", "page"}]
    for source, destination in product(TIERS, TIERS):
        expected = source == destination or {source, destination} in listed
        assert await ties.allows(operation, source, destination) is expected


async def test_pairs_of_tiers_were_refused_and_pairs_of_channels_held_both_ways() -> None:
    ties = build_policy(
        ExplicitAllowList(allowed_pairs={("public", "internal"), ("page", "internal"), ("web", "page")})
    )
    allowed = {
        ("telegram", "teams"),
        ("telegram", "mail"),
        ("page", "teams"),
        ("page", "mail"),
        ("web", "page"),
    }
    for source, destination in product(TIERS, TIERS):
        expected = source == destination or (source, destination) in allowed
        assert await ties.allows("deliver", source, destination) is expected
        # A link makes known what is known on either side, so one direction is not enough.
        assert await ties.allows("link", source, destination) is (source == destination)


async def test_two_directions_of_tiers_let_people_link() -> None:
    ties = build_policy(ExplicitAllowList(allowed_pairs={("public", "internal"), ("internal", "public")}))
    assert await ties.allows("link", "telegram", "teams")
    # What is not listed is not allowed, within one tier too.
    assert not await ties.allows("link", "teams", "mail")


async def test_nobody_shares() -> None:
    ties = build_policy(DenyAllLinks())
    for source, destination in product(TIERS, TIERS):
        assert not await ties.allows("link", source, destination)
        # What stays on its channel is not shared.
        assert await ties.allows("deliver", source, destination) is (source == destination)


@examples(50)
@given(st.sets(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"))), st.booleans())
async def test_what_is_listed_holds_in_both_directions(pairs: set[tuple[str, str]], turned: bool) -> None:
    names: dict[str, str | None] = dict.fromkeys("abcd")
    given_pairs = [pair[::-1] if turned else pair for pair in pairs]
    ties = build_policy(ExplicitAllowList([(first, second) for first, second in given_pairs]), names)
    for one, other in product(names, names):
        there, back = await ties.allows("deliver", one, other), await ties.allows("deliver", other, one)
        assert there is back is ((one, other) in pairs or (other, one) in pairs or one == other)


async def test_a_link_is_asked_about_in_both_directions() -> None:
    asked: list[LinkPolicyContext] = []

    async def downhill(context: LinkPolicyContext) -> bool:
        asked.append(context)
        return (context.source_tier, context.destination_tier) != ("internal", "public")

    ties = build_policy(downhill)
    assert await ties.allows("deliver", "telegram", "teams")
    assert not await ties.allows("deliver", "teams", "telegram")
    asked.clear()
    assert not await ties.allows("link", "telegram", "teams")
    assert [(one.source, one.destination) for one in asked] == [("telegram", "teams"), ("teams", "telegram")]
    assert asked[0] == LinkPolicyContext(
        operation="link", source="telegram", destination="teams", source_tier="public", destination_tier="internal"
    )


@pytest.mark.parametrize("said", [1, "yes", None, object(), False, 0])
async def test_only_a_clear_yes_counts(said: Any) -> None:
    ties = build_policy(lambda _: said)
    assert not await ties.allows("link", "teams", "mail")
    with pytest.raises(LinkRefusedError) as caught:
        await ties.need("link", "teams", "mail")
    assert (caught.value.status, caught.value.code) == (403, "link_refused")


@pytest.mark.parametrize(
    "policy", [SameConfidentialityTierOnly(), ExplicitAllowList([("teams", "web")]), lambda _: True]
)
async def test_a_channel_that_the_host_does_not_have_shares_nothing(policy: Any) -> None:
    ties = build_policy(policy)
    for pair in (("gone", "web"), ("web", "gone"), ("gone", "gone")):
        assert not await ties.allows("link", *pair)


async def test_a_policy_that_fails_refuses_and_says_that_it_may_be_better_later() -> None:
    def broken(context: LinkPolicyContext) -> bool:
        raise OSError("no database")

    with pytest.raises(UnavailableError) as caught:
        await build_policy(broken).allows("link", "teams", "mail")
    assert "database" not in caught.value.message


@pytest.mark.parametrize("pairs", [["ab"], [("a",)], [("a", "b", "c")], [("a", "")], [("a", 1)]])
def test_what_is_no_pair_is_refused(pairs: Any) -> None:
    with pytest.raises(ValueError, match="pairs of non-empty names"):
        ExplicitAllowList(pairs)
    with pytest.raises(ValueError, match="pairs of non-empty names"):
        ExplicitAllowList(allowed_pairs=pairs)
