"""Queues background runs, starts them within limits, and holds their leases."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.delivery.presence import Presence
from frontdesk.delivery.proactive import DirectNotifier
from frontdesk.errors import (
    CodecError,
    InvalidRequestError,
    StoreError,
    StoreUnavailableError,
)
from frontdesk.interfaces.store import ChangeKind, HostStateStore
from frontdesk.loggers import runs as log
from frontdesk.models.delivery import InboxItem
from frontdesk.models.request import AdmittedRequest, OnInterrupt
from frontdesk.models.run import BackgroundRun, RunRecord
from frontdesk.runs.background.followers import Followers, RunSignals
from frontdesk.runs.background.held import HeldRuns, require_storable
from frontdesk.runs.background.worker import RunTask, RunWorker, build_queued, give_up
from frontdesk.runs.limits import RunLimits
from frontdesk.sessions.active import ActiveRuns
from frontdesk.sessions.leases import LeaseRenewal
from frontdesk.sessions.turns import fresh_session

_SHARED_POLL, _OWN_POLL = 1.0, 15.0


def signals_for(store: HostStateStore) -> RunSignals:
    """Return new signals. Their subscribers read a shared store often, because other processes write to it too."""
    return RunSignals(_OWN_POLL if store.lease_seconds is None else _SHARED_POLL)


class BackgroundDispatcher:
    """Queues background runs, starts them within limits, keeps their leases and stops them.

    It decides which runs this process executes, and has a `RunTask` for each. `RunWorker` executes them.
    """

    def __init__(
        self,
        store: HostStateStore,
        active: ActiveRuns,
        presence: Presence,
        notifier: DirectNotifier,
        *,
        held: HeldRuns,
        worker: RunWorker,
        followers: Followers,
        limits: RunLimits,
        on_interrupt: OnInterrupt,
        cancel_grace: float,
        shutdown_grace: float,
    ) -> None:
        self._store = store
        self._active = active
        self._presence, self._notifier = presence, notifier
        self._limits = limits
        self._on_interrupt: OnInterrupt = on_interrupt
        self._cancel_grace, self._shutdown_grace = cancel_grace, shutdown_grace
        self._shared = store.lease_seconds is not None
        self.followers, self._signals = followers, followers.signals
        self.run_tasks: dict[tuple[str, str], RunTask] = {}
        self._holding, self._held, self._waiting = held, held.tasks, held.waiting
        self._coming = 0
        self._stopping = False
        self._dispatching: asyncio.Task[None] | None = None
        self._renewal = LeaseRenewal(store.lease_seconds, self._all, self._renew, self._lose)
        self._side_tasks: set[asyncio.Task[None]] = set()
        self._queueing: set[asyncio.Task[RunRecord]] = set()
        """Runs that are being written, and begin then."""
        self._worker = worker
        store.listen(self._on_change)

    async def start(self) -> None:
        """Start to claim runs: new ones, and those left by an earlier process."""
        self._stopping = False
        self._holding.begin_holding()
        self._dispatching = spawn_clean(self._dispatch())
        self._renewal.start()

    async def submit(
        self,
        admitted: AdmittedRequest,
        session_id: str | None,
        event: InboxItem | None = None,
        seen_at: float | None = None,
    ) -> RunRecord:
        """Store the run and start it, or leave it to another process. `session_id` is that of a new session.

        The event that requested it ends in the same transaction. Its caller was seen at `seen_at`, unless it was the
        operator, and is notified in a chat that work continues.
        """
        if not admitted.request.store:
            raise InvalidRequestError("A background run must be stored.", param="store")
        key = session_id or await self._key(admitted)
        remaining = not self._stopping and len(self.run_tasks) + self._coming < self._limits.max_background_runs
        job = BackgroundRun(
            admitted=admitted,
            on_interrupt=admitted.request.on_interrupt or self._on_interrupt,
            session_id=session_id,
            holder=self._holding.holder if remaining else "",
            fence=int(remaining),
        )
        require_storable(job)
        self._coming += remaining
        record = build_queued(job).replace(session_key=key)
        # The caller may leave in the middle of this, and a stored run must be worked on.
        task = spawn_clean(self._queue(job, record, event, seen_at))
        self._queueing.add(task)
        task.add_done_callback(self._queueing.discard)
        return await asyncio.shield(task)

    async def _key(self, admitted: AdmittedRequest) -> str | None:
        """Return the caller's session key, which is the same before and after the run begins."""
        session = admitted.request.session
        if session is None or session.session_id is None:
            return None if session is None else session.key or session.conversation_id
        record = await self._store.sessions.get(admitted.owner, session.session_id)
        return None if record is None else record.key

    async def _queue(
        self, job: BackgroundRun, record: RunRecord, event: InboxItem | None, seen_at: float | None
    ) -> RunRecord:
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
                    most_waiting=self._limits.max_waiting_background_runs,
                    most_of_owner=self._limits.max_background_runs_per_caller,
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
        if record.root_run_id is not None:
            self._signals.notify(record.root_run_id)
        if job.holder and self._stopping:
            # Written while this process began to stop: nothing would wait for the end of its task.
            await give_up(self._store, job)
        elif job.holder:
            self._begin(job, new=True)
        else:
            # The last task may have ended meanwhile, so that nothing else would signal that there is room.
            self._waiting.notify()
        await self._notifier.send(notices)
        return record

    async def _dispatch(self) -> None:
        waiting = self._waiting
        while True:
            waiting.signal.clear()
            remaining = self._limits.max_background_runs - len(self.run_tasks) - self._coming
            if remaining > 0 and (waiting.may_exist or self._shared):
                waiting.may_exist, skip = False, self._worker.paused.names()
                try:
                    jobs = await self._store.background.claim(self._holding.holder, limit=remaining, skip=skip)
                except (StoreUnavailableError, StoreError, CodecError) as error:
                    log.warning("failed to claim background runs: %s", error)
                    waiting.may_exist, jobs = True, ()
                for job in jobs:
                    self._begin(job)
                waiting.may_exist |= len(jobs) == remaining or bool(skip)
            poll = _SHARED_POLL if self._shared or waiting.may_exist else None
            with suppress(TimeoutError):
                async with asyncio.timeout(poll):
                    await waiting.signal.wait()

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
        self._waiting.may_exist |= run_task.given_up or self._worker.paused.until(run_task.job.key) is not None
        if self._waiting.may_exist:
            self._waiting.signal.set()

    async def cancel(self, owner: str, run_id: str) -> None:
        """Cancel a run. For a run of another process, request it and wait for the end for a limited time."""
        active = self._active.get(owner, run_id)
        if active is not None and not await self._active.cancel(active):
            # It goes on, but nothing that it does counts any more.
            return
        async with self._signals.subscribe(run_id) as signal:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._cancel_grace):
                    while not await self._cancelled(owner, run_id):
                        await signal.wait()
                        signal.clear()

    async def _cancelled(self, owner: str, run_id: str) -> bool:
        """Cancel a run as far as this process can. Return True if it has ended."""
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
        """Stop this process's work on a background run, because another process decides about it."""
        run_task = self.run_tasks.get((owner, run_id)) or self._held.get((owner, run_id))
        if run_task is not None:
            self.stop(run_task, cancelled=False)
        return run_task is not None

    def stop(self, run_task: RunTask, *, cancelled: bool) -> None:
        """Stop this process's work on a run that was cancelled or taken over by another process."""
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
            self._waiting.notify()
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
        """Renew leases. Stop runs that were cancelled or taken over by another process."""
        renewed = {job.key: job for job in await self._store.background.renew([run_task.job for run_task in run_tasks])}
        for run_task in run_tasks:
            job = renewed.get(run_task.job.key)
            if run_task.task.done() or (job is not None and not job.cancelled):
                continue
            self.stop(run_task, cancelled=job is not None)

    async def drain(self) -> None:
        """Let runs end for a limited time. Leave the others to the next process."""
        self._stopping = True
        await cancel_and_wait(self._dispatching)
        if self._queueing:
            await asyncio.wait(self._queueing, timeout=self._shutdown_grace + self._cancel_grace)
        await self._wait_for_ends(self._shutdown_grace)
        for run_task in list(self.run_tasks.values()):
            self.stop(run_task, cancelled=False)
        await self._wait_for_ends(self._cancel_grace)
        await self._renewal.stop()

    async def _renew(self, run_tasks: Sequence[RunTask]) -> tuple[RunTask, ...]:
        await self._check(run_tasks)
        # The check has stopped the runs of other processes.
        return ()

    def _lose(self, run_task: RunTask) -> None:
        if not run_task.interrupted:
            log.warning("background run lease lost, stopping it: run_id=%s", run_task.job.admitted.run_id)
            self.stop(run_task, cancelled=False)

    async def _wait_for_ends(self, within: float) -> None:
        tasks = [run_task.task for run_task in self.run_tasks.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=within)
