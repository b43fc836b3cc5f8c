"""Works on background runs: from the beginning, or as an interrupted one has to go on."""

import asyncio
from contextlib import suppress

from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.background import BackgroundRun
from frontdesk.data.codec import decode
from frontdesk.data.request import AdmittedRequest
from frontdesk.data.run import FINAL, INTERRUPTED, RunFailure, RunRecord, RunStatus
from frontdesk.delivery.live.replies import LiveReply
from frontdesk.errors import (
    ConflictError,
    InvalidRequestError,
    LostEventError,
    LostRunError,
    NotFoundError,
    RequestError,
    StoreUnavailableError,
    UnreadableRecordError,
)
from frontdesk.host.background.followers import Followers
from frontdesk.host.background.interrupts import after_interruption
from frontdesk.host.background.signals import RunSignals
from frontdesk.kit.aio.pauses import Pauses
from frontdesk.kit.aio.retry import until_available
from frontdesk.loggers import runs as log
from frontdesk.pipeline import Pipeline
from frontdesk.sessions.job import EventLog, Job

_CANCELLED = RunFailure(code="cancelled", message="The run was cancelled before it began.")
_INTERRUPTED = RunFailure(code=INTERRUPTED, message="The run was interrupted: the process that worked on it ended.")
_FAILED = RunFailure(code="internal_error", message="The run failed.")
_EVERY = 100_000


class RunTask:
    """A run that this process works on, and its task: in memory only. What is stored of it is a `BackgroundRun`."""

    task: "asyncio.Task[None]"

    def __init__(self, job: BackgroundRun) -> None:
        self.job = job
        self.interrupted = False
        self.given_up = False
        self._begun = False
        self._unwanted = False
        self.ending = False
        """Whether its end is being written, which must not be cancelled."""

    def begin(self) -> None:
        """Note that the task runs, and notices a cancellation from here on."""
        self._begun = True
        if self._unwanted:
            raise asyncio.CancelledError

    def cancel(self) -> None:
        """Cancel the task, once it has begun: one that is cancelled before its first step could not write its end."""
        if self._begun and not self.ending:
            self.task.cancel()
        self._unwanted = True


