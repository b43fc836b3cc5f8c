"""Profile 4, a claim: who was proved to be of the staff may come in, whatever they are called here."""

from collections.abc import Mapping

from frontdesk import AgentFrameworkHost, AuthPolicy, Principal
from frontdesk.channels.invocations import InvocationsChannel

BADGES = {
    b"badge-of-alice-0001": Principal(id="alice", claims={"groups": ["staff", "kitchen"]}),
    b"badge-of-bob-000002": Principal(id="bob", claims={"groups": ["guests"]}),
}


class Badges:
    """Stands in for `BearerAuth(issuer=..., audience=...)`, whose claims come from an identity provider."""

    name = "badges"

    async def authenticate(self, headers: Mapping[bytes, bytes]) -> Principal | None:
        return BADGES.get(headers.get(b"x-badge", b""))


async def greet(text: str) -> str:
    return f"Welcome. You said: {text}"


host = AgentFrameworkHost(
    target=greet,
    channels=[InvocationsChannel(auth=Badges())],
    default_allowlist=AuthPolicy.linked_claim_allowlist("groups", ["staff", "management"]),
)
