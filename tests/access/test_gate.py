"""Who gets in, as whom, and what the wire can't say."""

import asyncio

import pytest

from frontdesk.access.gate import identify
from frontdesk.access.policy import AuthPolicy, DenyAllLinks, ExplicitAllowList, TierPolicy
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import ForbiddenError, InvalidRequestError, LinkRefusedError, LinkRequiredError
from frontdesk.interfaces.access import Allowed, AllowlistDecision, AuthorizationContext, Denied, LinkRequired
from frontdesk.models.identity import Caller, ChannelIdentity, IdentityRecord
from frontdesk.models.reply import ResponseTarget
from frontdesk.models.request import ChannelRequest, ChannelSession
from tests.access.door import ALICE, BOB, CALLER, Door, FixedLinker, OnlyThese, link

TEAMS = ChannelIdentity(channel="teams", native_id="alice")


class TestKeys:
    async def test_a_key_is_issued_at_admission_and_stays(self) -> None:
        door = Door()
        first, second = await door.enter(), await door.enter()
        assert first.owner == second.owner == "key_1"
        assert (await door.enter(caller=Caller(identity=BOB))).owner == "key_2"
        record = await door.store.identities.find(ALICE)
        assert record is not None
        assert record.created_at == 1000.0

    async def test_twenty_first_requests_at_once_get_one_key(self) -> None:
        door = Door()
        owners = {one.owner for one in await asyncio.gather(*(door.enter() for _ in range(20)))}
        assert len(owners) == 1
        assert list(await door.store.identities.of_owner(owners.pop())) == [ALICE]

    async def test_authorizing_changes_nothing(self) -> None:
        door = Door()
        assert await door.decide(CALLER) == Allowed(
            isolation_key=None, verified_claims={"oid": "1"}, claim_source="channel"
        )
        assert await door.is_empty()

    @pytest.mark.parametrize("native_id", ["alice", "ALICE", "alice ", "\u0430lice"])
    async def test_people_whose_names_look_alike_have_keys_of_their_own(self, native_id: str) -> None:
        door = Door()
        mine = await door.enter()
        theirs = await door.enter(caller=Caller(identity=ALICE.replace(native_id=native_id)))
        assert (theirs.owner == mine.owner) == (native_id == "alice")

    async def test_the_operators_resolver_has_the_last_word(self) -> None:
        async def resolver(identity: ChannelIdentity) -> str | None:
            return f"person:{identity.native_id}"

        door = Door(resolver=resolver)
        assert (await door.enter()).owner == "person:alice"
        assert await door.store.identities.find(ALICE) is None

    @pytest.mark.parametrize("nobody", [None, ""])
    async def test_a_resolver_that_gives_no_key_refuses(self, nobody: str | None) -> None:
        door = Door(resolver=lambda identity: nobody)
        with pytest.raises(ForbiddenError) as caught:
            await door.enter()
        assert caught.value.code == "denied"
        assert await door.is_empty()

    async def test_each_request_gets_a_run_id_and_a_time(self) -> None:
        door = Door()
        assert [(await door.enter()).run_id for _ in range(2)] == ["run_1", "run_2"]
        chosen = await door.enter(ChannelRequest(channel="web", run_id="mine"))
        assert (chosen.run_id, chosen.admitted_at) == ("mine", 1000.0)


