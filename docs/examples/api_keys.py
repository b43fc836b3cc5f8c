"""Lets two principals in, each with keys of their own; what one of them makes does not exist for the other."""

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel


async def count(messages: list) -> str:
    """Annotated as a list, the function gets the whole conversation."""
    return f"message {len(messages)}"


# Printed by: python -c 'from frontdesk import ApiKeyAuth; print(ApiKeyAuth.hash("the key"))'
keys = {
    "alice": [
        "sha256:8df3258cf7a8d3a597567b14291e56a8da899cc08ffc57272bc74068ff53918b",
        "sha256:d218fde5c60a615234f538a818b9c37af8f66a48ddcec1964ff6beb411b1f3f2",
    ],
    "bob": "sha256:4ce1dd1cd789a0f8751c362e94cdd21d0470ca6243b1de85f8ca895df855d00a",
}
host = AgentFrameworkHost(target=count, channels=[InvocationsChannel(auth=ApiKeyAuth(keys))])
