"""What each allowlist says, and that whatever is no clear yes is none."""

import asyncio
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.access.allowlists import (
    AllOfAllowlists,
    AllowAll,
    AnyOfAllowlists,
    CallableAllowlist,
    LinkedClaimAllowlist,
    NativeIdAllowlist,
    evaluate,
    requires_linked_claims,
    walk,
)
from frontdesk.access.policy import AuthPolicy
from frontdesk.interfaces.access import AllowlistDecision, AuthorizationContext, IdentityAllowlist
from frontdesk.models.identity import ChannelIdentity
from tests.access.door import ABSTAIN, ALICE, ALLOW, BOB, DENY, Says

ANSWERS = st.sampled_from(AllowlistDecision)


def about(identity: ChannelIdentity = ALICE, phase: Any = "pre_link", **claims: Any) -> AuthorizationContext:
    source: Any = "linker" if phase == "post_link" else "channel"
    return AuthorizationContext(identity=identity, phase=phase, verified_claims=claims, claim_source=source)


def say(allowlist: IdentityAllowlist, context: AuthorizationContext | None = None) -> AllowlistDecision:
    return asyncio.run(evaluate(allowlist, context or about()))


def just(*said: Any) -> list[IdentityAllowlist]:
    return [CallableAllowlist(lambda _, one=one: one) for one in said]


class TestNativeIds:
    def test_only_exact_ids_count(self) -> None:
        listed = NativeIdAllowlist(["alice", "42"])
        assert say(listed) is ALLOW
        for other in ("Alice", "alice ", "\u0430lice", "ali", "4", "2", "042", "", "alice\n", "alice\u200b"):
            assert say(listed, about(ALICE.replace(native_id=other))) is DENY, other

    def test_names_chats_and_other_attributes_never_count(self) -> None:
        listed = NativeIdAllowlist(["alice"])
        for attributes in ({"name": "alice"}, {"username": "alice"}, {"chat_id": "alice"}, {"native_id": "alice"}):
            assert say(listed, about(BOB.replace(attributes=attributes))) is DENY

    def test_it_says_nothing_of_users_of_other_channels(self) -> None:
        listed = NativeIdAllowlist(["alice"], channel="web")
        assert say(listed) is ALLOW
        assert say(listed, about(BOB)) is DENY
        assert say(listed, about(ALICE.replace(channel="teams"))) is ABSTAIN

    @pytest.mark.parametrize("ids", ["alice", b"alice", ["alice", 42], ["alice", ""], ["alice", None], 42, None])
    def test_what_is_no_list_of_ids_is_refused(self, ids: Any) -> None:
        with pytest.raises(TypeError):
            NativeIdAllowlist(ids)

    def test_an_empty_list_lets_nobody_in(self) -> None:
        assert say(NativeIdAllowlist([])) is DENY

    @given(st.sets(st.text(min_size=1)), st.text())
    def test_it_is_a_set(self, ids: set[str], one: str) -> None:
        said = say(NativeIdAllowlist(ids), about(ALICE.replace(native_id=one)))
        assert said is (ALLOW if one in ids else DENY)


class TestClaims:
    def test_without_the_claim_it_waits_for_the_link_and_then_denies(self) -> None:
        wanted = LinkedClaimAllowlist("tid", ["ours"])
        assert say(wanted) is ABSTAIN
        assert say(wanted, about(phase="post_link", oid="1")) is DENY
        assert say(wanted, about(phase="post_link", tid=None)) is DENY

    @pytest.mark.parametrize("phase", ["pre_link", "post_link"])
    @pytest.mark.parametrize(
        ("found", "said"),
        [
            ("ours", ALLOW),
            ("Ours", DENY),
            (["theirs", "ours"], ALLOW),
            (("theirs", "ours"), ALLOW),
            ({"ours"}, ALLOW),
            (["theirs"], DENY),
            ([], DENY),
            ("theirs ours", DENY),
            ({"ours": True}, DENY),
            ([["ours"]], DENY),
            (True, DENY),
            (1, DENY),
        ],
    )
    def test_one_of_its_values_must_be_listed(self, phase: Any, found: Any, said: AllowlistDecision) -> None:
        assert say(LinkedClaimAllowlist("tid", ["ours", "mine"]), about(phase=phase, tid=found)) is said

    def test_yes_is_not_one(self) -> None:
        assert say(LinkedClaimAllowlist("admin", True), about(admin=True)) is ALLOW
        for other in (1, "True", "true", 1.0, [1]):
            assert say(LinkedClaimAllowlist("admin", [True]), about(admin=other)) is DENY
        assert say(LinkedClaimAllowlist("level", [1]), about(level=True)) is DENY

    def test_a_text_is_one_value_and_not_its_letters(self) -> None:
        assert say(LinkedClaimAllowlist("tid", "ours"), about(tid="ours")) is ALLOW
        assert say(LinkedClaimAllowlist("tid", "ours"), about(tid="o")) is DENY

    @pytest.mark.parametrize(("claim", "values"), [("", ["x"]), ("tid", []), ("tid", ())])
    def test_one_that_could_mean_anything_is_refused(self, claim: str, values: Any) -> None:
        with pytest.raises(ValueError, match="LinkedClaimAllowlist requires"):
            LinkedClaimAllowlist(claim, values)

    @pytest.mark.parametrize("values", [[None], ["ours", 1.5], [b"ours"], [["ours"]]])
    def test_values_that_no_claim_could_have_are_refused(self, values: Any) -> None:
        with pytest.raises(TypeError, match="LinkedClaimAllowlist: the values must"):
            LinkedClaimAllowlist("tid", values)


