"""Runs that their own requests work on, recorded so that another process ends them if this one dies."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from frontdesk.concurrency.tasks import current_task, spawn_clean
from frontdesk.errors import CodecError, LostRunError, NotStorableError
from frontdesk.ids import RandomIds
from frontdesk.interfaces.store import HostStateStore, StateTransaction
from frontdesk.loggers import runs as log
from frontdesk.models.run import BackgroundRun, RunRecord
from frontdesk.runs.background.followers import RunSignals
from frontdesk.runs.background.worker import RunTask, give_up
from frontdesk.runs.limits import RunLimits
from frontdesk.serialization.codec import build_form, encode
from frontdesk.sessions.job import Job
from frontdesk.sessions.record import salvage
from frontdesk.sessions.turn import Note, Turn

_ANY_NUMBER = 2**31 - 1
_NOT_KEPT = "The request can't run in the background because it can't be stored as JSON."


class WaitingRuns:
    """Signals that stored runs may wait to be claimed."""

    def __init__(self) -> None:
        self.may_exist = True
        self.signal = asyncio.Event()

    def notify(self) -> None:
        self.may_exist = True
        self.signal.set()


class RunBeginning:
    """The start record of a request's or an event's run, written only when its tool begins."""

    def __init__(
        self, store: HostStateStore, holder: str, turn: Turn, record: RunRecord, hold: Callable[[BackgroundRun], None]
    ) -> None:
        self._store, self._holder, self._turn, self._record, self._hold = store, holder, turn, record, hold

    async def write(self, also: Note) -> None:
        """Write the run and its job in one transaction with `also`. The run ends together with its job."""
        job, record = self._storable_job(), self._storable_record()
        async with self._store.transaction() as transaction:
            # Limits are for runs that wait. This one is at work.
            transaction.queue_run(record, job, most_waiting=_ANY_NUMBER, most_of_owner=_ANY_NUMBER)
            also(transaction)
        self._turn.job, self._turn.held = Job(self._store, job), True
        self._hold(job)

    async def find_written(self) -> Note | None:
        """Return the note that reverts the run and its job, if they were written without a confirmation."""
        job = await self._store.background.get(self._record.owner, self._record.run_id)
        if job is None or job.holder != self._holder:
            return None
        written = job

        def take_back(transaction: StateTransaction) -> None:
            transaction.end_job(written)
            transaction.delete_run(*written.key)

        return take_back

    def _storable_job(self) -> BackgroundRun:
        """Return the job. If it cannot be stored, omit the target's data, since it is not executed again."""
        job = BackgroundRun(admitted=self._turn.admitted, holder=self._holder, fence=1)
        try:
            build_form(job)
        except CodecError:
            return job.replace(admitted=self._turn.admitted.without_content())
        return job

    def _storable_record(self) -> RunRecord:
        try:
            encode(self._record)
        except CodecError:
            return salvage(self._record)
        return self._record


class HeldRuns:
    """Records the starts of runs of requests, and holds these runs until their requests end.

    A request holds its run by an idempotency key, by a run id of its own, or because a tool of the run has begun.
    """

    def __init__(self, store: HostStateStore, signals: RunSignals, limits: RunLimits) -> None:
        self._store, self._signals, self._most_waiting = store, signals, limits.max_waiting_background_runs
        self.tasks: dict[tuple[str, str], RunTask] = {}
        """The held runs, with leases like those of background runs."""
        self.waiting = WaitingRuns()
        self.holder = ""
        self._leaving: set[asyncio.Task[None]] = set()
        self.begin_holding()

    def begin_holding(self) -> None:
        """Use a new holder, so that the runs of an earlier start of this host are seen to have none."""
        self.holder = RandomIds().new("host")

    async def hold(self, turn: Turn, record: RunRecord) -> Job:
        """Record the start of a run in its own request. If this process dies, another ends it as interrupted."""
        session_id = turn.record.session_id if turn.new and turn.record is not None else None
        job = BackgroundRun(admitted=turn.admitted, session_id=session_id, holder=self.holder, fence=1)
        require_storable(job)
        most = self._most_waiting
        async with self._store.transaction() as transaction:
            # The number of requests that are answered at once is limited by the channel.
            transaction.queue_run(record, job, most_waiting=most, most_of_owner=_ANY_NUMBER)
        self._hold(job)
        return Job(self._store, job)

    def build_beginning(self, turn: Turn, record: RunRecord) -> RunBeginning:
        """Return the start record of a run, to be written once the run acts on its request's answers."""
        task = current_task()
        return RunBeginning(self._store, self.holder, turn, record, lambda job: self._hold(job, task))

    def _hold(self, job: BackgroundRun, task: "asyncio.Task[Any] | None" = None) -> None:
        run_task = self.tasks[job.key] = RunTask(job)
        run_task.task = task or current_task()
        run_task.begin()

    async def revoke(self, turn: Turn) -> None:
        """Revert the start of a run whose request was rejected and that has done nothing."""
        if turn.job is not None:
            with suppress(LostRunError):
                async with self._store.transaction() as transaction:
                    transaction.end_job(turn.job.run)
                    transaction.delete_run(*turn.job.run.key)
                turn.outcome.settled = True

    def let_go(self, turn: Turn) -> None:
        """Release the hold. If the end of a run could not be written, another process ends it as interrupted."""
        owner, run_id = turn.admitted.owner, turn.admitted.run_id
        run_task = self.tasks.pop((owner, run_id), None)
        self._signals.notify(run_id)
        if run_task is not None and not turn.outcome.settled:
            task = spawn_clean(self._leave(run_task.job))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def _leave(self, job: BackgroundRun) -> None:
        await give_up(self._store, job)
        self.waiting.notify()


def require_storable(job: BackgroundRun) -> None:
    try:
        build_form(job)
    except CodecError as error:
        log.error("background request cannot be stored: %s", error)
        raise NotStorableError(_NOT_KEPT) from error
