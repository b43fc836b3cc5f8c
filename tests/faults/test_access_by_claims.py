"""Access by claims: whom a proved claim lets in or links, and who only looks like them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from frontdesk import AgentFrameworkHost, AuthPolicy, BearerAuth, OAuthIdentityLinker, Oidc
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.link import LinkProof
from frontdesk_testing import HostClient, serving
from frontdesk_testing.internals import get_components, get_store
from frontdesk_testing.messages import MessageChannel
from tests.access_matrix.issuer import AUDIENCE, Issuers, serve_issuers
from tests.scenarios.cast import PlainAgent

ADA = ChannelIdentity(channel="messages", native_id="ada")


class Door:
    """A host with a chat and an HTTP door, where Ada's chat account is linked with `u1` of the north."""

    def __init__(self, host: AgentFrameworkHost, client: HostClient, issuers: Issuers, subject: str) -> None:
        self.host = host
        self._client = client
        self._issuers = issuers
        self._subject = subject

    async def key(self) -> str:
        found = await get_store(self.host).identities.find(ADA)
        assert found is not None
        return found.isolation_key

    async def link(self, **claims: Any) -> None:
        links = get_components(self.host).links
        assert links is not None
        await links.join(LinkProof(linker="oauth", identity=ADA, subject=self._subject, claims=claims))

    async def unlink(self) -> None:
        links = get_components(self.host).links
        assert links is not None
        await links.part(ADA)

    async def read(self, tenant: str) -> int:
        """Asks for something that nobody has."""
        headers = {"authorization": f"Bearer {self._issuers.token(tenant)}"}
        return (await self._client.http.get("/invocations/run_unknown", headers=headers)).status_code

    async def call(self, tenant: str, **claims: Any) -> tuple[int, str | None]:
        """The status, and whose memory the call has written to."""
        headers = {"authorization": f"Bearer {self._issuers.token(tenant, **claims)}"}
        answer = await self._client.http.post("/invocations", json={"message": "hello"}, headers=headers)
        if answer.status_code != 200:
            return answer.status_code, None
        name = f"{self._issuers.url(tenant)}|{claims.get('sub', 'u1')}"
        found = await get_store(self.host).identities.find(ChannelIdentity(channel="invocations", native_id=name))
        return answer.status_code, None if found is None else found.isolation_key


@asynccontextmanager
async def _door(**settings: Any) -> AsyncIterator[Door]:
    async with serve_issuers() as issuers:
        provider = Oidc(issuers.url("north"))
        linker = OAuthIdentityLinker(provider, client_id="frontdesk", public_url="https://concierge.example")
        auth = BearerAuth(issuer=[issuers.url("north"), issuers.url("south")], audience=AUDIENCE)
        secret = "the-secret-of-the-platform"
        chat = MessageChannel(platform_url="http://127.0.0.1:1", token="a-token", secret=secret)
        host = AgentFrameworkHost(
            PlainAgent(), channels=[InvocationsChannel(auth=auth), chat], linker=linker, **settings
        )
        async with serving(host) as client:
            yield Door(host, client, issuers, f"{issuers.url('north')}|u1")


async def test_a_verified_claim_is_one_persons_on_every_channel() -> None:
    async with _door() as door:
        await door.link()
        assert await door.call("north") == (200, await door.key())


async def test_who_only_reads_was_told_to_link_although_a_verified_claim_does_that() -> None:
    async with _door(default_allowlist=AuthPolicy.require_link()) as door:
        assert await door.read("north") == 403
        await door.link()
        assert await door.read("north") == 404
        assert await door.read("south") == 403


async def test_the_same_subject_of_another_tenant_was_taken_for_a_linked_person() -> None:
    async with _door() as door:
        await door.link()
        for tenant, claims in (("south", {}), ("north", {"sub": "u2"}), ("north", {"sub": "u1 "})):
            status, key = await door.call(tenant, **claims)
            assert status == 200
            assert key not in (None, await door.key()), (tenant, claims)


async def test_nobody_is_linked_silently_where_the_operator_says_no() -> None:
    async with _door(link_verified_claims=False) as door:
        await door.link()
        status, key = await door.call("north")
        assert (status, key == await door.key()) == (200, False)


async def test_a_claim_of_the_link_was_believed_after_the_link_had_ended() -> None:
    rule = AuthPolicy.linked_claim_allowlist("groups", "staff")
    async with _door(default_allowlist=rule) as door:
        await door.link(groups=["staff"])
        assert type(await door.host.authorize(ADA)).__name__ == "Allowed"
        await door.unlink()
        assert type(await door.host.authorize(ADA)).__name__ == "LinkRequired"


async def test_claims_of_the_token_and_of_the_link_were_put_together() -> None:
    """A group in the token of one account, and another in the link of the next, are not one person's two groups."""
    rule = AuthPolicy.linked_claim_allowlist("groups", "staff")
    async with _door(default_allowlist=rule) as door:
        assert (await door.call("north", groups=["guests"]))[0] == 403
        assert (await door.call("south", groups=["guests"]))[0] == 403
        assert (await door.call("south", groups=["staff"]))[0] == 200
