"""People of a chat sign in at their identity provider; who is of the staff there may come in here.

python -m frontdesk_testing.issuer
frontdesk serve docs/examples/oauth_link.py:host

The first line, in a terminal of its own, is a stand-in for the provider. Then write /link on http://127.0.0.1:8000/chat.
"""

import os

from frontdesk import AgentFrameworkHost, AuthPolicy, OAuthIdentityLinker, Oidc
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.web import WebChatChannel


async def count(messages: list) -> str:
    """Annotated as a list, the function gets the whole conversation."""
    return f"message {len(messages)}"


# A page stands in for a chat app: any chat channel can be linked in the same way.
chat = WebChatChannel(name="chat", title="Chat", allowlist=AuthPolicy.linked_claim_allowlist("groups", ["staff"]))
# Or Entra(tenants=["..."]), Google(domains=["example.com"]), GitHub().
linker = OAuthIdentityLinker(
    Oidc(os.environ.get("ISSUER", "http://127.0.0.1:8901"), title="Example"),
    client_id=os.environ.get("CLIENT_ID", "concierge"),
    client_secret=os.environ.get("CLIENT_SECRET"),
    public_url=os.environ.get("PUBLIC_URL", "http://127.0.0.1:8000"),
)
host = AgentFrameworkHost(target=count, channels=[InvocationsChannel(), chat], linker=linker)
