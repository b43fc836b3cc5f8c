"""Keeps a host that is to be killed from dropping what has expired meanwhile."""

from typing import Any

from frontdesk import AgentFrameworkHost
from frontdesk_testing.internals import get_store


async def stop_sweep(host: AgentFrameworkHost) -> None:
    """Stop the sweep of a started host: its commits would be counted by a crash plan as those of requests."""
    sweep: Any = getattr(get_store(host), "_sweep", None)
    if sweep is not None:
        await sweep.stop()
