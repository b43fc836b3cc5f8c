"""Keeps what it was told in Postgres. Start it twice on two ports: both serve every session."""

import os

from frontdesk import AgentFrameworkHost, Expiry, PostgresStateStore
from frontdesk.channels.invocations import InvocationsChannel


async def count(messages: list) -> str:
    """Annotated as a list, the function gets the whole conversation."""
    return f"This is message {len(messages)}."


# Such as postgresql://frontdesk:password@db.internal/frontdesk
store = PostgresStateStore(os.environ["DATABASE_URL"], expiry=Expiry(sessions=90 * 24 * 3600.0))
host = AgentFrameworkHost(target=count, channels=[InvocationsChannel()], store=store)