class RunWorker:
    """Runs jobs through the pipeline, and writes the end of those that can't do so themselves.

    One for all runs. It keeps no list of them: `BackgroundDispatcher` decides which run is worked on, and when.
    """

    pipeline: Pipeline

    def __init__(self, store: HostStateStore, clock: Clock, signals: RunSignals, followers: Followers) -> None:
        self._store = store
        self._clock = clock
        self._signals = signals
        self._followers = followers
        self.paused: Pauses[tuple[str, str]] = Pauses(clock)
        """Runs that need what only a newer version can read: they are left to a process that can."""

    async def do(self, run_task: RunTask, before: "asyncio.Task[None] | None", new: bool) -> None:
        """Wait for an earlier task of this process on the job, then run the job and write its end."""
        job = run_task.job
        try:
            run_task.begin()
            if before is not None:
                # This process has lost it and claimed it again; what ran then must have ended.
                await asyncio.wait([before])
            await self._go(job, new)
        except BaseException as error:
            # No code awaits this task: whatever ends the run is written.
            run_task.ending = True
            await self._after(run_task, error)

    async def _after(self, run_task: RunTask, error: BaseException) -> None:
        job = run_task.job
        if isinstance(error, LostRunError):
            log.warning("background run %s was taken over", job.admitted.run_id)
        elif isinstance(error, StoreUnavailableError) or run_task.interrupted:
            run_task.given_up = True
            await self.give_up(job)
        elif isinstance(error, UnreadableRecordError):
            await self._leave(job)
        elif isinstance(error, asyncio.CancelledError):
            await self.cancel(job)
        elif isinstance(error, RequestError):
            await self._end(job, "failed", RunFailure(code=error.code, message=error.message))
        else:
            log.error("background run %s failed", job.admitted.run_id, exc_info=error)
            await self._end(job, "failed", _FAILED)

    async def _go(self, job: BackgroundRun, new: bool) -> None:
        """Run a job from the beginning, or as an interrupted one has to go on."""
        if new:
            await self._run(Job(self._store, job, self._log(job)))
            return
        record = await self._store.runs.get(*job.key)
        most = _EVERY if job.on_interrupt == "resume" else 1
        events = await self._store.runs.events(*job.key, limit=most) if job.on_interrupt != "fail" else ()
        how = after_interruption(job, record, len(events))
        if how == "nothing" or record is None:
            async with self._store.transaction() as transaction:
                transaction.end_job(job)
        elif how == "cancel":
            await self.cancel(job)
        elif how == "fail":
            await self._fail(job, record)
        else:
            earlier = [decode(event.data) for event in events] if how == "resume" else ()
            work = Job(self._store, job, self._log(job, len(events)), earlier)
            work.unknown_fields, work.began_in = record.unknown_fields, record.session_id
            work.messages = record.input if how == "resume" else None
            try:
                await self._run(work)
            except (ConflictError, InvalidRequestError, NotFoundError):
                if how != "resume":
                    raise
                # The checkpoint of the workflow is gone.
                await self._fail(job, record)

    async def _run(self, job: Job) -> None:
        run = job.run
        admitted = run.admitted
        if job.messages is not None and run.checkpoint is not None:
            admitted = _resumed(run)
        try:
            live = await self.pipeline.live_of(admitted, job)
            if job.log is None:
                await self.pipeline.run_admitted(admitted, waits=True, job=job, live=live)
            else:
                await self._stream(admitted, job, job.log, live)
        except StoreUnavailableError:
            if not job.is_started:
                await self.give_up(run, requeue=True)
            raise

    async def _stream(self, admitted: AdmittedRequest, job: Job, log: EventLog, live: LiveReply | None) -> None:
        self._followers.logs[job.run.key] = log
        try:
            async with await self.pipeline.stream_admitted(admitted, waits=True, job=job, live=live) as stream:
                async for _ in stream:
                    pass
        finally:
            del self._followers.logs[job.run.key]

    def _log(self, job: BackgroundRun, last: int = 0) -> EventLog | None:
        """Return the event log of a run, if it streams, or if a resumed workflow needs its earlier events."""
        if not job.admitted.request.stream and job.on_interrupt != "resume":
            return None
        return EventLog(self._store, job, lambda: self._signals.notify(job.admitted.run_id), last)

    async def cancel(self, job: BackgroundRun) -> None:
        """Cancel a run that no worker has claimed."""
        await self._end(job, "cancelled", _CANCELLED)

    async def _fail(self, job: BackgroundRun, record: RunRecord) -> None:
        log.warning("background run %s was interrupted, and ends by that", job.admitted.run_id)
        work = Job(self._store, job)
        work.unknown_fields, work.began_in = record.unknown_fields, record.session_id
        try:
            await self.pipeline.fail_admitted(job.admitted, work, _INTERRUPTED)
        except UnreadableRecordError:
            raise
        except RequestError:
            # Its session can't be opened; then the end is written to the run alone.
            await self._end(job, "failed", _INTERRUPTED)

    async def _end(self, job: BackgroundRun, status: RunStatus, failure: RunFailure) -> None:
        """End a run that has not ended by itself, unless another process has it."""

        async def write() -> None:
            record = await self._store.runs.get(*job.key) or queued(job)
            left = None if record.status in FINAL else await self.pipeline.live.left_by(job)
            rows = () if left is None else await left.end((), status)
            async with self._store.transaction() as transaction:
                if record.status not in FINAL:
                    now = self._clock.now()
                    transaction.save_run(record.replace(status=status, failure=failure, finished_at=now))
                transaction.end_job(job)
                if left is not None:
                    left.add_end(transaction, rows)
            await self.pipeline.live.wake(rows)

        try:
            with suppress(LostRunError, LostEventError):
                await until_available(write)
        except UnreadableRecordError:
            await self._leave(job)

    async def _leave(self, job: BackgroundRun) -> None:
        """Leave a run to a process that can read what it needs."""
        log.warning("background run %s is left to a newer version, which can read what it needs", job.admitted.run_id)
        self.paused.begin(job.key)
        await self.give_up(job)

    async def give_up(self, job: BackgroundRun, *, requeue: bool = False) -> None:
        """Release a run, for the next process to claim.

        With `requeue` it waits again as if it had never started: its start may have been written although the reply to
        that was lost, and nothing was done for it.
        """

        async def write() -> None:
            current = await self._store.background.get(*job.key)
            if current is None or current.fence != job.fence:
                return
            record = await self._store.runs.get(*job.key) if requeue else None
            async with self._store.transaction() as transaction:
                if record is not None and record.status == "running":
                    transaction.save_run(record.replace(status="queued"))
                transaction.save_job(current.replace(holder=""))

        with suppress(LostRunError):
            await until_available(write)


def queued(job: BackgroundRun) -> RunRecord:
    """Return the record of a run that waits."""
    admitted, request = job.admitted, job.admitted.request
    return RunRecord(
        run_id=admitted.run_id,
        owner=admitted.owner,
        channel=request.channel,
        status="queued",
        created_at=admitted.admitted_at,
        previous_run_id=request.previous_run_id,
        background=True,
        stream=request.stream,
        metadata=request.metadata,
        details=request.details,
        request_hash=request.request_hash,
    )


def _resumed(job: BackgroundRun) -> AdmittedRequest:
    """Return the request that resumes an interrupted workflow."""
    checkpoint_id = None if job.checkpoint is None else job.checkpoint.checkpoint_id
    return job.admitted.with_request(input=None, approvals=(), client_outputs=(), checkpoint_id=checkpoint_id)
