"""Profile 3, a list of users: of those whom the channel has verified, the ones on the list may come in."""

from frontdesk import AgentFrameworkHost, ApiKeyAuth, AuthPolicy
from frontdesk.channels.invocations import InvocationsChannel


async def greet(text: str) -> str:
    return f"Welcome. You said: {text}"


async def guests() -> list[str]:
    """Asked again every minute; in earnest this reads a file or a table."""
    return ["alice"]


auth = ApiKeyAuth({"alice": "alice-key-for-the-laptop", "bob": "bob-key-for-everything"})
host = AgentFrameworkHost(
    target=greet,
    channels=[InvocationsChannel(auth=auth)],
    default_allowlist=AuthPolicy.native_allowlist(guests, cache_seconds=60),
)
