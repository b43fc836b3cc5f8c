"""Profile 5, mixed: some users by name, and everyone of whom a claim was proved."""

from collections.abc import Mapping

from frontdesk import AgentFrameworkHost, ApiKeyAuth, AuthPolicy, Principal
from frontdesk.channels.invocations import InvocationsChannel

BADGES = {
    b"badge-of-alice-0001": Principal(id="alice", claims={"groups": ["staff"]}),
    b"badge-of-bob-000002": Principal(id="bob", claims={"groups": ["guests"]}),
}


class Badges:
    """Stands in for `BearerAuth(issuer=..., audience=...)`, whose claims come from an identity provider."""

    name = "badges"

    async def authenticate(self, headers: Mapping[bytes, bytes]) -> Principal | None:
        return BADGES.get(headers.get(b"x-badge", b""))


async def greet(text: str) -> str:
    return f"Welcome. You said: {text}"


# With several kinds of credentials the id of a principal has the name of its kind before it.
keys = ApiKeyAuth({"night-porter": "the-night-porters-key", "robot": "the-key-of-the-robot"})
host = AgentFrameworkHost(
    target=greet,
    channels=[InvocationsChannel(auth=[Badges(), keys])],
    default_allowlist=AuthPolicy.mixed(["api_key:night-porter"], "groups", ["staff"]),
)
