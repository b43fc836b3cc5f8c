"""Serves a plain async generator: no model, and no type of any framework."""

from collections.abc import AsyncIterator

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel


async def shout(text: str) -> AsyncIterator[str]:
    """Repeats what it is told, louder."""
    for word in text.split():
        yield word.upper() + " "


host = AgentFrameworkHost(target=shout, channels=[InvocationsChannel()])
