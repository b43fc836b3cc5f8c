"""Followers of background streams: each receives past and then live updates at its own pace."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import chain
from typing import Any

from frontdesk.concurrency.offload import run_sized
from frontdesk.concurrency.timeouts import until_available
from frontdesk.errors import NotFoundError
from frontdesk.errors.requests import NO_RUN
from frontdesk.framework.types import list_updates
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.result import HostedRunResult, HostedStreamResult
from frontdesk.models.run import FINAL, RunRecord
from frontdesk.serialization.codec import decode
from frontdesk.sessions.job import EventLog, Numbered


class RunSignals:
    """Signals of runs, each with its subscribers."""

    def __init__(self, poll: float) -> None:
        """Create the signals. Subscribers also read the store every `poll` seconds without one."""
        self._poll = poll
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def notify(self, run_id: str) -> None:
        """Wake the subscribers of a run. An empty id means every run."""
        events = self._waiting.get(run_id, ()) if run_id else chain.from_iterable(self._waiting.values())
        for event in events:
            event.set()

    @asynccontextmanager
    async def subscribe(self, run_id: str) -> AsyncGenerator["RunSignal"]:
        """Subscribe to all later writes."""
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
    def __init__(self, event: asyncio.Event, poll: float) -> None:
        self._event = event
        self._poll = poll

    def clear(self) -> None:
        """Reset the signal."""
        self._event.clear()

    async def wait(self) -> None:
        """Wait for a signal, or until the next poll of the store is due."""
        try:
            async with asyncio.timeout(self._poll):
                await self._event.wait()
        except TimeoutError:
            return


PAGE_EVENTS = 200
_RETRY_INTERVAL_SECONDS = 0.5
Show = Callable[[RunRecord], Awaitable[RunRecord]]
"""Returns the end of a run as its reader may see it."""
WaitForEnd = Callable[[RunRecord], Awaitable[RunRecord]]
"""Waits for the end of a run, and returns its final record."""
Outcome = list[HostedRunResult[Any]]
"""The result of a run, once it has ended."""


class Followers:
    """Reads the events of background runs of any process."""

    def __init__(self, store: HostStateStore, signals: RunSignals) -> None:
        self._store = store
        self.signals = signals
        self.logs: dict[tuple[str, str], EventLog] = {}
        """The logs of the runs that are at work here."""

    def stream(self, run: RunRecord, show: Show) -> HostedStreamResult[Any]:
        """Return the stream of a run from its first update. Closing it does not affect the run."""

        async def updates(outcome: Outcome) -> AsyncGenerator[Any, None]:
            ended: list[RunRecord] = []
            async for update in self._follow(run, ended):
                yield update
            outcome.append(await _show_end(ended[0], show))

        return _build_stream(run, updates)

    def replay(self, run: RunRecord, show: Show, wait_for_end: WaitForEnd | None = None) -> HostedStreamResult[Any]:
        """Return the stream of a run without stored events: the outcome, once it has ended."""
        wait = wait_for_end or self.wait_for_end

        async def updates(outcome: Outcome) -> AsyncGenerator[Any, None]:
            ending = await _show_end(await wait(run), show)
            for update in list_updates(ending.result):
                yield update
            outcome.append(ending)

        return _build_stream(run, updates)

    async def list_stored(self, run: RunRecord) -> list[Any]:
        """Return the updates of a run that are stored so far: the first ones that its stream yields."""
        updates: list[Any] = []
        while page := (await self._read(run.owner, run.run_id, len(updates)))[0]:
            updates += [update for _, update in page]
        return updates

    async def wait_for_end(self, run: RunRecord) -> RunRecord:
        """Wait for the end of a run in any process, and return its final record."""
        async with self.signals.subscribe(run.run_id) as signal:
            while True:
                signal.clear()
                record = await self._find_ended(run.owner, run.run_id)
                if record is not None:
                    return record
                await signal.wait()

    async def _follow(self, run: RunRecord, ended: list[RunRecord]) -> AsyncGenerator[Any, None]:
        """Yield the updates of a run until it has ended, and append its final record to `ended`."""
        after = 0
        async with self.signals.subscribe(run.run_id) as signal:
            while not ended:
                signal.clear()
                page, end = await self._read(run.owner, run.run_id, after)
                for number, update in page:
                    after = number
                    yield update
                if len(page) >= PAGE_EVENTS:
                    # A store in memory never waits, nor does a reader who has all of this already.
                    await asyncio.sleep(0)
                if page:
                    continue
                if end is not None:
                    ended.append(end)
                else:
                    await signal.wait()

    async def _read(self, owner: str, run_id: str, after: int) -> tuple[list[Numbered], RunRecord | None]:
        """Read the updates after a number, and the run if it has ended. Wait while the store is unavailable."""
        log = self.logs.get((owner, run_id))
        logged = None if log is None else log.after(after)
        if logged is not None:
            return logged, None

        async def read() -> tuple[list[Numbered], RunRecord | None]:
            # The end first: the last events are written with it.
            end = await self._find_ended(owner, run_id)
            return await self._page(owner, run_id, after), end

        return await until_available(read, pause=_RETRY_INTERVAL_SECONDS)

    async def _page(self, owner: str, run_id: str, after: int) -> list[Numbered]:
        events = await self._store.runs.events(owner, run_id, after=after, limit=PAGE_EVENTS)
        size = sum(len(event.data) for event in events)
        return await run_sized(size, lambda: [(event.number, decode(event.data)) for event in events])

    async def _find_ended(self, owner: str, run_id: str) -> RunRecord | None:
        record = await self._store.runs.get(owner, run_id)
        if record is None:
            raise NotFoundError(NO_RUN)
        return record if record.status in FINAL else None


def _build_stream(run: RunRecord, updates: Callable[[Outcome], AsyncGenerator[Any, None]]) -> HostedStreamResult[Any]:
    """Create a stream whose closing does not affect the run. `updates` records the outcome."""
    outcome: Outcome = []
    generator = updates(outcome)
    return HostedStreamResult(run, generator, outcome, generator.aclose)


async def _show_end(record: RunRecord, show: Show) -> HostedRunResult[Any]:
    shown = await show(record)
    return HostedRunResult(result=shown.result, run=shown)
