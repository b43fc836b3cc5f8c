"""Readers of background streams: what was said so far, and then what is said, each at its own pace."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from frontdesk.abc.store import HostStateStore
from frontdesk.data.codec import decode
from frontdesk.data.result import HostedRunResult, HostedStreamResult
from frontdesk.data.run import FINAL, RunEvent, RunRecord
from frontdesk.errors import NotFoundError, StoreUnavailableError
from frontdesk.host.background.signals import RunSignals
from frontdesk.kit.aio.large import run_sized
from frontdesk.kit.framework.types import updates_of
from frontdesk.sessions.job import EventLog, Numbered

PAGE = 200
_PAUSE = 0.5
Show = Callable[[RunRecord], Awaitable[RunRecord]]
"""The end of a run as its reader may see it."""
T = TypeVar("T")
Look = Callable[[int], Awaitable[tuple[list[tuple[int, T]], RunRecord | None]]]
"""What there is of a run above a number, each with its own; and the run itself, if it has ended."""


class Followers:
    """Reads the events of background runs, of this process and of any other."""

    def __init__(self, store: HostStateStore, signals: RunSignals) -> None:
        self._store = store
        self._signals = signals
        self.logs: dict[tuple[str, str], EventLog] = {}
        """The logs of the runs that are at work here."""

    def stream(self, run: RunRecord, show: Show) -> HostedStreamResult[Any]:
        """The stream of a run from its first update; closing it leaves the run alone."""
        outcome: list[HostedRunResult[Any]] = []
        updates = self._updates(run, show, outcome)
        return HostedStreamResult(run, updates, outcome, updates.aclose)

    async def _updates(
        self, run: RunRecord, show: Show, outcome: list[HostedRunResult[Any]]
    ) -> AsyncGenerator[Any, None]:
        ended: list[RunRecord] = []

        def look(after: int) -> Awaitable[tuple[list[Numbered], RunRecord | None]]:
            return self._look(run.owner, run.run_id, after)

        async for update in self._followed(run.run_id, 0, look, ended):
            yield update
        record = await show(ended[0])
        outcome.append(HostedRunResult(result=record.result, run=record))

    def replay(self, run: RunRecord, show: Show) -> HostedStreamResult[Any]:
        """The stream of a run that keeps no events: once it has ended, what it came to."""
        outcome: list[HostedRunResult[Any]] = []
        updates = self._replayed(run, show, outcome)
        return HostedStreamResult(run, updates, outcome, updates.aclose)

    async def _replayed(
        self, run: RunRecord, show: Show, outcome: list[HostedRunResult[Any]]
    ) -> AsyncGenerator[Any, None]:
        record = await show(await self.ended(run))
        for update in updates_of(record.result):
            yield update
        outcome.append(HostedRunResult(result=record.result, run=record))

    async def ended(self, run: RunRecord) -> RunRecord:
        """The run as it ended, here or in another process; waits for that."""
        async with self._signals.subscribe(run.run_id) as signal:
            while True:
                signal.clear()
                record = await self._ended(run.owner, run.run_id)
                if record is not None:
                    return record
                await signal.wait()

    async def events(self, owner: str, run_id: str, after: int) -> AsyncIterator[RunEvent]:
        """The events of a run, from the past and then live."""

        async def look(after: int) -> tuple[list[tuple[int, RunEvent]], RunRecord | None]:
            # The end first: the last events are written with it.
            end = await self._ended(owner, run_id)
            found = await self._store.runs.events(owner, run_id, after=after, limit=PAGE)
            return [(event.number, event) for event in found], end

        async for event in self._followed(run_id, after, look, []):
            yield event

    async def _followed(
        self, run_id: str, after: int, look: Look[T], ended: list[RunRecord]
    ) -> AsyncGenerator[T, None]:
        """What `look` finds above a number, until the run has ended, which is noted then."""
        async with self._signals.subscribe(run_id) as signal:
            while not ended:
                signal.clear()
                found, end = await look(after)
                for number, one in found:
                    after = number
                    yield one
                if len(found) >= PAGE:
                    # A store in memory never waits, nor does a reader who has all of this already.
                    await asyncio.sleep(0)
                if found:
                    continue
                if end is not None:
                    ended.append(end)
                else:
                    await signal.wait()

    async def _look(self, owner: str, run_id: str, after: int) -> tuple[list[Numbered], RunRecord | None]:
        """What there is above a number, and the run if it has ended; a store that is away says nothing about that."""
        log = self.logs.get((owner, run_id))
        found = None if log is None else log.after(after)
        if found is not None:
            return found, None
        while True:
            try:
                # The end first: the last events are written with it.
                end = await self._ended(owner, run_id)
                return await self._page(owner, run_id, after), end
            except StoreUnavailableError:
                await asyncio.sleep(_PAUSE)

    async def _page(self, owner: str, run_id: str, after: int) -> list[Numbered]:
        found = await self._store.runs.events(owner, run_id, after=after, limit=PAGE)
        size = sum(len(event.data) for event in found)
        return await run_sized(size, lambda: [(event.number, decode(event.data)) for event in found])

    async def _ended(self, owner: str, run_id: str) -> RunRecord | None:
        record = await self._store.runs.get(owner, run_id)
        if record is None:
            raise NotFoundError("There is no such run.")
        return record if record.status in FINAL else None
