"""Profile 1, open: whoever the channel has verified may come in."""

from frontdesk import AgentFrameworkHost, ApiKeyAuth, AuthPolicy
from frontdesk.channels.invocations import InvocationsChannel


async def greet(text: str) -> str:
    return f"Welcome. You said: {text}"


auth = ApiKeyAuth({"alice": "alice-key-for-the-laptop", "bob": "bob-key-for-everything"})
host = AgentFrameworkHost(target=greet, channels=[InvocationsChannel(auth=auth)], default_allowlist=AuthPolicy.open())
