"""The one way from a test into a host: its parts, which nothing else outside may reach."""

from typing import Any, cast

from frontdesk.abc.store import HostStateStore
from frontdesk.host.parts import Parts
from frontdesk.sessions.active import ActiveRun


def parts_of(host: Any) -> Parts:
    """Return the parts of a host, or of the context that it gave to a channel; for tests that break one of them."""
    return cast("Parts", host._parts)


def store_of(host: Any) -> HostStateStore:
    """Return the store of a host, to see what is kept."""
    return parts_of(host).store


def active_runs(host: Any) -> list[ActiveRun]:
    """Return the runs of a host that have not ended."""
    return parts_of(host).active.running()
