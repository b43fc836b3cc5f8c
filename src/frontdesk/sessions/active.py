"""The runs of this process that have not ended."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress

from frontdesk.data.delivery import InboxItem
from frontdesk.data.run import RunRecord
from frontdesk.errors import RunExistsError
from frontdesk.kit.aio.tasks import present_task
from frontdesk.sessions.record import CANCELLED, Recorder
from frontdesk.sessions.turn import Turn
from frontdesk.sessions.turns import Turns


class ActiveRun:
    """A run in progress. It runs in the task that asked for it, so cancelling it cancels that task's present wait."""

    def __init__(self, turn: Turn, record: RunRecord, task: "asyncio.Task[object]") -> None:
        self.turn = turn
        self.record = record
        self.task = task
        self.cancel_requested = False
        self.cancellable = True
        self.interrupted = False
        """Whether it has to stop here without being recorded as ended."""
        self.ended: asyncio.Event | None = None

    async def uncancel(self) -> None:
        """Take back the cancellation of the task, once the run has ended by it."""
        with suppress(asyncio.CancelledError):
            # A run that cancelled itself has it still ahead.
            await asyncio.sleep(0)
        self.task.uncancel()


class ActiveRuns:
    """Finds a run in progress by its owner and its id."""

    def __init__(self, turns: Turns, recorder: Recorder, *, cancel_grace: float) -> None:
        self._runs: dict[tuple[str, str], ActiveRun] = {}
        self._reserved: set[tuple[str, str]] = set()
        self._turns = turns
        self._recorder = recorder
        self._cancel_grace = cancel_grace

    def __len__(self) -> int:
        return len(self._runs)

    @contextmanager
    def reserved(self, record: RunRecord) -> Generator[None]:
        """Keep the id of a run for it, until it begins in the same step in which the block is left."""
        key = (record.owner, record.run_id)
        if key in self._runs or key in self._reserved:
            raise RunExistsError
        self._reserved.add(key)
        try:
            yield
        finally:
            self._reserved.discard(key)

    def begin(self, turn: Turn, record: RunRecord) -> ActiveRun:
        """Register a run while the present task works on it."""
        key = (record.owner, record.run_id)
        if key in self._runs or key in self._reserved:
            raise RunExistsError
        run = self._runs[key] = ActiveRun(turn, record, present_task())
        return run

    def end(self, run: ActiveRun) -> None:
        """Remove a run that has ended."""
        self._runs.pop((run.record.owner, run.record.run_id), None)
        if run.ended is not None:
            run.ended.set()

    def get(self, owner: str, run_id: str) -> ActiveRun | None:
        """Return a run of the owner's that is in progress."""
        return self._runs.get((owner, run_id))

    def running(self) -> list[ActiveRun]:
        """Return all runs that are in progress."""
        return list(self._runs.values())

    def of_event(self, item: InboxItem) -> ActiveRun | None:
        """Return the run that answers an event."""
        return next((run for run in self._runs.values() if run.turn.event is item), None)

    async def cancel(self, run: ActiveRun) -> bool:
        """Cancel a run and wait for its end; take its session away if it has not ended within `cancel_grace`."""
        if run.ended is None:
            run.ended = asyncio.Event()
        if run.cancellable and not run.cancel_requested:
            run.cancel_requested = True
            run.task.cancel()
        try:
            async with asyncio.timeout(self._cancel_grace):
                await run.ended.wait()
        except TimeoutError:
            # It still runs, but can write nothing any more, and it is recorded as cancelled.
            run.record = await self._recorder.ended(run.turn, run.record, "cancelled", CANCELLED)
            await self._turns.expel(run.turn)
            return False
        return True

    def spawn_cancel(self, run: ActiveRun) -> None:
        """Cancel a run without waiting for its end."""
        self._turns.spawn(self._cancel(run))

    async def _cancel(self, run: ActiveRun) -> None:
        await self.cancel(run)

    def interrupt(self, run: ActiveRun) -> None:
        """Stop a run without recording an end; another worker decides how it goes on."""
        if run.cancellable:
            run.interrupted = True
            run.task.cancel()

    async def cancel_all(self) -> None:
        """Cancel all runs that are left, when the host stops."""
        await asyncio.gather(*(self.cancel(run) for run in self.running()))
