"""The truth tables: the pure decision, and the same with the real gate, its allowlists and a linker."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.access.allowlists import AllOfAllowlists, AnyOfAllowlists, LinkedClaimAllowlist, NativeIdAllowlist
from frontdesk.access.gate import Linking, after_link, before_link
from frontdesk.access.policy import AuthPolicy
from frontdesk.errors import ForbiddenError, LinkRequiredError
from frontdesk.interfaces.access import AccessRule, Allowed, AllowlistDecision, Denied, LinkRequired
from frontdesk.models.identity import Caller
from tests.access.door import ABSTAIN, ALICE, ALLOW, DENY, Door, FixedLinker, Says, link

ANSWERS = list(AllowlistDecision)
LINKINGS: list[Linking] = ["none", "plain", "with_claims"]


@pytest.mark.parametrize(("said", "require_link"), list(product(ANSWERS, [False, True])))
def test_before_a_link(said: AllowlistDecision, require_link: bool) -> None:
    expected = {
        (DENY, False): "allowlist_denied_pre_link",
        (DENY, True): "allowlist_denied_pre_link",
        (ALLOW, False): "allowed",
        (ALLOW, True): None,
        (ABSTAIN, False): None,
        (ABSTAIN, True): None,
    }
    assert before_link(said, require_link=require_link) == expected[said, require_link]


# What was said at the second time, whether a link is required, whether there is one, and what a linker could prove.
AFTER: dict[tuple[AllowlistDecision | None, bool, bool], dict[Linking, str]] = {
    (ALLOW, False, True): dict.fromkeys(LINKINGS, "allowed"),
    (ALLOW, True, True): dict.fromkeys(LINKINGS, "allowed"),
    (DENY, False, True): dict.fromkeys(LINKINGS, "allowlist_denied_post_link"),
    (DENY, True, True): dict.fromkeys(LINKINGS, "allowlist_denied_post_link"),
    (ABSTAIN, False, True): dict.fromkeys(LINKINGS, "allowlist_abstained"),
    (ABSTAIN, True, True): dict.fromkeys(LINKINGS, "allowlist_abstained"),
    (ALLOW, False, False): dict.fromkeys(LINKINGS, "allowed"),
    (DENY, False, False): {
        "none": "allowlist_denied_post_link",
        "plain": "allowlist_denied_post_link",
        "with_claims": "link_required",
    },
    (ABSTAIN, False, False): {
        "none": "allowlist_abstained",
        "plain": "link_required",
        "with_claims": "link_required",
    },
    (None, False, False): {"none": "allowlist_abstained", "plain": "link_required", "with_claims": "link_required"},
    **{
        (said, True, False): {
            "none": "link_unavailable",
            "plain": "link_required",
            "with_claims": "link_required",
        }
        for said in (ALLOW, DENY, ABSTAIN, None)
    },
}


@pytest.mark.parametrize(("case", "linking"), list(product(AFTER, LINKINGS)))
def test_after_a_link(case: tuple[AllowlistDecision | None, bool, bool], linking: Linking) -> None:
    said, require_link, linked = case
    assert after_link(said, require_link=require_link, linked=linked, linking=linking) == AFTER[case][linking]


def test_the_table_has_every_case_that_can_be() -> None:
    possible = {(said, required, linked) for said in [*ANSWERS, None] for required in (0, 1) for linked in (0, 1)}
    # Whoever is linked is always asked about again.
    assert set(AFTER) == {case for case in possible if not (case[0] is None and case[2])}


def test_nobody_is_let_in_without_a_yes_and_the_link_that_is_required() -> None:
    for said, required, linked, linking in product([*ANSWERS, None], (False, True), (False, True), LINKINGS):
        if after_link(said, require_link=required, linked=linked, linking=linking) == "allowed":
            assert said is ALLOW
            assert linked or not required


RULES: dict[str, AccessRule] = {
    "open": AuthPolicy.open(),
    "require_link": AuthPolicy.require_link(),
    "native": AuthPolicy.native_allowlist(["alice"]),
    "native, somebody else": AuthPolicy.native_allowlist(["bob"]),
    "native, another channel": AuthPolicy.native_allowlist(["alice"], channel="teams"),
    "claim": AuthPolicy.linked_claim_allowlist("tid", ["ours"]),
    "mixed": AuthPolicy.mixed(["bob"], "tid", ["ours"]),
    "mixed, listed": AuthPolicy.mixed(["alice"], "tid", ["ours"]),
    "native and link": AccessRule(allowlist=NativeIdAllowlist(["alice"]), require_link=True),
    "native and claim": AccessRule(
        allowlist=AllOfAllowlists(NativeIdAllowlist(["alice"]), LinkedClaimAllowlist("tid", "ours"))
    ),
}
CHANNEL: dict[str, dict[str, Any]] = {"-": {}, "ours": {"tid": "ours"}, "theirs": {"tid": "theirs"}, "other": {"x": 1}}
LINKS: dict[str, dict[str, Any] | None] = {
    "no link": None,
    "no claims": {},
    "ours": {"tid": "ours"},
    "theirs": {"tid": "theirs"},
}

ALLOWED, LINK = "allowed", "link"
BEFORE, LATER, NOBODY, NO_WAY = (
    "allowlist_denied_pre_link",
    "allowlist_denied_post_link",
    "allowlist_abstained",
    "link_unavailable",
)

# For each rule and the channel's claims: the decision without a linker, then with one and each kind of link.
TABLE: dict[tuple[str, str], tuple[str, ...]] = {
    **{("open", claims): (ALLOWED,) * 5 for claims in CHANNEL},
    **{("require_link", claims): (NO_WAY, LINK, ALLOWED, ALLOWED, ALLOWED) for claims in CHANNEL},
    **{("native", claims): (ALLOWED,) * 5 for claims in CHANNEL},
    **{("native, somebody else", claims): (BEFORE,) * 5 for claims in CHANNEL},
    **{("native, another channel", claims): (NOBODY, LINK, NOBODY, NOBODY, NOBODY) for claims in CHANNEL},
    ("claim", "-"): (NOBODY, LINK, LATER, ALLOWED, LATER),
    ("claim", "ours"): (ALLOWED,) * 5,
    ("claim", "theirs"): (BEFORE,) * 5,
    ("claim", "other"): (LATER, LINK, LATER, ALLOWED, LATER),
    ("mixed", "-"): (NOBODY, LINK, LATER, ALLOWED, LATER),
    ("mixed", "ours"): (ALLOWED,) * 5,
    ("mixed", "theirs"): (BEFORE,) * 5,
    ("mixed", "other"): (LATER, LINK, LATER, ALLOWED, LATER),
    **{("mixed, listed", claims): (ALLOWED,) * 5 for claims in CHANNEL},
    **{("native and link", claims): (NO_WAY, LINK, ALLOWED, ALLOWED, ALLOWED) for claims in CHANNEL},
    ("native and claim", "-"): (NOBODY, LINK, LATER, ALLOWED, LATER),
    ("native and claim", "ours"): (ALLOWED,) * 5,
    ("native and claim", "theirs"): (BEFORE,) * 5,
    ("native and claim", "other"): (LATER, LINK, LATER, ALLOWED, LATER),
}


def test_every_profile_is_in_the_table() -> None:
    assert set(TABLE) == set(product(RULES, CHANNEL))


@pytest.mark.parametrize(("rule", "claims"), TABLE)
async def test_the_gate_decides_as_the_table_says(rule: str, claims: str) -> None:
    caller = Caller(identity=ALICE, claims=CHANNEL[claims])
    doors = [Door(RULES[rule])]
    for found in LINKS.values():
        linker = FixedLinker() if found is None else FixedLinker(link(ALICE, **found))
        doors.append(Door(RULES[rule], linker=linker))
    for door, expected in zip(doors, TABLE[rule, claims], strict=True):
        decision = await door.decide(caller)
        if expected == ALLOWED:
            assert isinstance(decision, Allowed), decision
        elif expected == LINK:
            assert decision == LinkRequired()
        else:
            assert isinstance(decision, Denied)
            assert decision.reason_code == expected
        assert await door.is_empty(), "a decision leaves nothing behind"


@pytest.mark.parametrize(
    ("gives_claims", "claims", "expected"),
    [(False, {}, LINK), (False, {"x": 1}, LATER), (True, {"x": 1}, LINK)],
)
async def test_a_link_that_could_prove_nothing_new_is_not_asked_for(
    gives_claims: bool, claims: dict[str, Any], expected: str
) -> None:
    door = Door(RULES["claim"], linker=FixedLinker(gives_claims=gives_claims))
    decision = await door.decide(Caller(identity=ALICE, claims=claims))
    assert decision.reason_code == expected if isinstance(decision, Denied) else expected == LINK


async def test_a_list_is_asked_with_the_claims_of_the_channel_and_then_with_those_of_the_link() -> None:
    asked = Says(ABSTAIN, ALLOW)
    door = Door(asked, linker=FixedLinker(link(ALICE, "key_9", tid="ours")))
    decision = await door.decide(Caller(identity=ALICE, claims={"x": 1}))
    assert decision == Allowed(isolation_key="key_9", verified_claims={"tid": "ours"}, claim_source="linker")
    first, second = asked.asked
    assert (first.phase, first.claim_source, first.verified_claims) == ("pre_link", "channel", {"x": 1})
    assert (second.phase, second.claim_source, second.verified_claims) == ("post_link", "linker", {"tid": "ours"})
    assert first.isolation_key == second.isolation_key == "key_9"


async def test_a_link_without_claims_leaves_those_of_the_channel() -> None:
    asked = Says(ABSTAIN, ALLOW)
    door = Door(asked, linker=FixedLinker(link(ALICE)))
    decision = await door.decide(Caller(identity=ALICE, claims={"x": 1}))
    assert isinstance(decision, Allowed)
    assert (decision.claim_source, decision.verified_claims) == ("channel", {"x": 1})


async def test_the_claims_of_a_linked_person_come_along_at_an_open_door() -> None:
    door = Door(linker=FixedLinker(link(ALICE, tid="ours")))
    bare = await door.decide()
    assert bare == Allowed(isolation_key="key_of_link", verified_claims={"tid": "ours"}, claim_source="linker")
    # What the channel has just proved is newer than what was proved when the identity was linked.
    fresh = await door.decide(Caller(identity=ALICE, claims={"tid": "new"}))
    assert fresh == Allowed(isolation_key="key_of_link", verified_claims={"tid": "new"}, claim_source="channel")


@pytest.mark.parametrize("rule", ["require_link", "claim", "mixed", "native and link"])
async def test_an_anonymous_caller_is_never_linked_because_all_have_one_identity(rule: str) -> None:
    linker = FixedLinker(link(ALICE, tid="ours"))
    decision = await Door(RULES[rule], linker=linker).decide(Caller(identity=ALICE, anonymous=True))
    assert isinstance(decision, Denied)
    assert not linker.asked


async def test_what_is_denied_is_told_in_few_words_and_logged_in_more(caplog: pytest.LogCaptureFixture) -> None:
    door = Door(Says(DENY))
    with caplog.at_level("INFO", "frontdesk.access"), pytest.raises(ForbiddenError) as caught:
        await door.enter()
    error = caught.value
    assert (error.status, error.code) == (403, "denied")
    assert "allowlist" not in error.message + error.group_message
    assert "allowlist_denied_pre_link" in caplog.text
    assert "oid" not in caplog.text


async def test_who_must_link_is_told_so_and_in_a_group_where_to() -> None:
    with pytest.raises(LinkRequiredError) as caught:
        await Door(AuthPolicy.require_link(), linker=FixedLinker()).enter()
    assert (caught.value.status, caught.value.code) == (403, "link_required")
    assert "direct chat" in caught.value.group_message


@pytest.mark.parametrize("stray", [True, None, 1, "allow", "ALLOW"])
@pytest.mark.parametrize("linked", [False, True])
async def test_a_stray_answer_lets_nobody_in(stray: Any, linked: bool) -> None:
    linker = FixedLinker(link(ALICE)) if linked else FixedLinker()
    for answers in ((stray, ALLOW), (ABSTAIN, stray) if linked else (stray, stray)):
        allowlist = Says(ALLOW)
        allowlist.answers = dict(zip(("pre_link", "post_link"), answers, strict=True))
        assert isinstance(await Door(allowlist, linker=linker).decide(), Denied)


# A tree of allowlists: the answers of a leaf before and after a link, or a kind and its branches.
LEAVES = st.tuples(st.sampled_from(ANSWERS), st.sampled_from(ANSWERS))
TREES: Any = st.recursive(
    LEAVES, lambda inner: st.tuples(st.sampled_from(["any", "all"]), st.lists(inner, max_size=3)), max_leaves=6
)
ORDER = [DENY, ABSTAIN, ALLOW]


def build_allowlist(tree: Any) -> Any:
    if tree[0] in ("any", "all"):
        kind = AnyOfAllowlists if tree[0] == "any" else AllOfAllowlists
        return kind(*map(build_allowlist, tree[1]))
    return Says(*tree)


def read(tree: Any, phase: int) -> AllowlistDecision:
    """What a tree says, worked out in another way: the greatest answer, or the least."""
    if tree[0] not in ("any", "all"):
        return tree[phase]
    places = [ORDER.index(read(branch, phase)) for branch in tree[1]]
    return ABSTAIN if not places else ORDER[max(places) if tree[0] == "any" else min(places)]


def foretold(tree: Any, *, require_link: bool, linker: str, linked: bool, claims: bool) -> str:
    """The rules as the documents tell them, one sentence after the other."""
    linked = linked and linker != "none"
    if read(tree, 0) is DENY:
        return "denied"
    if read(tree, 0) is ALLOW and not require_link:
        return "allowed"
    if linked:
        return "allowed" if read(tree, 1) is ALLOW else "denied"
    if require_link:
        return "denied" if linker == "none" else "link"
    if claims and read(tree, 1) is ALLOW:
        return "allowed"
    proves_more = linker == "claims" or (linker == "plain" and not (claims and read(tree, 1) is DENY))
    return "link" if proves_more else "denied"


@given(
    tree=TREES,
    require_link=st.booleans(),
    linker=st.sampled_from(["none", "plain", "claims"]),
    linked=st.booleans(),
    claims=st.booleans(),
)
async def test_the_gate_does_what_is_foretold(
    tree: Any, require_link: bool, linker: str, linked: bool, claims: bool
) -> None:
    known = [link(ALICE, "key_9", **({"tid": "x"} if linker == "claims" else {}))] if linked else []
    asked = None if linker == "none" else FixedLinker(*known, gives_claims=linker == "claims")
    rule = AccessRule(allowlist=build_allowlist(tree), require_link=require_link)
    decision = await Door(rule, linker=asked).decide(Caller(identity=ALICE, claims={"x": 1} if claims else {}))
    kind = {Allowed: "allowed", Denied: "denied", LinkRequired: "link"}[type(decision)]
    expected = foretold(tree, require_link=require_link, linker=linker, linked=linked, claims=claims)
    assert kind == expected
    if isinstance(decision, Allowed):
        assert decision.isolation_key == ("key_9" if linked and asked is not None else None)
