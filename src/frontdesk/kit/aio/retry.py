"""Tries again what failed because the store was away."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from frontdesk.errors import StoreUnavailableError

T = TypeVar("T")

PAUSE = 1.0
"""The number of seconds between two attempts."""


def never() -> bool:
    """Never give up."""
    return False


async def until_available(
    attempt: Callable[[], Awaitable[T]], *, pause: float = PAUSE, give_up: Callable[[], bool] = never
) -> T:
    """Return what an attempt returns once the store is there; raise that it is away when `give_up` says so."""
    while True:
        try:
            return await attempt()
        except StoreUnavailableError:
            if give_up():
                raise
        await asyncio.sleep(pause)