class TestAllowlist:
    @pytest.mark.parametrize("decision", [AllowlistDecision.DENY, AllowlistDecision.ABSTAIN])
    async def test_whoever_is_not_let_in_leaves_nothing_behind(self, decision: AllowlistDecision) -> None:
        door = Door(OnlyThese("carol", otherwise=decision))
        assert isinstance(await door.decide(CALLER), Denied)
        with pytest.raises(ForbiddenError) as caught:
            await door.enter()
        assert caught.value.code == "denied"
        assert caught.value.message.startswith("You can't use this assistant.")
        assert len(caught.value.group_message) < len(caught.value.message)
        assert await door.is_empty()

    async def test_the_allowlist_sees_the_verified_identity_and_its_claims(self) -> None:
        allowlist = OnlyThese("alice")
        await Door(allowlist).enter()
        assert allowlist.asked == [
            AuthorizationContext(identity=ALICE, verified_claims={"oid": "1"}, claim_source="channel")
        ]

    async def test_a_hook_that_changes_the_identity_is_asked_about_it(self) -> None:
        allowlist = OnlyThese("alice")
        door = Door(allowlist)
        with pytest.raises(ForbiddenError):
            await door.enter(hook=lambda wire: wire.replace(identity=BOB))
        assert [context.identity for context in allowlist.asked] == [ALICE, BOB]
        assert await door.is_empty()

    async def test_the_callers_claims_are_not_anybody_elses(self) -> None:
        allowlist = OnlyThese("alice", "bob")
        admitted = await Door(allowlist).enter(hook=lambda wire: wire.replace(identity=BOB))
        assert admitted.identity == BOB
        assert admitted.caller is CALLER
        assert allowlist.asked[-1] == AuthorizationContext(identity=BOB)

    async def test_a_hook_that_speaks_for_another_gets_the_others_key(self) -> None:
        door = Door()
        theirs = await door.enter(caller=Caller(identity=BOB))
        assert (await door.enter(hook=lambda wire: wire.replace(identity=BOB))).owner == theirs.owner
        assert await door.store.identities.find(ALICE) is None

    async def test_what_a_hook_adds_to_an_identity_is_decided_about_again(self) -> None:
        allowlist = OnlyThese("alice")
        named = ALICE.replace(attributes={"name": "Alice"})
        await Door(allowlist).enter(hook=lambda wire: wire.replace(identity=named))
        assert [dict(one.identity.attributes) for one in allowlist.asked] == [{}, {"name": "Alice"}]

    async def test_a_hook_that_changes_nothing_about_an_identity_asks_nobody_again(self) -> None:
        allowlist = OnlyThese("alice")
        await Door(allowlist).enter(hook=lambda wire: wire.replace(identity=ALICE.replace()))
        assert len(allowlist.asked) == 1

    async def test_whoever_a_hook_speaks_for_needs_a_link_too(self) -> None:
        linker = FixedLinker(link(ALICE, "key_of_alice"))
        door = Door(AuthPolicy.require_link(), linker=linker)
        assert (await door.enter()).owner == "key_of_alice"
        with pytest.raises(LinkRequiredError):
            await door.enter(hook=lambda wire: wire.replace(identity=BOB))
        linker.links[BOB.key] = link(BOB, "key_of_bob")
        assert (await door.enter(hook=lambda wire: wire.replace(identity=BOB))).owner == "key_of_bob"
        assert await door.store.identities.find(BOB) is None

    async def test_a_hook_that_speaks_for_a_user_of_another_channel_needs_the_link_policy(self) -> None:
        channels = {name: InvocationsChannel(name=name) for name in ("web", "teams")}
        for policy, lets in ((ExplicitAllowList([("teams", "web")]), True), (DenyAllLinks(), False)):
            door = Door(ties=TierPolicy(policy, channels))
            if lets:
                assert (await door.enter(hook=lambda wire: wire.replace(identity=TEAMS))).identity == TEAMS
                continue
            with pytest.raises(LinkRefusedError):
                await door.enter(hook=lambda wire: wire.replace(identity=TEAMS))
            assert await door.is_empty()
            # Of the same channel nothing is shared.
            assert (await door.enter(hook=lambda wire: wire.replace(identity=BOB))).identity == BOB


class TestJoining:
    """A verified claim that links without a ceremony; who does it is told by the host."""

    async def test_it_is_asked_for_and_the_decision_is_made_again(self) -> None:
        linker = FixedLinker()
        door = Door(AuthPolicy.require_link(), linker=linker)
        first = await door.decide(CALLER)

        async def join(caller: Caller) -> bool:
            linker.links[caller.identity.key] = link(caller.identity, "key_of_both")
            return True

        door.gate.link_by_claims = join
        assert first == LinkRequired()
        decision = await door.gate.link_and_decide(CALLER, "web", first)
        assert isinstance(decision, Allowed)
        assert decision.isolation_key == "key_of_both"

    async def test_who_is_denied_is_not_linked(self) -> None:
        door = Door(OnlyThese(), linker=FixedLinker())

        async def join(caller: Caller) -> bool:
            pytest.fail("nobody is linked who may not come in")

        door.gate.link_by_claims = join
        decision = await door.decide(CALLER)
        assert await door.gate.link_and_decide(CALLER, "web", decision) is decision

    async def test_where_nothing_changed_the_decision_stays(self) -> None:
        door = Door(linker=FixedLinker())

        async def join(caller: Caller) -> bool:
            return False

        door.gate.link_by_claims = join
        decision = await door.decide(CALLER)
        assert await door.gate.link_and_decide(CALLER, "web", decision) is decision


