"""Calls a channel on behalf of a live answer, and turns every failure into a `PushError`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from frontdesk.errors import PushError, PushUnknownError
from frontdesk.loggers import deliveries as log

T = TypeVar("T")


async def call_platform(channel: str, work: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Return what a call of a channel returns; after so many seconds its outcome is unknown."""
    try:
        async with asyncio.timeout(seconds):
            return await work()
    except PushError:
        raise
    except TimeoutError:
        raise PushUnknownError(code="timeout") from None
    except Exception as error:
        log.error("a live answer on %s failed with an unexpected error: %s", channel, type(error).__name__)
        # Its text may quote an address with a token in it.
        log.debug("the live answer on %s failed", channel, exc_info=error)
        raise PushUnknownError(code="unexpected") from error
