"""Notify tasks that wait for changes of a run."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class RunSignals:
    """Signals of runs, each with its subscribers."""

    def __init__(self, poll: float) -> None:
        """`poll` is after how many seconds a subscriber looks at the store anyway."""
        self._poll = poll
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def notify(self, run_id: str) -> None:
        """Wake the subscribers of a run; an empty id stands for every run."""
        found = self._waiting.get(run_id, ()) if run_id else [one for many in self._waiting.values() for one in many]
        for event in found:
            event.set()

    @asynccontextmanager
    async def subscribe(self, run_id: str) -> AsyncGenerator["RunSignal"]:
        """Subscribe to everything that is written from now on."""
        event = asyncio.Event()
        waiting = self._waiting.setdefault(run_id, set())
        waiting.add(event)
        try:
            yield RunSignal(event, self._poll)
        finally:
            waiting.discard(event)
            if not waiting and self._waiting.get(run_id) is waiting:
                del self._waiting[run_id]


class RunSignal:
    """The signal of one subscriber."""

    def __init__(self, event: asyncio.Event, poll: float) -> None:
        self._event = event
        self._poll = poll

    def clear(self) -> None:
        """Forget what was signalled so far."""
        self._event.clear()

    async def wait(self) -> None:
        """Wait for a signal, or until it is time to look."""
        try:
            async with asyncio.timeout(self._poll):
                await self._event.wait()
        except TimeoutError:
            return
