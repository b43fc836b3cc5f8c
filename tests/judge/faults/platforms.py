"""A chat platform that fails."""

import asyncio
from random import Random

from frontdesk_testing.messages.platform.faults import FaultKind
from tests.judge.court import Court

KINDS: tuple[FaultKind, ...] = ("unavailable", "error", "cut_before", "cut_after", "flood")


async def trouble(court: Court, rng: Random) -> None:
    """Have a platform fail for a while, or cut a few calls after it has done what they ask for."""
    platform = court.site.platforms[rng.choice(sorted(court.site.platforms))]
    kind = rng.choice(KINDS)
    more = {"retry_after": 0.2} if kind == "flood" else {}
    await platform.fail(kind, method="send", times=rng.randrange(1, 30), **more)
    await asyncio.sleep(rng.random())
    await platform.recover()
