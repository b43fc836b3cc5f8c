"""Executes background runs, including those that were interrupted."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal, Protocol

from agent_framework import AgentResponseUpdate

from frontdesk.clock import Clock
from frontdesk.concurrency.timeouts import Pauses, until_available
from frontdesk.delivery.live.replies import LiveReplies, LiveRun
from frontdesk.delivery.watchers import RunWatchers
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
from frontdesk.framework.state_updates import state_in
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import runs as log
from frontdesk.models.delivery import Delivery
from frontdesk.models.request import AdmittedRequest
from frontdesk.models.result import HostedRunResult, HostedStreamResult
from frontdesk.models.run import FINAL, BackgroundRun, RunEvent, RunFailure, RunRecord, RunStatus
from frontdesk.runs.background.followers import Followers, RunSignals
from frontdesk.runs.finisher import RunFinisher
from frontdesk.serialization.codec import decode
from frontdesk.sessions.job import EventLog, Job
from frontdesk.sessions.record import INTERRUPTION

Next = Literal["run", "resume", "fail", "cancel", "nothing"]


def after_interruption(job: BackgroundRun, record: RunRecord | None, events: int) -> Next:
    """Decide how an interrupted run continues. `events` is the number of its published events."""
    if record is None or record.status in FINAL:
        return "nothing"
    if job.cancelled:
        return "cancel"
    if record.status == "queued":
        # It waited for its turn, and nothing was done for it.
        return "run"
    if job.on_interrupt == "restart" and not job.begun and not events:
        return "run"
    if job.on_interrupt == "resume" and job.checkpoint is not None and events == job.events:
        # It is not known whether what was published since the checkpoint would come again in the same words.
        return "resume"
    return "fail"


_CANCELLED = RunFailure(code="cancelled", message="The run was cancelled before it started.")
_FAILED = RunFailure(code="internal_error", message="The run failed.")
_MAX_ATTEMPTS = 100_000


class RunsAdmitted(Protocol):
    """Runs admitted requests as the jobs of background runs."""

    async def run(
        self, admitted: AdmittedRequest, *, waits: bool, job: Job, live: LiveRun | None
    ) -> HostedRunResult[Any]: ...

    async def stream(
        self, admitted: AdmittedRequest, *, waits: bool, job: Job, live: LiveRun | None
    ) -> HostedStreamResult[Any]:
        """Do the same as `run`, and stream the target's updates."""
        ...


class RunTask:
    """A run that this process executes, and its task. In memory only. `BackgroundRun` is its stored form."""

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
        """Record that the task runs. From now on it notices a cancellation."""
        self._begun = True
        if self._unwanted:
            raise asyncio.CancelledError

    def cancel(self) -> None:
        """Cancel the task once it has begun. A task cancelled before its first step could not write its end."""
        if self._begun and not self.ending:
            self.task.cancel()
        self._unwanted = True


