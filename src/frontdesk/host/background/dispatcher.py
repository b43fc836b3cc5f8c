"""Queues background runs, starts them within limits, and holds their leases."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from frontdesk.abc.store import ChangeKind, HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.background import BackgroundRun
from frontdesk.data.codec import form_of
from frontdesk.data.delivery import InboxItem
from frontdesk.data.request import AdmittedRequest
from frontdesk.data.run import RunRecord
from frontdesk.delivery.presence import Presence
from frontdesk.errors import (
    CodecError,
    InvalidRequestError,
    LostRunError,
    NotStorableError,
    StoreError,
    StoreUnavailableError,
)
from frontdesk.host.background.followers import Followers
from frontdesk.host.background.signals import RunSignals
from frontdesk.host.background.worker import RunTask, RunWorker, queued
from frontdesk.host.config import HostConfig
from frontdesk.host.direct_notifier import DirectNotifier
from frontdesk.ids import RandomIds
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import present_task, spawn_clean
from frontdesk.loggers import runs as log
from frontdesk.pipeline import Pipeline
from frontdesk.sessions.active import ActiveRuns
from frontdesk.sessions.job import Job
from frontdesk.sessions.leases import LeaseRenewal
from frontdesk.sessions.turns import Turn, fresh_session

_NOT_KEPT = "What is asked for can't be stored as JSON, so that it can't run in the background."
_SHARED_POLL, _OWN_POLL = 1.0, 15.0
_ANY_NUMBER = 2**31 - 1


class BackgroundDispatcher:
    """Queues background runs, starts them within limits, keeps their leases and stops them.

    It decides which run this process works on, and has a `RunTask` for each; `RunWorker` does the work.
    """

    _presence: Presence
    _notifier: DirectNotifier

    def __init__(self, store: HostStateStore, config: HostConfig, clock: Clock, active: ActiveRuns) -> None:
        self._store = store
        self._config = config
        self._active = active
        self._shared = store.lease_seconds is not None
        self._signals = RunSignals(_SHARED_POLL if self._shared else _OWN_POLL)
        self.followers = Followers(store, self._signals)
        self.run_tasks: dict[tuple[str, str], RunTask] = {}
        self._held: dict[tuple[str, str], RunTask] = {}
        """Runs that their own requests work on, with leases like those of background runs."""
        self._coming = 0
        self._holder = RandomIds().new("host")
        self._wake = asyncio.Event()
        self._may_wait = True
        self._stopping = False
        self._dispatching: asyncio.Task[None] | None = None
        self._renewal = LeaseRenewal(store.lease_seconds, self._all, self._renew, self._lose)
        self._side_tasks: set[asyncio.Task[None]] = set()
        self._queueing: set[asyncio.Task[RunRecord]] = set()
        """Runs that are being written, and begin then."""
        self._worker = RunWorker(store, clock, self._signals, self.followers)
        store.listen(self._on_change)

    def use(self, pipeline: Pipeline, presence: Presence, notifier: DirectNotifier) -> None:
        """Take the parts that are built after this one."""
        self._worker.pipeline = pipeline
        self._presence, self._notifier = presence, notifier

    async def start(self) -> None:
        """Start to take up runs: those that an earlier process left, and new ones."""
        self._stopping = False
        # A new one at each start, so that the runs of the last start are seen to have no holder.
        self._holder = RandomIds().new("host")
        self._dispatching = spawn_clean(self._dispatch())
        self._renewal.start()

    async def submit(
        self,
        admitted: AdmittedRequest,
        session_id: str | None,
        event: InboxItem | None = None,
        seen_at: float | None = None,
    ) -> RunRecord:
        """Store the run and start it, or leave it to a process with room; `session_id` is that of a new session.

        The event that asked for it ends in the same transaction. Its caller was seen at `seen_at`, if it was not the
        operator, and is notified in a chat that work goes on.
        """
        if not admitted.request.store:
            raise InvalidRequestError("A background run has to be stored.", param="store")
        key = session_id or await self._key(admitted)
        room = not self._stopping and len(self.run_tasks) + self._coming < self._config.runs.max_background_runs
        job = BackgroundRun(
            admitted=admitted,
            on_interrupt=admitted.request.on_interrupt or self._config.on_interrupt,
            session_id=session_id,
            holder=self._holder if room else "",
            fence=int(room),
        )
        _need_storable(job)
        self._coming += room
        record = queued(job).replace(session_key=key)
        # The caller may leave in the middle of this, and a stored run must be worked on.
        task = spawn_clean(self._queue(job, record, event, seen_at))
        self._queueing.add(task)
        task.add_done_callback(self._queueing.discard)
        return await asyncio.shield(task)

    async def hold(self, turn: Turn, record: RunRecord) -> Job:
        """Write that a run begins in its own request; if this process ends, another one ends it as interrupted."""
        session_id = turn.record.session_id if turn.new and turn.record is not None else None
        job = BackgroundRun(admitted=turn.admitted, session_id=session_id, holder=self._holder, fence=1)
        _need_storable(job)
        most = self._config.runs.max_waiting_background_runs
        async with self._store.transaction() as transaction:
            # The number of requests that are answered at once is limited by the channel.
            transaction.queue_run(record, job, most_waiting=most, most_of_owner=_ANY_NUMBER)
        run_task = self._held[job.key] = RunTask(job)
        run_task.task = present_task()
        run_task.begin()
        return Job(self._store, job)

    async def revoke(self, turn: Turn) -> None:
        """Undo that a run began: its request was refused, and nothing was done for it."""
        if turn.job is not None:
            with suppress(LostRunError):
                async with self._store.transaction() as transaction:
                    transaction.end_job(turn.job.run)
                    transaction.delete_run(*turn.job.run.key)
                turn.settled = True

    def let_go(self, turn: Turn) -> None:
        """End the hold; a run whose end could not be written is left to a process that ends it as interrupted."""
        owner, run_id = turn.admitted.owner, turn.admitted.run_id
        run_task = self._held.pop((owner, run_id), None)
        self._signals.notify(run_id)
        if run_task is not None and not turn.settled:
            self._spawn(self._leave(run_task.job))

    async def _leave(self, job: BackgroundRun) -> None:
        await self._worker.give_up(job)
        self._may_wait = True
        self._wake.set()

    async def _key(self, admitted: AdmittedRequest) -> str | None:
        """Return the caller's name for the session, which is the same before the run begins as later."""
        session = admitted.request.session
        if session is None or session.session_id is None:
            return None if session is None else session.key or session.openai_conversation_id
        record = await self._store.sessions.get(admitted.owner, session.session_id)
        return None if record is None else record.key

    async def _queue(
        self, job: BackgroundRun, record: RunRecord, event: InboxItem | None, seen_at: float | None
    ) -> RunRecord:
        config = self._config
        is_asked = event is not None and event.kind != "resume"
        notices = self._notifier.work_goes_on(job.admitted, event) if event is not None and is_asked else ()
        session = None if job.session_id is None else fresh_session(job.admitted, job.session_id)
        lease = None if session is None else self._store.sessions.begin(session.owner, session.session_id)
        try:
            async with self._store.transaction() as transaction:
                if session is not None and lease is not None:
                    # Its caller learns of it now, and may use it before the run begins.
                    transaction.save_session(session, lease)
                transaction.queue_run(
                    record,
                    job,
                    most_waiting=config.runs.max_waiting_background_runs,
                    most_of_owner=config.runs.max_background_runs_per_caller,
                )
                if seen_at is not None:
                    self._presence.note(transaction, job.admitted, seen_at)
                for notice in notices:
                    transaction.add_delivery(notice)
                if event is not None:
                    transaction.finish(event)
        finally:
            self._coming -= bool(job.holder)
            if lease is not None:
                self._store.sessions.release(lease)
        if job.holder and self._stopping:
            # Written while this process began to stop: nothing would wait for the end of its task.
            await self._worker.give_up(job)
        elif job.holder:
            self._begin(job, new=True)
        else:
            # The last task may have ended meanwhile, so that nothing else would signal that there is room.
            self._may_wait = True
            self._wake.set()
        await self._notifier.send(notices)
        return record

    async def _dispatch(self) -> None:
        """Take up waiting runs, whenever there is room."""
        while True:
            self._wake.clear()
            room = self._config.runs.max_background_runs - len(self.run_tasks) - self._coming
            if room > 0 and (self._may_wait or self._shared):
                self._may_wait, skip = False, self._worker.paused.names()
                try:
                    jobs = await self._store.background.claim(self._holder, limit=room, skip=skip)
                except (StoreUnavailableError, StoreError, CodecError) as error:
                    log.warning("no background run could be taken up: %s", error)
                    self._may_wait, jobs = True, ()
                for job in jobs:
                    self._begin(job)
                self._may_wait |= len(jobs) == room or bool(skip)
            poll = _SHARED_POLL if self._shared or self._may_wait else None
            with suppress(TimeoutError):
                async with asyncio.timeout(poll):
                    await self._wake.wait()

    def _begin(self, job: BackgroundRun, *, new: bool = False) -> None:
        before = self.run_tasks.get(job.key)
        run_task = self.run_tasks[job.key] = RunTask(job)
        work = self._worker.do(run_task, None if before is None else before.task, new)
        run_task.task = task = spawn_clean(work)
        task.add_done_callback(lambda _: self._forget(run_task))
        # A caller may want to cancel it, and could not while it was claimed.
        self._signals.notify(job.admitted.run_id)

    def _forget(self, run_task: RunTask) -> None:
        if self.run_tasks.get(run_task.job.key) is run_task:
            del self.run_tasks[run_task.job.key]
        self._signals.notify(run_task.job.admitted.run_id)
        self._may_wait |= run_task.given_up or self._worker.paused.until(run_task.job.key) is not None
        if self._may_wait:
            self._wake.set()

    async def cancel(self, owner: str, run_id: str) -> None:
        """Cancel a run; one of another process is asked to end, and waited for, for a while."""
        active = self._active.get(owner, run_id)
        if active is not None and not await self._active.cancel(active):
            # It goes on, but nothing that it does counts any more.
            return
        async with self._signals.subscribe(run_id) as signal:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._config.seconds.cancel_grace):
                    while not await self._cancelled(owner, run_id):
                        await signal.wait()
                        signal.clear()

    async def _cancelled(self, owner: str, run_id: str) -> bool:
        """Do all that this process can do to cancel a run; tell whether it has ended."""
        run_task = self.run_tasks.get((owner, run_id))
        if run_task is not None:
            self.stop(run_task, cancelled=True)
            await asyncio.wait([run_task.task])
            return True
        job = await self._store.background.get(owner, run_id)
        if job is not None and not job.holder:
            await self._worker.cancel(job)
            job = await self._store.background.get(owner, run_id)
        if job is not None and not job.cancelled:
            async with self._store.transaction() as transaction:
                transaction.cancel_job(owner, run_id)
        return job is None

    def interrupt(self, owner: str, run_id: str) -> bool:
        """Stop the work of this process on a background run, because another process decides about it."""
        run_task = self.run_tasks.get((owner, run_id)) or self._held.get((owner, run_id))
        if run_task is not None:
            self.stop(run_task, cancelled=False)
        return run_task is not None

    def stop(self, run_task: RunTask, *, cancelled: bool) -> None:
        """Stop the work of this process on a run: it was cancelled, or it belongs to another process by now."""
        run_task.interrupted |= not cancelled
        active = self._active.get(*run_task.job.key)
        if active is None:
            run_task.cancel()
        elif not cancelled:
            self._active.interrupt(active)
        else:
            self._active.spawn_cancel(active)

    def _on_change(self, kind: ChangeKind, run_id: str) -> None:
        if kind == "run":
            self._signals.notify(run_id)
        elif kind == "work":
            self._may_wait = True
            self._wake.set()
        else:
            # By id alone, because the notice carries no owner; the store knows whether the run is cancelled.
            run_tasks = [run_task for run_task in self._all() if run_id in ("", run_task.job.admitted.run_id)]
            if run_tasks:
                self._spawn(self._check_once(run_tasks))

    def _all(self) -> list[RunTask]:
        return [*self.run_tasks.values(), *self._held.values()]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = spawn_clean(work)
        self._side_tasks.add(task)
        task.add_done_callback(self._side_tasks.discard)

    async def _check_once(self, run_tasks: Sequence[RunTask]) -> None:
        # If it can't be checked now, it is at the next renewal.
        with suppress(StoreUnavailableError, StoreError):
            await self._check(run_tasks)

    async def _check(self, run_tasks: Sequence[RunTask]) -> None:
        """Renew leases; stop the runs that were cancelled, and those that belong to another process by now."""
        renewed = {job.key: job for job in await self._store.background.renew([run_task.job for run_task in run_tasks])}
        for run_task in run_tasks:
            job = renewed.get(run_task.job.key)
            if run_task.task.done() or (job is not None and not job.cancelled):
                continue
            self.stop(run_task, cancelled=job is not None)

    async def drain(self) -> None:
        """Let the runs end for a while; leave the others to the next process."""
        self._stopping = True
        await stopped(self._dispatching)
        seconds = self._config.seconds
        if self._queueing:
            await asyncio.wait(self._queueing, timeout=seconds.shutdown_grace + seconds.cancel_grace)
        await self._ended(seconds.shutdown_grace)
        for run_task in list(self.run_tasks.values()):
            self.stop(run_task, cancelled=False)
        await self._ended(seconds.cancel_grace)
        await self._renewal.stop()

    async def _renew(self, run_tasks: Sequence[RunTask]) -> tuple[RunTask, ...]:
        await self._check(run_tasks)
        # The check has stopped the runs of other processes.
        return ()

    def _lose(self, run_task: RunTask) -> None:
        if not run_task.interrupted:
            log.warning("background run %s stops here: its lease could not be renewed", run_task.job.admitted.run_id)
            self.stop(run_task, cancelled=False)

    async def _ended(self, within: float) -> None:
        tasks = [run_task.task for run_task in self.run_tasks.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=within)


def _need_storable(job: BackgroundRun) -> None:
    try:
        form_of(job)
    except CodecError as error:
        log.error("a request can't be kept for the background: %s", error)
        raise NotStorableError(_NOT_KEPT) from error
