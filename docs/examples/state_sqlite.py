"""Keeps what it was told in a SQLite file. Stop it, start it again, and go on with the session."""

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel


async def count(messages: list) -> str:
    """Annotated as a list, the function gets the whole conversation."""
    return f"This is message {len(messages)}."


# The directory is made where the host is started.
host = AgentFrameworkHost(target=count, channels=[InvocationsChannel()], state_dir="state")
