"""The active runs of this process."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress

from frontdesk.concurrency.tasks import current_task
from frontdesk.errors import RunExistsError
from frontdesk.models.delivery import InboxItem
from frontdesk.models.run import RunRecord
from frontdesk.sessions.record import CANCELLED, INTERRUPTION, Recorder
from frontdesk.sessions.turn import Turn
from frontdesk.sessions.turns import Turns


class ActiveRun:
    """A run in progress, executed in the task that requested it. Cancelling it cancels that task's current wait."""

    def __init__(self, turn: Turn, record: RunRecord, task: "asyncio.Task[object]") -> None:
        self.turn = turn
        self.record = record
        self.task = task
        self.cancel_requested = False
        self.cancellable = True
        self.interrupted = False
        """Whether it has to stop here without being recorded as ended."""
        self.stopped = False
        """Whether the host has cancelled it because it stops, so that it ends as interrupted."""
        self.ended: asyncio.Event | None = None

    async def wait(self) -> RunRecord | None:
        """Wait until it has ended. Return its final record, or None if it was revoked."""
        if self.ended is None:
            self.ended = asyncio.Event()
        await self.ended.wait()
        return self.turn.outcome.recorded

    async def uncancel(self) -> None:
        with suppress(asyncio.CancelledError):
            # A run that cancelled itself has it still ahead.
            await asyncio.sleep(0)
        self.task.uncancel()


class ActiveRuns:
    """Finds a run in progress by its owner and its id."""

    def __init__(
        self, turns: Turns, recorder: Recorder, *, cancel_grace: float, notify: Callable[[str], None] | None = None
    ) -> None:
        """Call `notify` with the id of a chain when a run of it begins or ends."""
        self._notify = notify
        self._runs: dict[tuple[str, str], ActiveRun] = {}
        self._reserved: set[tuple[str, str]] = set()
        self._turns = turns
        self._recorder = recorder
        self._cancel_grace = cancel_grace

    def __len__(self) -> int:
        return len(self._runs)

    @contextmanager
    def reserve(self, record: RunRecord) -> Generator[None]:
        """Reserve the id of a run until it begins. It must begin in the same step in which the block exits."""
        key = (record.owner, record.run_id)
        if key in self._runs or key in self._reserved:
            raise RunExistsError
        self._reserved.add(key)
        try:
            yield
        finally:
            self._reserved.discard(key)

    def begin(self, turn: Turn, record: RunRecord) -> ActiveRun:
        key = (record.owner, record.run_id)
        if key in self._runs or key in self._reserved:
            raise RunExistsError
        run = self._runs[key] = ActiveRun(turn, record, current_task())
        if record.root_run_id is not None and self._notify is not None:
            self._notify(record.root_run_id)
        return run

    def end(self, run: ActiveRun) -> None:
        self._runs.pop((run.record.owner, run.record.run_id), None)
        if run.ended is not None:
            run.ended.set()
        if run.record.root_run_id is not None and self._notify is not None:
            self._notify(run.record.root_run_id)

    def of_chain(self, owner: str, root_run_id: str) -> ActiveRun | None:
        """Return the run that began last and continues a chain."""
        running = reversed(self._runs.values())
        return next(
            (run for run in running if run.record.root_run_id == root_run_id and run.record.owner == owner), None
        )

    def get(self, owner: str, run_id: str) -> ActiveRun | None:
        return self._runs.get((owner, run_id))

    def list_running(self) -> list[ActiveRun]:
        return list(self._runs.values())

    def of_event(self, item: InboxItem) -> ActiveRun | None:
        return next((run for run in self._runs.values() if run.turn.event is item), None)

    async def cancel(self, run: ActiveRun) -> bool:
        """Cancel a run and wait for its end. Revoke its session if it has not ended within `cancel_grace`."""
        if run.cancellable and not run.cancel_requested:
            run.cancel_requested = True
            run.task.cancel()
        return await self._wait_for_end(run)

    async def _wait_for_end(self, run: ActiveRun) -> bool:
        if run.ended is None:
            run.ended = asyncio.Event()
        try:
            async with asyncio.timeout(self._cancel_grace):
                await run.ended.wait()
        except TimeoutError:
            # It still runs, but can write nothing any more, and its end is recorded here.
            status, failure = ("failed", INTERRUPTION) if run.stopped else ("cancelled", CANCELLED)
            run.record = await self._recorder.record_end(run.turn, run.record, status, failure)
            await self._turns.expel(run.turn)
            return False
        return True

    def spawn_cancel(self, run: ActiveRun) -> None:
        """Cancel a run without waiting for its end."""
        self._turns.spawn(self._cancel(run))

    async def _cancel(self, run: ActiveRun) -> None:
        await self.cancel(run)

    def interrupt(self, run: ActiveRun) -> None:
        """Stop a run without recording an end. Another worker decides how it continues."""
        if run.cancellable:
            run.interrupted = True
            run.task.cancel()

    async def stop_requests(self) -> None:
        """End runs with waiting requests as interrupted on host shutdown. Others have their own grace period."""
        await self._stop([run for run in self.list_running() if run.turn.is_requested()])

    async def stop_all(self) -> None:
        """End all remaining runs as interrupted, because the host stops."""
        await self._stop(self.list_running())

    async def _stop(self, runs: Sequence[ActiveRun]) -> None:
        for run in runs:
            if run.cancel_requested or run.stopped:
                continue
            run.stopped = True
            if run.cancellable:
                run.task.cancel()
        await asyncio.gather(*(self._wait_for_end(run) for run in runs))