class RunWorker:
    """Executes jobs as the pipeline does, and writes the end of jobs that cannot do so themselves.

    There is one for all runs. It keeps no list of them: `BackgroundDispatcher` decides which run is executed, and when.
    """

    def __init__(
        self,
        *,
        store: HostStateStore,
        clock: Clock,
        signals: RunSignals,
        followers: Followers,
        runs: RunsAdmitted,
        finisher: RunFinisher,
        live: LiveReplies,
        watchers: RunWatchers,
    ) -> None:
        self._store = store
        self._clock = clock
        self._runs, self._finisher, self._live, self._watchers = runs, finisher, live, watchers
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
            log.warning("background run taken over: run_id=%s", job.admitted.run_id)
        elif isinstance(error, StoreUnavailableError) or run_task.interrupted:
            run_task.given_up = True
            await give_up(self._store, job)
        elif isinstance(error, UnreadableRecordError):
            await self._leave(job)
        elif isinstance(error, asyncio.CancelledError):
            await self.cancel(job)
        elif isinstance(error, RequestError):
            await self._end(job, "failed", RunFailure(code=error.code, message=error.message))
        else:
            log.error("background run failed: run_id=%s", job.admitted.run_id, exc_info=error)
            await self._end(job, "failed", _FAILED)

    async def _go(self, job: BackgroundRun, new: bool) -> None:
        if new:
            await self._run(Job(self._store, job, self._log(job)))
            return
        record = await self._store.runs.get(*job.key)
        most = _MAX_ATTEMPTS if job.on_interrupt == "resume" else 1
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
            earlier = _read_outputs(events) if how == "resume" else ()
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
            admitted = _build_resumed(run)
        try:
            live = await self._find_live(admitted, job)
            if job.log is None:
                await self._runs.run(admitted, waits=True, job=job, live=live)
            else:
                await self._stream(admitted, job, job.log, live)
        except StoreUnavailableError:
            if not job.is_started:
                await give_up(self._store, run, requeue=True)
            raise

    async def _find_live(self, admitted: AdmittedRequest, job: Job) -> LiveRun | None:
        """Return the live message of a run, including the text that it displayed before."""
        try:
            live = await self._live.of_run(admitted, job.run)
        except LostEventError as error:
            raise LostRunError from error
        if live is not None and live.streams:
            for update in job.earlier:
                live.show(update)
        return live

    async def _stream(self, admitted: AdmittedRequest, job: Job, log: EventLog, live: LiveRun | None) -> None:
        self._followers.logs[job.run.key] = log
        try:
            async with await self._runs.stream(admitted, waits=True, job=job, live=live) as stream:
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
        await self._end(job, "cancelled", _CANCELLED)

    async def _fail(self, job: BackgroundRun, record: RunRecord) -> None:
        log.warning("background run interrupted, marking it failed: run_id=%s", job.admitted.run_id)
        work = Job(self._store, job)
        work.unknown_fields, work.began_in = record.unknown_fields, record.session_id
        try:
            await self._finisher.give_up(job.admitted, work, INTERRUPTION)
        except UnreadableRecordError:
            raise
        except RequestError:
            # Its session can't be opened; then the end is written to the run alone.
            await self._end(job, "failed", INTERRUPTION)

    async def _end(self, job: BackgroundRun, status: RunStatus, failure: RunFailure) -> None:
        """End a run that has not ended by itself, unless another process has it."""

        async def write() -> None:
            record = await self._store.runs.get(*job.key) or build_queued(job)
            left = None if record.status in FINAL else await self._live.take_over_run(job)
            rows = () if left is None else await left.end((), status)
            notices: Sequence[Delivery] = ()
            is_open = record.status not in FINAL
            if is_open:
                record = record.replace(status=status, failure=failure, finished_at=self._clock.now())
                notices = await self._watchers.list_deliveries(record, status, asks=False)
            async with self._store.transaction() as transaction:
                if is_open:
                    transaction.save_run(record)
                for notice in notices:
                    transaction.add_delivery(notice)
                transaction.end_job(job)
                if left is not None:
                    left.add_end(transaction, rows)
            await self._live.wake(rows)
            await self._watchers.wake(notices)

        try:
            with suppress(LostRunError, LostEventError):
                await until_available(write)
        except UnreadableRecordError:
            await self._leave(job)

    async def _leave(self, job: BackgroundRun) -> None:
        """Leave a run to a process that can read its data."""
        log.warning("background run needs a newer version, skipping it: run_id=%s", job.admitted.run_id)
        self.paused.begin(job.key)
        await give_up(self._store, job)


async def give_up(store: HostStateStore, job: BackgroundRun, *, requeue: bool = False) -> None:
    """Release a run for the next process to claim.

    With `requeue` it waits again as if it had never started: its start may have been written without a confirmation,
    and nothing was done for it.
    """

    async def write() -> None:
        current = await store.background.get(*job.key)
        if current is None or current.fence != job.fence:
            return
        record = await store.runs.get(*job.key) if requeue else None
        async with store.transaction() as transaction:
            if record is not None and record.status == "running":
                transaction.save_run(record.replace(status="queued"))
            transaction.save_job(current.replace(holder=""))

    with suppress(LostRunError):
        await until_available(write)


def build_queued(job: BackgroundRun) -> RunRecord:
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
        root_run_id=admitted.root_run_id,
    )


def _read_outputs(events: Sequence[RunEvent]) -> list[Any]:
    """Return the stored outputs of a target. Changes of the shared state are no outputs."""
    updates = (decode(event.data) for event in events)
    return [update for update in updates if not (isinstance(update, AgentResponseUpdate) and state_in(update))]


def _build_resumed(job: BackgroundRun) -> AdmittedRequest:
    checkpoint_id = None if job.checkpoint is None else job.checkpoint.checkpoint_id
    return job.admitted.with_request(input=None, approvals=(), client_outputs=(), checkpoint_id=checkpoint_id)
