"""Keeps what is held by leases, and gives up in time what could not be kept."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
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
    # Half a pause is left to end what is given up.
    wait, longest = pause, seconds - pause / 2
    good: dict[H, float] = {}
    while True:
        await asyncio.sleep(wait)
        began, present = now(), held()
        # One that is not known yet was taken since the last look.
        good = {one: good.get(one, began - pause) for one in present}
        oldest = min((last for last in good.values() if last != _LONG_AGO), default=began)
        try:
            async with asyncio.timeout(min(pause, max(oldest + longest - began, 0))):
                lost = await renew(present)
            good = dict.fromkeys(present, began) | dict.fromkeys(lost, _LONG_AGO)
            wait = pause
        except (StoreUnavailableError, TimeoutError):
            # Soon again: it may have been one connection, and another is there already.
            wait = pause / _A_LEASE
        for one, last in good.items():
            # At the next look it would be too late.
            if now() + wait >= last + longest:
                good[one] = _LONG_AGO
                give_up(one)
