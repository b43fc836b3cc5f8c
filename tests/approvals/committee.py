"""A host whose approvers hold a claim, and a question about which they vote."""

from typing import Any

from frontdesk import AgentFrameworkHost, InMemoryStateStore, OneTimeCodeIdentityLinker
from frontdesk.approvals.extraction import digest
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.interfaces.linker import ReadsClaims
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.approval import ApprovalVote, ApproverClaim, ApproverTerms, Decision, PendingApproval
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.link import LinkProof
from frontdesk_testing import EchoAgent
from frontdesk_testing.internals import get_components
from frontdesk_testing.store_samples import OWNER, question

FINANCE = ApproverClaim(claim="groups", values=("finance",))
ADA = ChannelIdentity(channel="invocations", native_id="ada")


def account(name: str, channel: str = "invocations") -> ChannelIdentity:
    """Return an account of a channel without a chat."""
    return ChannelIdentity(channel=channel, native_id=name)


class SubjectLinker(OneTimeCodeIdentityLinker, ReadsClaims):
    """A linker that reads the subject of a token, as those of OAuth providers do."""

    def get_subject(self, claims: Any) -> str | None:
        return claims.get("sub")


class Committee:
    """Votes about one question, on one host or on several that share a store."""

    def __init__(self, store: HostStateStore | None = None, **settings: Any) -> None:
        self.store = store or InMemoryStateStore()
        channels = [InvocationsChannel(), ResponsesChannel()]
        self.linker = linker = SubjectLinker()
        self.host = AgentFrameworkHost(EchoAgent(), channels=channels, store=self.store, linker=linker, **settings)
        self.parts = get_components(self.host)

    async def ask(self, *, requester: Caller | None = None, owner: str = OWNER, **terms: Any) -> None:
        """Store the question; two holders of the claim must approve unless the terms say otherwise."""
        rule = ApproverTerms(**{"claims": (FINANCE,), "votes": 2, **terms})
        asked = question(rule=rule, owner=owner, requester=requester or Caller(identity=ADA))
        async with self.store.transaction() as transaction:
            # The digest of a sample is not that of its call.
            transaction.add_approval(asked.replace(digest=digest(asked.request)))

    async def link(self, who: ChannelIdentity, subject: str, *groups: str) -> None:
        assert self.parts.links is not None
        claims = {"groups": list(groups)}
        proof = LinkProof(linker=self.linker.name, identity=who, subject=subject, claims=claims)
        await self.parts.links.join(proof)

    async def unlink(self, who: ChannelIdentity) -> None:
        assert self.parts.links is not None
        await self.parts.links.part(who)

    async def revoke(self, who: ChannelIdentity) -> None:
        """Unlink an account as the operator does."""
        link = await self.store.identities.link(who, fresh=True)
        assert link is not None
        assert self.parts.links is not None
        await self.parts.links.revoke(link, by="operator")

    async def vote(self, who: ChannelIdentity, approved: bool = True, **claims: Any) -> str:
        """Vote, and return the outcome; the claims are those of a token."""
        return (await self.decide(who, approved, **claims)).outcome

    async def decide(self, who: ChannelIdentity, approved: bool = True, **claims: Any) -> Decision:
        source = "badges" if claims else None
        caller = Caller(identity=who, claims=claims, claim_source=source)
        return await self.host._get_context(who.channel).approvals.decide(caller, "apr_1", approved)

    async def get_approval(self) -> PendingApproval:
        asked = await self.store.approvals.find("apr_1")
        assert asked is not None
        return asked

    async def votes(self) -> list[ApprovalVote]:
        asked = await self.get_approval()
        return list(await self.store.approvals.votes(asked.owner, "apr_1"))

    async def actions(self) -> list[str]:
        """Return what the audit log says of the question."""
        return [line.action for line in await self.store.audit.lines(subject="apr_1")]

    async def store_old_vote(self, vote: ApprovalVote) -> None:
        """Store a vote as the version before did: without the keys of the person, and without claims."""
        asked = await self.get_approval()
        async with self.store.transaction() as transaction:
            transaction.count_vote(asked.owner, "apr_1", seen=asked.voted)
            transaction.add_vote(vote.replace(person_keys=(), claims={}))
