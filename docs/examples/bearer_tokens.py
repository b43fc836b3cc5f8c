"""People bring tokens of their identity provider, programs bring keys; what one makes does not exist for another."""

import os

from frontdesk import AgentFrameworkHost, ApiKeyAuth, BearerAuth
from frontdesk.channels.invocations import InvocationsChannel


async def count(messages: list) -> str:
    """Annotated as a list, the function gets the whole conversation."""
    return f"message {len(messages)}"


tokens = BearerAuth(
    issuer=os.environ.get("ISSUER", "https://login.example.com"),
    audience="api://concierge",
    required_claims={"scope": "chat"},
)
keys = ApiKeyAuth({"robot": "the-key-of-the-robot"})
host = AgentFrameworkHost(target=count, channels=[InvocationsChannel(auth=[tokens, keys])])
