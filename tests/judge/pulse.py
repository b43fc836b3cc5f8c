"""Notices that hosts or their database are starved: then leases run out without a fault of the judge's."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

from psycopg import AsyncConnection, OperationalError

from tests.judge.court import Court
from tests.judge.wire import CutError

LATE = 1.0
"""How many seconds an answer to nothing may take: a third of a lease."""
_PAUSE = 0.2


@asynccontextmanager
async def watch(court: Court) -> AsyncIterator[None]:
    """Ask each host and the database all the time whether they are there, and count how often they say so too late."""
    tasks = [asyncio.create_task(_watch(court, partial(host.get, "/healthz"))) for host in court.site.hosts]
    if court.site.kind == "postgres":
        tasks.append(asyncio.create_task(_watch(court, partial(_commit, court.site.place))))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _watch(court: Court, ask: Callable[[], Awaitable[object]]) -> None:
    while True:
        asked, quiet = time.monotonic(), court.quiet
        with suppress(CutError, OperationalError):
            await ask()
        # The judge's own process may have been the one that waited.
        await asyncio.sleep(_PAUSE)
        if time.monotonic() - asked > LATE + _PAUSE and quiet and court.quiet:
            court.starve()


async def _commit(place: str) -> None:
    """Commit next to nothing, on the judge's own way to the database: a lease that is renewed waits as long.

    The message makes the commit wait for the disk. Postgres does not flush a transaction that has logged nothing.
    """
    async with await AsyncConnection.connect(place) as connection:
        await connection.execute("SELECT pg_logical_emit_message(true, 'judge', '')")
