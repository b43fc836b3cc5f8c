"""Visitors of the page sign in at an identity provider; who is of the staff there may come in here."""

import os

from frontdesk import AgentFrameworkHost, AuthPolicy, OAuthIdentityLinker, Oidc
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.web import WebChatChannel


async def count(messages: list) -> str:
    """Annotated as a list, the function gets the whole conversation."""
    return f"message {len(messages)}"


# Or Entra(tenants=["..."]), Google(domains=["example.com"]), GitHub().
linker = OAuthIdentityLinker(
    Oidc(os.environ.get("ISSUER", "https://login.example.com"), title="Example"),
    client_id=os.environ.get("CLIENT_ID", "concierge"),
    client_secret=os.environ.get("CLIENT_SECRET"),
    # Where browsers open the page: at the provider, register this address with /link/callback behind it.
    public_url=os.environ.get("PUBLIC_URL", "http://127.0.0.1:8000"),
)
page = WebChatChannel(title="Staff desk", allowlist=AuthPolicy.linked_claim_allowlist("groups", ["staff"]))
host = AgentFrameworkHost(target=count, channels=[InvocationsChannel(), page], linker=linker)
