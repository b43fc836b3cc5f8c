"""A gate with one door, the way to it that the pipeline goes, and people to stand before it."""

from collections.abc import Mapping
from typing import Any

from frontdesk.access.gate import Gate, identify
from frontdesk.access.identify import IdentityKeys
from frontdesk.access.policy import TierPolicy, as_rule
from frontdesk.interfaces.access import (
    AccessRule,
    Allowlist,
    AllowlistDecision,
    AuthorizationContext,
    Decision,
    IdentityResolver,
)
from frontdesk.interfaces.linker import IdentityLinker, LinkerContext
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.link import LinkChallenge, LinkRecord
from frontdesk.models.request import AdmittedRequest, ChannelRequest
from frontdesk.stores.memory.store import InMemoryStateStore
from frontdesk_testing import FakeClock, FakeIds

ALICE = ChannelIdentity(channel="web", native_id="alice")
BOB = ChannelIdentity(channel="web", native_id="bob")
CALLER = Caller(identity=ALICE, claims={"oid": "1"}, claim_source="jwt")
PLAIN = Caller(identity=ALICE)

ALLOW, DENY, ABSTAIN = AllowlistDecision.ALLOW, AllowlistDecision.DENY, AllowlistDecision.ABSTAIN


def link(identity: ChannelIdentity, key: str = "key_of_link", **claims: Any) -> LinkRecord:
    return LinkRecord(
        link_id="link_1", isolation_key=key, identity=identity, linked_at=1.0, linker="fixed", claims=claims
    )


class FixedLinker:
    """Knows some links, and makes none."""

    name = "fixed"

    def __init__(self, *links: LinkRecord, gives_claims: bool = True) -> None:
        self.gives_claims = gives_claims
        self.links = {one.identity.key: one for one in links}
        self.begun: list[ChannelIdentity] = []
        self.asked = 0

    def use(self, desk: LinkerContext) -> None:
        return

    async def begin(self, identity: ChannelIdentity) -> LinkChallenge:
        self.begun.append(identity)
        return LinkChallenge(challenge_id="ch_1", identity=identity, instructions="Do this.", expires_at=2.0)

    async def complete(self, identity: ChannelIdentity, proof: str) -> LinkRecord | LinkChallenge | None:
        return None

    async def resolve(self, identity: ChannelIdentity) -> LinkRecord | None:
        self.asked += 1
        return self.links.get(identity.key)

    async def unlink(self, identity: ChannelIdentity) -> None:
        self.links.pop(identity.key, None)


class Says:
    """Gives the same answer in each phase, and writes down what it was asked."""

    def __init__(self, before: Any, after: Any = None) -> None:
        self.answers: dict[str, Any] = {"pre_link": before, "post_link": before if after is None else after}
        self.asked: list[AuthorizationContext] = []

    async def evaluate(self, context: AuthorizationContext) -> Any:
        self.asked.append(context)
        return self.answers[context.phase]


class OnlyThese:
    """Lets some in, and writes down what it was asked."""

    def __init__(self, *native_ids: str, otherwise: AllowlistDecision = DENY) -> None:
        self.native_ids = native_ids
        self.otherwise = otherwise
        self.asked: list[AuthorizationContext] = []

    async def evaluate(self, context: AuthorizationContext) -> AllowlistDecision:
        self.asked.append(context)
        return ALLOW if context.identity.native_id in self.native_ids else self.otherwise


class Door:
    """A gate with one channel, and all that a decision about it needs."""

    def __init__(
        self,
        allowlist: Allowlist | None = None,
        resolver: IdentityResolver | None = None,
        *,
        linker: IdentityLinker | None = None,
        ties: TierPolicy | None = None,
        rules: Mapping[str, AccessRule] | None = None,
    ) -> None:
        self.store = InMemoryStateStore()
        self.ids = FakeIds()
        self.clock = FakeClock(1000.0)
        keys = IdentityKeys(self.store, self.ids, self.clock, resolver)
        own = {"web": as_rule(allowlist)} if rules is None else rules
        self.gate = Gate(keys, self.ids, self.clock, own, linker=linker, link_policy=ties)

    async def decide(self, caller: Caller = PLAIN, channel: str = "web") -> Decision:
        return await self.gate.decide(caller, channel)

    async def enter(
        self, request: ChannelRequest | None = None, caller: Caller = CALLER, hook: Any = None
    ) -> AdmittedRequest:
        wire = identify(request or ChannelRequest(channel="web"), caller)
        allowed = await self.gate.authorize(caller, wire.channel, hooked=hook is not None)
        return await self.gate.admit(hook(wire) if hook else wire, caller, wire, allowed)

    async def is_empty(self) -> bool:
        return not self.ids.made and await self.store.identities.find(ALICE) is None
