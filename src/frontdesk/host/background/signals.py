"""Wakes whoever waits for news of a run."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Bells:
    """One bell for each run that somebody waits for."""

    def __init__(self, poll: float) -> None:
        """`poll` is how long one waits for a ring before one looks anyway."""
        self._poll = poll
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def ring(self, run_id: str) -> None:
        """There is news of a run; an empty id stands for every run."""
        found = self._waiting.get(run_id, ()) if run_id else [one for many in self._waiting.values() for one in many]
        for event in found:
            event.set()

    @asynccontextmanager
    async def heard(self, run_id: str) -> AsyncGenerator["Bell"]:
        """A bell that rings for everything that is written from now on."""
        event = asyncio.Event()
        waiting = self._waiting.setdefault(run_id, set())
        waiting.add(event)
        try:
            yield Bell(event, self._poll)
        finally:
            waiting.discard(event)
            if not waiting and self._waiting.get(run_id) is waiting:
                del self._waiting[run_id]


class Bell:
    """What one reader listens to."""

    def __init__(self, event: asyncio.Event, poll: float) -> None:
        self._event = event
        self._poll = poll

    def quiet(self) -> None:
        """From here on only new news counts."""
        self._event.clear()

    async def wait(self) -> None:
        """Returns when there is news, or when it is time to look."""
        try:
            async with asyncio.timeout(self._poll):
                await self._event.wait()
        except TimeoutError:
            return
