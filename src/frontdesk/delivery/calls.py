"""Calls a channel, and turns every failure into a `PushError`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from frontdesk.errors import PushError, PushUnknownError
from frontdesk.loggers import deliveries as log

T = TypeVar("T")


async def call_platform(what: str, channel: str, work: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Return what a call of a channel returns; after so many seconds its outcome is unknown. Logs name it `what`."""
    try:
        async with asyncio.timeout(seconds):
            return await work()
    except PushError:
        raise
    except TimeoutError:
        raise PushUnknownError(code="timeout") from None
    except Exception as error:
        # A channel raises a `PushError` if it knows the outcome; with any other error it is unknown.
        log.error("a %s on %s failed with an unexpected error: %s", what, channel, type(error).__name__)
        # Its text may quote an address with a token in it.
        log.debug("the %s on %s failed", what, channel, exc_info=error)
        raise PushUnknownError(code="unexpected") from error
