"""What is wrong with who may come in is found when the host is built, nested lists too, all at once."""

from typing import Any

import pytest

from frontdesk import (
    AgentFrameworkHost,
    AllOfAllowlists,
    AllowAll,
    AllowAllLinks,
    AnyOfAllowlists,
    ApiKeyAuth,
    AuthPolicy,
    CallableAllowlist,
    ChannelConfigurationError,
    ChannelIdentity,
    DenyAllLinks,
    ExplicitAllowList,
    LinkedClaimAllowlist,
    NativeIdAllowlist,
    SameConfidentialityTierOnly,
)
from frontdesk.access.policy import list_rules
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.interfaces.access import AccessRule, Allowed, AllowlistDecision, Denied, LinkRequired
from frontdesk.models.identity import Caller
from frontdesk_testing.internals import get_store
from tests.access.door import FixedLinker, link
from tests.scenarios.cast import echo

KEYS = ApiKeyAuth({"alice": "alice-has-a-long-key"})
NEEDS = CallableAllowlist(lambda _: AllowlistDecision.DENY, requires_linked_claims=True)


class Claims:
    """Credentials that prove claims."""

    name = "claims"
    gives_claims = True

    async def authenticate(self, headers: Any) -> None:
        return None


def web(**options: Any) -> InvocationsChannel:
    return InvocationsChannel(name="web", path="/web", auth=options.pop("auth", KEYS), **options)


def findings(*channels: Any, **options: Any) -> tuple[str, ...]:
    try:
        AgentFrameworkHost(echo, channels=channels or [web()], **options)
    except ChannelConfigurationError as error:
        return error.findings
    return ()


CLAIM = LinkedClaimAllowlist("tid", ["ours"])
NESTED = [
    CLAIM,
    AuthPolicy.linked_claim_allowlist("tid", "ours"),
    AuthPolicy.mixed(["1"], "tid", "ours"),
    AnyOfAllowlists(AllowAll(), AllOfAllowlists(AllowAll(), AnyOfAllowlists(CLAIM))),
]


@pytest.mark.parametrize("allowlist", NESTED)
@pytest.mark.parametrize("inherited", [False, True])
@pytest.mark.parametrize("linker", [None, FixedLinker(gives_claims=False)])
def test_a_claim_needs_somebody_who_proves_it(allowlist: Any, inherited: bool, linker: Any) -> None:
    channel = web() if inherited else web(allowlist=allowlist)
    (finding,) = findings(channel, default_allowlist=allowlist if inherited else None, linker=linker)
    assert finding.startswith("channel 'web': the claim 'tid' is asked for")


@pytest.mark.parametrize("allowlist", [*NESTED, NEEDS])
def test_claims_come_from_a_linker_or_from_the_channel(allowlist: Any) -> None:
    assert not findings(web(allowlist=allowlist), linker=FixedLinker())
    assert not findings(web(allowlist=allowlist, auth=Claims()))
    channel = web(allowlist=allowlist)
    channel.emits_verified_claims = True
    assert not findings(channel)


def test_a_function_that_needs_claims_says_so() -> None:
    (finding,) = findings(web(allowlist=AnyOfAllowlists(NEEDS)))
    assert "CallableAllowlist needs verified claims" in finding


@pytest.mark.parametrize(
    "options",
    [
        {"require_link": True},
        {"allowlist": AuthPolicy.require_link()},
        {"allowlist": AccessRule(allowlist=AllowAll(), require_link=True)},
    ],
)
def test_a_link_needs_a_linker_and_somebody_to_link(options: dict[str, Any]) -> None:
    (finding,) = findings(web(**options))
    assert "no linker=" in finding
    (finding,) = findings(web(**options, auth=None), linker=FixedLinker())
    assert "every caller is anonymous" in finding
    assert not findings(web(**options), linker=FixedLinker())


def test_a_default_that_requires_a_link_does_too() -> None:
    channels = [web(), web(allowlist=None)]
    channels[1].name, channels[1].path = "open", "/open"
    (finding,) = findings(*channels, default_allowlist=AuthPolicy.require_link())
    assert finding.startswith("channel 'web': a link is required")