class TestTogether:
    def test_none_decide_nothing(self) -> None:
        assert say(AnyOfAllowlists()) is ABSTAIN
        assert say(AllOfAllowlists()) is ABSTAIN

    @given(st.lists(ANSWERS, min_size=1, max_size=5))
    def test_one_yes_is_enough_for_any_and_one_no_for_all(self, said: list[AllowlistDecision]) -> None:
        any_of, all_of = say(AnyOfAllowlists(*just(*said))), say(AllOfAllowlists(*just(*said)))
        assert any_of is (ALLOW if ALLOW in said else DENY if set(said) == {DENY} else ABSTAIN)
        assert all_of is (DENY if DENY in said else ALLOW if set(said) == {ALLOW} else ABSTAIN)

    @given(st.lists(ANSWERS, min_size=1, max_size=4))
    def test_de_morgan(self, said: list[AllowlistDecision]) -> None:
        turned = {ALLOW: DENY, DENY: ALLOW, ABSTAIN: ABSTAIN}
        assert say(AnyOfAllowlists(*just(*said))) is turned[say(AllOfAllowlists(*just(*(turned[one] for one in said))))]

    @given(st.lists(ANSWERS, max_size=4), st.sampled_from([AnyOfAllowlists, AllOfAllowlists]))
    def test_their_order_does_not_matter(self, said: list[AllowlistDecision], kind: Any) -> None:
        assert len({say(kind(*just(*order))) for order in permutations(said)}) == 1

    @given(st.lists(ANSWERS, min_size=1, max_size=4), ANSWERS, st.sampled_from([AnyOfAllowlists, AllOfAllowlists]))
    def test_nesting_the_same_kind_changes_nothing(
        self, said: list[AllowlistDecision], more: AllowlistDecision, kind: Any
    ) -> None:
        assert say(kind(kind(*just(*said)), *just(more))) is say(kind(*just(*said, more)))
        assert say(kind(*just(more, more))) is more

    @given(st.lists(ANSWERS, min_size=1, max_size=4), st.sampled_from([True, None, 1, "allow", "ALLOW", [], object()]))
    def test_a_stray_answer_is_a_no(self, said: list[AllowlistDecision], stray: Any) -> None:
        for kind in (AnyOfAllowlists, AllOfAllowlists):
            assert say(kind(*just(*said, stray))) is say(kind(*just(*said, DENY)))
            assert say(kind(*just(stray))) is DENY

    @pytest.mark.parametrize("kind", [AnyOfAllowlists, AllOfAllowlists])
    @pytest.mark.parametrize("part", [[AllowAll()], None, AllowAll, "all", AuthPolicy.require_link()])
    def test_what_is_no_allowlist_is_refused(self, kind: Any, part: Any) -> None:
        with pytest.raises(TypeError, match="as separate arguments"):
            kind(AllowAll(), part)

    def test_all_that_they_are_made_of_can_be_looked_at(self) -> None:
        claim, listed = LinkedClaimAllowlist("tid", "x"), NativeIdAllowlist(["1"])
        inner = AllOfAllowlists(listed, claim)
        outer = AnyOfAllowlists(AllowAll(), inner)
        assert [*walk(outer)][2:] == [inner, listed, claim]
        assert requires_linked_claims(outer)
        assert not requires_linked_claims(AnyOfAllowlists(listed, AllowAll()))


class TestFunctions:
    def test_one_may_be_sync_or_async(self) -> None:
        async def later(context: AuthorizationContext) -> AllowlistDecision:
            return ALLOW if context.identity == ALICE else DENY

        assert say(CallableAllowlist(later)) is ALLOW
        assert say(CallableAllowlist(lambda context: DENY)) is DENY

    def test_one_says_whether_it_needs_claims(self) -> None:
        assert not requires_linked_claims(CallableAllowlist(lambda _: ALLOW))
        assert requires_linked_claims(CallableAllowlist(lambda _: ALLOW, requires_linked_claims=True))
        assert not requires_linked_claims(Says(ALLOW))

    @pytest.mark.parametrize("stray", [True, None, 1, "allow", "ALLOW"])
    def test_a_stray_answer_is_a_no_and_is_logged(self, stray: Any, caplog: pytest.LogCaptureFixture) -> None:
        assert say(Says(stray)) is DENY
        assert "no decision" in caplog.text
