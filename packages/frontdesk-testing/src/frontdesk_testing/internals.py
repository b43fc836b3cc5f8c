"""Access to the components of a host for tests. No other code outside the package may use them."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from frontdesk.host.wiring import Components
from frontdesk.interfaces.store import HostStateStore
from frontdesk.sessions.active import ActiveRun


def get_components(host: Any) -> Components:
    """Return the parts of a host, or of the context that it gave to a channel. For tests that break one of them."""
    return cast("Components", host._parts)


def get_store(host: Any) -> HostStateStore:
    """Return the store of a host."""
    return get_components(host).store


def active_runs(host: Any) -> list[ActiveRun]:
    """Return the runs of a host that have not ended."""
    return get_components(host).active.list_running()


@contextmanager
def claims_wait_for(store: HostStateStore, count: int) -> Generator[None]:
    """Claim no batch of messages before this number waits, so that load does not split it."""
    inbox: Any = store.inbox
    plain, seen = inbox.claim_bundle, asyncio.Event()

    async def claim_bundle(*given: Any, **more: Any) -> Any:
        while not seen.is_set():
            if len(await inbox.waiting("nobody")) >= count:
                seen.set()
            else:
                await asyncio.sleep(0.01)
        return await plain(*given, **more)

    inbox.claim_bundle = claim_bundle
    try:
        yield
    finally:
        seen.set()
        inbox.claim_bundle = plain
