"""Keeps what is held by leases, and gives up in time what could not be kept."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from contextlib import suppress
from typing import TypeVar

from frontdesk.errors import StoreUnavailableError

H = TypeVar("H", bound=Hashable)

_A_LEASE = 4
"""How often a lease is renewed in the time for which it is good."""
_LONG_AGO = float("-inf")


async def keep(
    seconds: float,
    held: Callable[[], Sequence[H]],
    renew: Callable[[Sequence[H]], Awaitable[Collection[H]]],
    give_up: Callable[[H], None],
) -> None:
    """Renews what is held, again and again; what was lost, or may soon be another's, is given up.

    `renew` returns what it knows to be lost.
    """
    pause, now = seconds / _A_LEASE, asyncio.get_running_loop().time
    good: dict[H, float] = {}
    while True:
        await asyncio.sleep(pause)
        began, present = now(), held()
        # One that is not known yet was taken since the last look.
        good = {one: good.get(one, began - pause) for one in present}
        with suppress(StoreUnavailableError, TimeoutError):
            async with asyncio.timeout(pause):
                lost = await renew(present)
            good = dict.fromkeys(present, began) | dict.fromkeys(lost, _LONG_AGO)
        for one, last in good.items():
            # At the next look it could be too late.
            if now() + pause > last + seconds - pause / 2:
                give_up(one)
