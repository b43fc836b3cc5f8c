"""A clock that jumps."""

import asyncio
from contextlib import suppress
from random import Random

from psycopg import OperationalError

from tests.judge.court import Court

DAY = 86_400.0
MAX_DRAIN_SECONDS = 30.0
_PAUSE = 0.1


async def jump(court: Court, rng: Random) -> None:
    """Move the clock ahead or back, set it right a little later, and wait until what was queued by it is delivered.

    No process starts in the meantime. One that starts believes its clock: by a clock that is wrong by a day, it calls
    deliveries too old that another process has queued by the right one, or the other way round.
    """
    court.site.set_clock(rng.choice((2 * DAY, DAY / 2, 3600.0, -3600.0, -DAY)))
    await asyncio.sleep(rng.choice((0.3, 1.0, 2.0)))
    court.site.set_clock(0)
    with suppress(TimeoutError, OperationalError):
        async with asyncio.timeout(MAX_DRAIN_SECONDS):
            while court.site.count_misdated():  # noqa: ASYNC110 - other processes deliver it
                await asyncio.sleep(_PAUSE)
