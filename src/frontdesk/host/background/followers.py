"""Readers of background streams: they get the past updates and then the live ones, each at its own pace."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from frontdesk.abc.store import HostStateStore
from frontdesk.data.codec import decode
from frontdesk.data.result import HostedRunResult, HostedStreamResult
from frontdesk.data.run import FINAL, RunRecord
from frontdesk.errors import NotFoundError
from frontdesk.host.background.signals import RunSignals
from frontdesk.kit.aio.large import run_sized
from frontdesk.kit.aio.retry import until_available
from frontdesk.kit.framework.types import updates_of
from frontdesk.sessions.job import EventLog, Numbered

PAGE = 200
_PAUSE = 0.5
Show = Callable[[RunRecord], Awaitable[RunRecord]]
"""Returns the end of a run as its reader may see it."""
Outcome = list[HostedRunResult[Any]]
"""The result of a run, once it has ended."""


class Followers:
    """Reads the events of background runs, of this process and of any other."""

    def __init__(self, store: HostStateStore, signals: RunSignals) -> None:
        self._store = store
        self._signals = signals
        self.logs: dict[tuple[str, str], EventLog] = {}
        """The logs of the runs that are at work here."""

    def stream(self, run: RunRecord, show: Show) -> HostedStreamResult[Any]:
        """Return the stream of a run from its first update; closing it leaves the run alone."""

        async def updates(outcome: Outcome) -> AsyncGenerator[Any, None]:
            ended: list[RunRecord] = []
            async for update in self._followed(run, ended):
                yield update
            outcome.append(await _shown_end(ended[0], show))

        return _stream_of(run, updates)

    def replay(self, run: RunRecord, show: Show) -> HostedStreamResult[Any]:
        """Return the stream of a run that keeps no events: once it has ended, what it came to."""

        async def updates(outcome: Outcome) -> AsyncGenerator[Any, None]:
            ending = await _shown_end(await self.ended(run), show)
            for update in updates_of(ending.result):
                yield update
            outcome.append(ending)

        return _stream_of(run, updates)

    async def ended(self, run: RunRecord) -> RunRecord:
        """Wait for the end of a run, here or in another process, and return it as it ended."""
        async with self._signals.subscribe(run.run_id) as signal:
            while True:
                signal.clear()
                record = await self._ended(run.owner, run.run_id)
                if record is not None:
                    return record
                await signal.wait()

    async def _followed(self, run: RunRecord, ended: list[RunRecord]) -> AsyncGenerator[Any, None]:
        """Yield the updates of a run until it has ended, and note its end."""
        after = 0
        async with self._signals.subscribe(run.run_id) as signal:
            while not ended:
                signal.clear()
                page, end = await self._read(run.owner, run.run_id, after)
                for number, update in page:
                    after = number
                    yield update
                if len(page) >= PAGE:
                    # A store in memory never waits, nor does a reader who has all of this already.
                    await asyncio.sleep(0)
                if page:
                    continue
                if end is not None:
                    ended.append(end)
                else:
                    await signal.wait()

    async def _read(self, owner: str, run_id: str, after: int) -> tuple[list[Numbered], RunRecord | None]:
        """Read the updates after a number, and the run if it has ended; wait for a store that is away."""
        log = self.logs.get((owner, run_id))
        logged = None if log is None else log.after(after)
        if logged is not None:
            return logged, None

        async def read() -> tuple[list[Numbered], RunRecord | None]:
            # The end first: the last events are written with it.
            end = await self._ended(owner, run_id)
            return await self._page(owner, run_id, after), end

        return await until_available(read, pause=_PAUSE)

    async def _page(self, owner: str, run_id: str, after: int) -> list[Numbered]:
        events = await self._store.runs.events(owner, run_id, after=after, limit=PAGE)
        size = sum(len(event.data) for event in events)
        return await run_sized(size, lambda: [(event.number, decode(event.data)) for event in events])

    async def _ended(self, owner: str, run_id: str) -> RunRecord | None:
        record = await self._store.runs.get(owner, run_id)
        if record is None:
            raise NotFoundError("There is no such run.")
        return record if record.status in FINAL else None


def _stream_of(run: RunRecord, updates: Callable[[Outcome], AsyncGenerator[Any, None]]) -> HostedStreamResult[Any]:
    """Make a stream whose closing leaves the run alone; `updates` notes how that ended."""
    outcome: Outcome = []
    generator = updates(outcome)
    return HostedStreamResult(run, generator, outcome, generator.aclose)


async def _shown_end(record: RunRecord, show: Show) -> HostedRunResult[Any]:
    """Return how a run ended, as its reader may see it."""
    shown = await show(record)
    return HostedRunResult(result=shown.result, run=shown)