@pytest.mark.parametrize(
    "allowlist",
    [
        NativeIdAllowlist(["1"], channel="tg"),
        AuthPolicy.native_allowlist(["1"], channel="tg"),
        AnyOfAllowlists(AllOfAllowlists(NativeIdAllowlist(["1"], channel="tg"))),
    ],
)
def test_a_list_of_a_channel_that_does_not_exist(allowlist: Any) -> None:
    wrong = "the host has no channel named 'tg'"
    assert findings(web(allowlist=allowlist)) == (f"channel 'web': NativeIdAllowlist: {wrong}",)
    assert findings(default_allowlist=allowlist) == (f"default_allowlist: NativeIdAllowlist: {wrong}",)
    assert not findings(default_allowlist=NativeIdAllowlist(["1"], channel="web"))


def test_a_policy_of_channels_that_do_not_exist() -> None:
    policy = ExplicitAllowList([("web", "tg"), ("slack", "tg")])
    assert [one.split()[-1] for one in findings(link_policy=policy)] == ["'slack'", "'tg'"]


def test_a_policy_of_tiers_names_what_there_is_and_no_two_things_at_once() -> None:
    policy = ExplicitAllowList(allowed_pairs={("public", "web"), ("internal", "web")})
    assert findings(web(confidentiality_tier="public"), link_policy=policy) == (
        "link_policy: 'internal' is neither a confidentiality_tier nor a channel of the host",
    )
    policy = ExplicitAllowList(allowed_pairs={("web", "web")})
    assert findings(web(confidentiality_tier="web"), link_policy=policy) == (
        "link_policy: 'web' is a confidentiality_tier and a channel of the host; give one of them another name",
    )
    assert not findings(web(confidentiality_tier="public"), link_policy=ExplicitAllowList([("web", "web")]))


def test_tiers_that_nobody_has() -> None:
    (finding,) = findings(link_policy=SameConfidentialityTierOnly())
    assert "no channel has a confidentiality_tier" in finding
    assert not findings(web(confidentiality_tier="internal"), link_policy=SameConfidentialityTierOnly())


@pytest.mark.parametrize("policy", [AllowAllLinks(), DenyAllLinks(), ExplicitAllowList([]), lambda _: True])
def test_a_policy_is_a_function(policy: Any) -> None:
    assert not findings(link_policy=policy)


@pytest.mark.parametrize("stray", [AllowAll, "everyone", ["alice"], True, AccessRule(allowlist="inherit")])  # pyright: ignore[reportArgumentType]
def test_what_is_no_allowlist(stray: Any) -> None:
    (finding,) = findings(web(allowlist=stray))
    assert finding.startswith("channel 'web': allowlist: ")
    (finding,) = findings(default_allowlist=stray)
    assert finding.startswith("default_allowlist: ")


def test_the_hosts_own_list_inherits_from_nobody() -> None:
    (finding,) = findings(default_allowlist="inherit")
    assert "default_allowlist: 'inherit'" in finding


def test_callers_of_a_channel_that_does_not_exist() -> None:
    (finding,) = findings(ConversationsChannel())
    assert finding == "channel 'conversations': callers_of: the host has no channel named 'responses'"


@pytest.mark.parametrize(
    ("stray", "part"), [(object(), "begin"), (FixedLinker, "is a class; give an instance"), ("code", "resolve")]
)
def test_what_is_no_linker(stray: Any, part: str) -> None:
    (finding,) = findings(linker=stray)
    assert finding.startswith("linker: ")
    assert part in finding


def test_all_of_it_is_told_at_once() -> None:
    found = findings(
        web(allowlist=AnyOfAllowlists(CLAIM, NativeIdAllowlist([], channel="tg")), require_link=True),
        InvocationsChannel(path="/x", allowlist="everyone", confidentiality_tier=""),  # pyright: ignore[reportArgumentType]
        default_allowlist="inherit",
        link_policy=DenyAllLinks,
        identity_resolver=3,
        session_wait_seconds=-1,
    )
    expected = [
        "session_wait_seconds",
        "default_allowlist: 'inherit'",
        "identity_resolver is not a function",
        "link_policy: ",
        "no channel named 'tg'",
        "a link is required",
        "the claim 'tid'",
        "allowlist: 'everyone'",
        "confidentiality_tier: ''",
    ]
    for part in expected:
        assert [one for one in found if part in one], f"nobody told: {part}"
    assert len(found) == len(expected)


