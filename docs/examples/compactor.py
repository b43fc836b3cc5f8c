"""Compacts conversations with a function of the operator's own, and keeps WebSockets on a short leash."""

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel, SocketLimits


async def count(messages: list) -> str:
    """Annotated as a list, the function gets the whole conversation."""
    return f"message {len(messages)}"


def shorten(messages: list) -> str:
    """What stands for a conversation. An agent could write it as well: `compactor=Agent(...)`."""
    return "; ".join(f"{message.role} said {message.text[:40]}" for message in messages)


responses = ResponsesChannel(
    compactor=shorten,
    sockets=SocketLimits(max_open=100, max_message_bytes=1024 * 1024, messages_per_minute=60, idle_seconds=300),
)
host = AgentFrameworkHost(target=count, channels=[responses, InvocationsChannel()])
