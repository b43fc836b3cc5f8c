"""A clock that jumps."""

import asyncio
from random import Random

from tests.judge.court import Court

DAY = 86_400.0


async def jump(court: Court, rng: Random) -> None:
    """Move the clock ahead or back, and set it right a little later."""
    court.site.set_clock(rng.choice((2 * DAY, DAY / 2, 3600.0, -3600.0, -DAY)))
    await asyncio.sleep(rng.choice((0.3, 1.0, 2.0)))
    court.site.set_clock(0)