def test_conversations_inherit_from_the_channel_whose_callers_they_have() -> None:
    listed = NativeIdAllowlist(["alice"])
    channels: dict[str, Any] = {
        "responses": ResponsesChannel(allowlist=listed, require_link=True),
        "conversations": ConversationsChannel(),
    }
    rules = list_rules(channels, AllowAll())
    assert rules["conversations"] == rules["responses"] == AccessRule(allowlist=listed, require_link=True)
    channels["conversations"] = ConversationsChannel(allowlist=None)
    assert list_rules(channels, AllowAll())["conversations"] == AccessRule()
    channels["responses"] = ResponsesChannel()
    channels["conversations"] = ConversationsChannel(require_link=True)
    assert list_rules(channels, listed)["conversations"] == AccessRule(allowlist=listed, require_link=True)


ALICE = ChannelIdentity(channel="web", native_id="alice")


class TestAuthorize:
    """`host.authorize`, for the operator's own code."""

    async def test_it_asks_the_rule_of_the_identitys_own_channel(self) -> None:
        channels = [web(allowlist=NativeIdAllowlist(["alice"])), InvocationsChannel()]
        host = AgentFrameworkHost(echo, channels=channels, default_allowlist=NativeIdAllowlist([]))
        assert isinstance(await host.authorize(ALICE), Allowed)
        assert isinstance(await host.authorize(Caller(identity=ALICE)), Allowed)
        for other in (ALICE.replace(native_id="bob"), ALICE.replace(channel="invocations")):
            decision = await host.authorize(other)
            assert isinstance(decision, Denied)
            assert decision.reason_code == "allowlist_denied_pre_link"

    @pytest.mark.parametrize(
        "rule",
        [
            {},
            {"require_link": False},
            {"allowlist": AllowAll()},
            {"allowlist": AuthPolicy.open()},
            {"verified_claims": {"tid": "ours"}},
        ],
    )
    @pytest.mark.parametrize("default", [None, AllowAll(), NativeIdAllowlist(["alice"])])
    async def test_audit_281_an_identity_on_a_channel_that_the_host_does_not_have_was_allowed(
        self, default: Any, rule: dict[str, Any]
    ) -> None:
        host = AgentFrameworkHost(echo, channels=[web()], default_allowlist=default)
        for channel in ("wbe", "Web", "", "web "):
            decision = await host.authorize(ALICE.replace(channel=channel), **rule)
            assert isinstance(decision, Denied), channel
            assert decision.reason_code == "unknown_channel"

    async def test_it_can_ask_another_rule(self) -> None:
        host = AgentFrameworkHost(echo, channels=[web()], linker=FixedLinker())
        assert isinstance(await host.authorize(ALICE), Allowed)
        assert isinstance(await host.authorize(ALICE, allowlist=NativeIdAllowlist([])), Denied)
        assert isinstance(await host.authorize(ALICE, require_link=True), LinkRequired)
        assert isinstance(await host.authorize(ALICE, allowlist=AuthPolicy.require_link()), LinkRequired)
        lenient = await host.authorize(ALICE, allowlist=AuthPolicy.require_link(), require_link=False)
        assert isinstance(lenient, Allowed)

    async def test_without_a_linker_a_link_can_not_be_had(self) -> None:
        decision = await AgentFrameworkHost(echo, channels=[web()]).authorize(ALICE, require_link=True)
        assert isinstance(decision, Denied)
        assert decision.reason_code == "link_unavailable"

    async def test_claims_of_an_identity_come_from_whoever_has_verified_them(self) -> None:
        host = AgentFrameworkHost(echo, channels=[web(allowlist=CLAIM)], linker=FixedLinker())
        assert isinstance(await host.authorize(ALICE), LinkRequired)
        named = ALICE.replace(attributes={"tid": "ours", "claims": {"tid": "ours"}})
        assert isinstance(await host.authorize(named), LinkRequired)
        allowed = await host.authorize(ALICE, verified_claims={"tid": "ours"})
        assert allowed == Allowed(isolation_key=None, verified_claims={"tid": "ours"}, claim_source="channel")
        with pytest.raises(TypeError, match="its own claims"):
            await host.authorize(Caller(identity=ALICE), verified_claims={"tid": "ours"})

    async def test_it_changes_nothing(self) -> None:
        linker = FixedLinker(link(ALICE, "key_9"))
        host = AgentFrameworkHost(echo, channels=[web(require_link=True)], linker=linker)
        assert await host.authorize(ALICE) == Allowed(isolation_key="key_9")
        assert isinstance(await host.authorize(ALICE.replace(native_id="bob")), LinkRequired)
        assert not linker.begun
        assert not await get_store(host).identities.of_owner("key_9")
