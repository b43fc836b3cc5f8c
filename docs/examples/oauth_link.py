"""People of a chat sign in at their identity provider; who is of the staff there may come in here."""

import os

from frontdesk import AgentFrameworkHost, AuthPolicy, OAuthIdentityLinker, Oidc
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.testing.messages import MessageChannel


async def count(messages: list) -> str:
    """Annotated as a list, the function gets the whole conversation."""
    return f"message {len(messages)}"


# The chat app of the testing kit stands in for a real one: start it with `python -m frontdesk.testing.messages`.
chat = MessageChannel(
    name="chat",
    platform_url=os.environ.get("CHAT_URL", "http://127.0.0.1:8901"),
    token=os.environ.get("BOT_TOKEN", "the-token-of-the-bot"),
    intake="polling",
    allowlist=AuthPolicy.linked_claim_allowlist("groups", ["staff"]),
)
# Or Entra(tenants=["..."]), Google(domains=["example.com"]), GitHub().
linker = OAuthIdentityLinker(
    Oidc(os.environ.get("ISSUER", "https://login.example.com"), title="Example"),
    client_id=os.environ.get("CLIENT_ID", "concierge"),
    client_secret=os.environ.get("CLIENT_SECRET"),
    public_url=os.environ.get("PUBLIC_URL", "http://127.0.0.1:8000"),
)
host = AgentFrameworkHost(target=count, channels=[InvocationsChannel(), chat], linker=linker)
