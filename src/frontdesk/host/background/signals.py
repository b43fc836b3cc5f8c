"""Notify tasks that wait for changes of a run."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import chain


class RunSignals:
    """Signals of runs, each with its subscribers."""

    def __init__(self, poll: float) -> None:
        """Make the signals; a subscriber reads the store every `poll` seconds even without one."""
        self._poll = poll
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def notify(self, run_id: str) -> None:
        """Wake the subscribers of a run; an empty id stands for every run."""
        events = self._waiting.get(run_id, ()) if run_id else chain.from_iterable(self._waiting.values())
        for event in events:
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
        """Wait for a signal, or until it is time to read the store."""
        try:
            async with asyncio.timeout(self._poll):
                await self._event.wait()
        except TimeoutError:
            return
