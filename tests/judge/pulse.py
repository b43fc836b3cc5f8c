"""Notices that hosts are starved: where a machine has too much to do, leases run out without a fault of the judge's."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.judge.court import Court
from tests.judge.site import Process
from tests.judge.wire import CutError

LATE = 1.0
"""How many seconds an answer to nothing may take: a third of a lease."""
_PAUSE = 0.2


@asynccontextmanager
async def watched(court: Court) -> AsyncIterator[None]:
    """Ask each host all the time whether it is there, and count the times at which it says so too late."""
    tasks = [asyncio.create_task(_watch(court, host)) for host in court.site.hosts]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _watch(court: Court, host: Process) -> None:
    while True:
        asked, quiet = time.monotonic(), court.quiet
        with suppress(CutError):
            await host.get("/healthz")
        # The judge's own process may have been the one that waited.
        await asyncio.sleep(_PAUSE)
        if time.monotonic() - asked > LATE + _PAUSE and quiet and court.quiet:
            court.starve()
