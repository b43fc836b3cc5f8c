"""Works on one background run after the other: from its beginning, or as its interruption asks for."""

import asyncio
from contextlib import suppress

from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.background import BackgroundRun
from frontdesk.data.codec import decode
from frontdesk.data.request import AdmittedRequest
from frontdesk.data.run import FINAL, INTERRUPTED, RunFailure, RunRecord, RunStatus
from frontdesk.errors import (
    ConflictError,
    InvalidRequestError,
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
_LEFT_ALONE = 30.0


class Worker:
    """A run that this process works on."""

    task: "asyncio.Task[None]"

    def __init__(self, job: BackgroundRun) -> None:
        self.job = job
        self.interrupted = False
        self.given_up = False
        self._begun = False
        self._unwanted = False
        self.ending = False
        """Whether it is being written down how it ended, which nothing may disturb."""

    def begin(self) -> None:
        """The task runs, and can be cancelled in a way that it notices."""
        self._begun = True
        if self._unwanted:
            raise asyncio.CancelledError

    def cancel(self) -> None:
        """Cancels the task. One that is cancelled before its first step would never come to write down its end."""
        if self._begun and not self.ending:
            self.task.cancel()
        self._unwanted = True


class Work:
    """Runs jobs, and writes down how they ended if they can't do so themselves."""

    pipeline: Pipeline

    def __init__(self, store: HostStateStore, clock: Clock, signals: RunSignals, followers: Followers) -> None:
        self._store = store
        self._clock = clock
        self._signals = signals
        self._followers = followers
        self.paused: Pauses[tuple[str, str]] = Pauses(clock, _LEFT_ALONE)
        """Runs that need what only a newer version can read: they are left to a process that knows it."""

    async def do(self, worker: Worker, before: "asyncio.Task[None] | None", new: bool) -> None:
        """Does all that there is to do for a run, once a task that did so `before` has ended."""
        job = worker.job
        try:
            worker.begin()
            if before is not None:
                # It was lost here and came back; what ran then must have ended.
                await asyncio.wait([before])
            await self._go(job, new)
        except BaseException as error:
            # Nobody waits for this task: whatever ends the run is written down.
            worker.ending = True
            await self._after(worker, error)

    async def _after(self, worker: Worker, error: BaseException) -> None:
        job = worker.job
        if isinstance(error, LostRunError):
            log.warning("background run %s was taken over", job.admitted.run_id)
        elif isinstance(error, StoreUnavailableError) or worker.interrupted:
            worker.given_up = True
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
        """Runs a job from its beginning, or as its interruption asks for."""
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
                # What the workflow stood at is gone.
                await self._fail(job, record)

    async def _run(self, job: Job) -> None:
        pipeline, run = self.pipeline, job.run
        admitted = run.admitted
        if job.messages is not None and run.checkpoint is not None:
            admitted = _resumed(run)
        if job.log is None:
            await pipeline.run_admitted(admitted, patient=True, job=job)
            return
        self._followers.logs[run.key] = job.log
        try:
            async with await pipeline.stream_admitted(admitted, patient=True, job=job) as stream:
                async for _ in stream:
                    pass
        finally:
            del self._followers.logs[run.key]

    def _log(self, job: BackgroundRun, last: int = 0) -> EventLog | None:
        """A workflow that is resumed needs to know what it has said, whether somebody listens or not."""
        if not job.admitted.request.stream and job.on_interrupt != "resume":
            return None
        return EventLog(self._store, job, lambda: self._signals.notify(job.admitted.run_id), last)

    async def cancel(self, job: BackgroundRun) -> None:
        """Ends a run that nobody works on, because somebody wants it."""
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
            # Its session can't be opened; then only the run itself says how it ended.
            await self._end(job, "failed", _INTERRUPTED)

    async def _end(self, job: BackgroundRun, status: RunStatus, failure: RunFailure) -> None:
        """Ends a run that did not come to its own end, unless it did or another has it."""

        async def write() -> None:
            known = await self._store.runs.get(*job.key) or queued(job)
            async with self._store.transaction() as transaction:
                if known.status not in FINAL:
                    now = self._clock.now()
                    transaction.save_run(known.replace(status=status, failure=failure, finished_at=now))
                transaction.end_job(job)

        try:
            with suppress(LostRunError):
                await until_available(write)
        except UnreadableRecordError:
            await self._leave(job)

    async def _leave(self, job: BackgroundRun) -> None:
        """Leave a run to a process that can read what it needs."""
        log.warning("background run %s is left to a newer version, which can read what it needs", job.admitted.run_id)
        self.paused.begin(job.key)
        await self.give_up(job)

    async def give_up(self, job: BackgroundRun) -> None:
        """Leaves a run to whoever takes it up next."""

        async def write() -> None:
            known = await self._store.background.get(*job.key)
            if known is not None and known.fence == job.fence:
                async with self._store.transaction() as transaction:
                    transaction.save_job(known.replace(holder=""))

        with suppress(LostRunError):
            await until_available(write)


def queued(job: BackgroundRun) -> RunRecord:
    """The record of a run that waits."""
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
    """The request that takes an interrupted workflow further."""
    checkpoint_id = None if job.checkpoint is None else job.checkpoint.checkpoint_id
    return job.admitted.with_request(input=None, approvals=(), client_outputs=(), checkpoint_id=checkpoint_id)
