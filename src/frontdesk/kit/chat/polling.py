"""Fetches a platform's events again and again; one that can't be processed does not stop the others."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from frontdesk.errors import CodecError, FrontdeskError, InvalidRequestError, PushError, RequestError
from frontdesk.loggers import runs as log

T = TypeVar("T")
Fetch = Callable[[int], Awaitable[Sequence[tuple[int, bytes]]]]
Take = Callable[[bytes], Awaitable[None]]

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 30.0
"""The seconds between two tries."""
_MOST_TRIES = 10
"""The number of tries of an event that fails with an error that nobody foresaw."""


async def persist(what: str, call: Callable[[], Awaitable[T]]) -> T:
    """Call a function until it succeeds, with longer and longer pauses between; failures are logged."""
    pause = FIRST_PAUSE
    while True:
        try:
            return await call()
        except FrontdeskError as error:
            asked = error.retry_after if isinstance(error, (PushError, RequestError)) else None
            wait = pause if asked is None else asked
            log.warning("%s did not work, and is tried again in %.2f s: %s", what, wait, error)
        except Exception as error:  # No code awaits the task of this, and it would never go on.
            wait = pause
            log.error("%s failed, and is tried again in %.2f s", what, wait, exc_info=error)
        await asyncio.sleep(wait)
        pause = min(pause * 2, LONGEST_PAUSE)


class Poller:
    """Fetches events from an offset on, and stores them before it fetches more.

    `fetch` gets the number of the first event that is wanted, and returns events with their numbers. `take` stores one;
    one that can't be read is logged and skipped, because it would block the others for ever. So is one that has failed
    a few times with an error that nobody foresaw.
    """

    def __init__(self, channel: str, fetch: Fetch, take: Take, *, offset: int = 0) -> None:
        self._channel = channel
        self._fetch = fetch
        self._take = take
        self.offset = offset
        self._tried, self._tries = -1, 0

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            await persist(f"polling for {self._channel}", self.poll)

    async def poll(self) -> None:
        """Fetch events once and take them; the offset never passes an event that was not stored."""
        for number, event in await self._fetch(self.offset):
            try:
                await self._take(event)
            except (InvalidRequestError, CodecError) as error:
                log.error("event %s of %s is passed over: %s", number, self._channel, error)
            except FrontdeskError:
                raise
            except Exception as error:
                if self._count_try(number) < _MOST_TRIES:
                    raise
                log.error("event %s of %s is passed over", number, self._channel, exc_info=error)
            self.offset = max(self.offset, number + 1)

    def _count_try(self, number: int) -> int:
        """Count a try of an event, and return how many there were."""
        self._tries = self._tries + 1 if number == self._tried else 1
        self._tried = number
        return self._tries