class TestTheWire:
    def test_it_cannot_say_whose_session_it_wants(self) -> None:
        request = ChannelRequest(channel="web", session=ChannelSession(isolation_key="key_of_bob"))
        with pytest.raises(InvalidRequestError) as caught:
            identify(request, CALLER)
        assert caught.value.param == "session"

    def test_it_cannot_say_who_is_calling(self) -> None:
        claimed = identify(ChannelRequest(channel="web", identity=BOB), CALLER)
        assert claimed.identity is ALICE

    async def test_a_hook_can_say_whose_session_it_is(self) -> None:
        session = ChannelSession(isolation_key="shared-room")
        admitted = await Door().enter(hook=lambda wire: wire.replace(session=session))
        assert admitted.owner == "shared-room"
        assert admitted.identity == ALICE

    async def test_a_hook_that_says_nobodys_session_does_not_open_everybodys(self) -> None:
        session = ChannelSession(isolation_key="")
        with pytest.raises(ForbiddenError):
            await Door().enter(hook=lambda wire: wire.replace(session=session))

    async def test_it_cannot_send_an_answer_to_others(self) -> None:
        door = Door()
        for target in (ResponseTarget.identity(BOB), ResponseTarget.identities([ALICE, BOB])):
            with pytest.raises(ForbiddenError) as caught:
                await door.enter(ChannelRequest(channel="web", response_target=target))
            assert caught.value.param == "response_target"
        assert await door.is_empty()

    async def test_it_can_send_an_answer_to_itself_and_to_its_own_channels(self) -> None:
        for target in (ResponseTarget.identity(ALICE), ResponseTarget.channel("telegram"), ResponseTarget.all_linked()):
            admitted = await Door().enter(ChannelRequest(channel="web", response_target=target))
            assert admitted.request.response_target == target

    async def test_it_can_send_an_answer_to_the_same_person_elsewhere(self) -> None:
        door, phone = Door(), ChannelIdentity(channel="telegram", native_id="42")
        owner = (await door.enter()).owner
        async with door.store.transaction() as transaction:
            transaction.remember_identity(IdentityRecord(identity=phone, isolation_key=owner, created_at=0.0))
        for target in (ResponseTarget.identity(phone), ResponseTarget.identities([phone, ALICE])):
            admitted = await door.enter(ChannelRequest(channel="web", response_target=target))
            assert admitted.request.response_target == target
        with pytest.raises(ForbiddenError):
            await door.enter(
                ChannelRequest(channel="web", response_target=ResponseTarget.identity(phone)), Caller(identity=BOB)
            )

    async def test_what_the_resolver_takes_back_is_no_longer_the_same_person(self) -> None:
        phone = ChannelIdentity(channel="telegram", native_id="42")
        people = {ALICE.key: "alice", phone.key: "alice"}
        door = Door(resolver=lambda one: people.get(one.key))
        async with door.store.transaction() as transaction:
            transaction.remember_identity(IdentityRecord(identity=phone, isolation_key="alice", created_at=0.0))
        request = ChannelRequest(channel="web", response_target=ResponseTarget.identity(phone))
        assert (await door.enter(request)).request == request.replace(identity=ALICE)
        people[phone.key] = "carol"
        with pytest.raises(ForbiddenError):
            await door.enter(request)

    async def test_a_hook_can_send_an_answer_to_others(self) -> None:
        target = ResponseTarget.identity(BOB)
        admitted = await Door().enter(hook=lambda wire: wire.replace(response_target=target))
        assert admitted.request.response_target == target

    async def test_a_hook_that_leaves_a_foreign_destination_grants_nothing(self) -> None:
        request = ChannelRequest(channel="web", response_target=ResponseTarget.identity(BOB))
        with pytest.raises(ForbiddenError):
            await Door().enter(request, hook=lambda wire: wire.replace(metadata={"seen": "yes"}))

    async def test_a_hook_can_take_a_foreign_destination_away(self) -> None:
        request = ChannelRequest(channel="web", response_target=ResponseTarget.identity(BOB))
        admitted = await Door().enter(
            request, hook=lambda wire: wire.replace(response_target=ResponseTarget.originating())
        )
        assert admitted.request.response_target.kind == "originating"
