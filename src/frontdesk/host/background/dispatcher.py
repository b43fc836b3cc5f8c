"""Runs that go on after their request has been answered, and after their process has ended."""

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
from frontdesk.host.background.work import Work, Worker, queued
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


class Background:
    """Takes admitted requests and runs them one after another per session, within limits."""

    _presence: Presence
    _notifier: DirectNotifier

    def __init__(self, store: HostStateStore, config: HostConfig, clock: Clock, active: ActiveRuns) -> None:
        self._store = store
        self._config = config
        self._active = active
        self._shared = store.lease_seconds is not None
        self._signals = RunSignals(_SHARED_POLL if self._shared else _OWN_POLL)
        self.followers = Followers(store, self._signals)
        self.workers: dict[tuple[str, str], Worker] = {}
        self._held: dict[tuple[str, str], Worker] = {}
        """Runs that their own requests work on, and that are kept like those of the background."""
        self._coming = 0
        self._holder = RandomIds().new("host")
        self._wake = asyncio.Event()
        self._may_wait = True
        self._stopping = False
        self._dispatching: asyncio.Task[None] | None = None
        self._renewal = LeaseRenewal(store.lease_seconds, self._all, self._renew, self._lose)
        self._looking: set[asyncio.Task[None]] = set()
        self._work = Work(store, clock, self._signals, self.followers)
        store.listen(self._hear)

    def use(self, pipeline: Pipeline, presence: Presence, notifier: DirectNotifier) -> None:
        """Take the parts that are built after this one."""
        self._work.pipeline = pipeline
        self._presence, self._notifier = presence, notifier

    async def start(self) -> None:
        """Takes up what an earlier process left, and whatever comes."""
        self._stopping = False
        # A new one at each start, so that what was left behind is seen to be nobody's.
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
        """Writes the run down and starts it, or leaves it for whoever has room; `session_id` is that of a new one.

        The event that asked for it is done with that. Who asked was seen at `seen_at`, if it was not the operator, and
        is told in a chat that work goes on.
        """
        if not admitted.request.store:
            raise InvalidRequestError("A background run has to be stored.", param="store")
        key = session_id or await self._key(admitted)
        room = not self._stopping and len(self.workers) + self._coming < self._config.runs.max_background_runs
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
        # Whoever asked may leave in the middle of this, and what was stored must be worked on.
        return await asyncio.shield(spawn_clean(self._queue(job, record, event, seen_at)))

    async def hold(self, turn: Turn, record: RunRecord) -> Job:
        """Write that a run begins in its own request; if this process ends, another one ends it as interrupted."""
        session_id = turn.record.session_id if turn.new and turn.record is not None else None
        job = BackgroundRun(admitted=turn.admitted, session_id=session_id, holder=self._holder, fence=1)
        _need_storable(job)
        most = self._config.runs.max_waiting_background_runs
        async with self._store.transaction() as transaction:
            # How many requests may be answered at once is limited at the door.
            transaction.queue_run(record, job, most_waiting=most, most_of_owner=_ANY_NUMBER)
        worker = self._held[job.key] = Worker(job)
        worker.task = present_task()
        worker.begin()
        return Job(self._store, job)

    async def revoke(self, turn: Turn) -> None:
        """Take back that a run began: its request was refused, and nothing was done for it."""
        if turn.job is not None:
            with suppress(LostRunError):
                async with self._store.transaction() as transaction:
                    transaction.end_job(turn.job.run)
                    transaction.delete_run(*turn.job.run.key)
                turn.settled = True

    def let_go(self, turn: Turn) -> None:
        """End the hold; a run whose end could not be written is left to whoever can say that it was interrupted."""
        owner, run_id = turn.admitted.owner, turn.admitted.run_id
        worker = self._held.pop((owner, run_id), None)
        self._signals.notify(run_id)
        if worker is not None and not turn.settled:
            self._beside(self._leave(worker.job))

    async def _leave(self, job: BackgroundRun) -> None:
        await self._work.give_up(job)
        self._may_wait = True
        self._wake.set()

    async def _key(self, admitted: AdmittedRequest) -> str | None:
        """What the caller knows the session by, which is the same before the run begins as later."""
        session = admitted.request.session
        if session is None or session.session_id is None:
            return None if session is None else session.key or session.openai_conversation_id
        known = await self._store.sessions.get(admitted.owner, session.session_id)
        return None if known is None else known.key

    async def _queue(
        self, job: BackgroundRun, record: RunRecord, event: InboxItem | None, seen_at: float | None
    ) -> RunRecord:
        config = self._config
        notices = self._notifier.work_goes_on(job.admitted) if event is not None else ()
        session = None if job.session_id is None else fresh_session(job.admitted, job.session_id)
        lease = None if session is None else self._store.sessions.begin(session.owner, session.session_id)
        try:
            async with self._store.transaction() as transaction:
                if session is not None and lease is not None:
                    # Its caller is told of it now, and may use it before the run begins.
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
        if job.holder:
            self._begin(job, new=True)
        else:
            # Whoever was at work may have ended meanwhile, so that nobody else would say that there is room.
            self._may_wait = True
            self._wake.set()
        await self._notifier.send(notices)
        return record

    async def _dispatch(self) -> None:
        """Takes up what waits, whenever there is room."""
        while True:
            self._wake.clear()
            room = self._config.runs.max_background_runs - len(self.workers) - self._coming
            if room > 0 and (self._may_wait or self._shared):
                self._may_wait, skip = False, self._work.paused.names()
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
        before = self.workers.get(job.key)
        worker = self.workers[job.key] = Worker(job)
        work = self._work.do(worker, None if before is None else before.task, new)
        worker.task = task = spawn_clean(work)
        task.add_done_callback(lambda _: self._forget(worker))
        # Somebody may want to cancel it, and could not while it was on its way here.
        self._signals.notify(job.admitted.run_id)

    def _forget(self, worker: Worker) -> None:
        if self.workers.get(worker.job.key) is worker:
            del self.workers[worker.job.key]
        self._signals.notify(worker.job.admitted.run_id)
        self._may_wait |= worker.given_up or self._work.paused.until(worker.job.key) is not None
        if self._may_wait:
            self._wake.set()

    async def cancel(self, owner: str, run_id: str) -> None:
        """Cancels a run; one of another process is asked to end, and waited for, for a while."""
        active = self._active.get(owner, run_id)
        if active is not None and not await self._active.cancel(active):
            # It goes on, but nothing of it counts any more.
            return
        async with self._signals.subscribe(run_id) as signal:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._config.seconds.cancel_grace):
                    while not await self._cancelled(owner, run_id):
                        await signal.wait()
                        signal.clear()

    async def _cancelled(self, owner: str, run_id: str) -> bool:
        """Whether a run has ended, after all that can be done here to that end."""
        worker = self.workers.get((owner, run_id))
        if worker is not None:
            self.stop(worker, cancelled=True)
            await asyncio.wait([worker.task])
            return True
        job = await self._store.background.get(owner, run_id)
        if job is not None and not job.holder:
            await self._work.cancel(job)
            job = await self._store.background.get(owner, run_id)
        if job is not None and not job.cancelled:
            async with self._store.transaction() as transaction:
                transaction.cancel_job(owner, run_id)
        return job is None

    def interrupt(self, owner: str, run_id: str) -> bool:
        """Stops what this process does for a run, if it works on it in the background: another decides about it."""
        worker = self.workers.get((owner, run_id)) or self._held.get((owner, run_id))
        if worker is not None:
            self.stop(worker, cancelled=False)
        return worker is not None

    def stop(self, worker: Worker, *, cancelled: bool) -> None:
        """Ends what this process does for a run: because somebody wants it, or because it is no longer its own."""
        worker.interrupted |= not cancelled
        active = self._active.get(*worker.job.key)
        if active is None:
            worker.cancel()
        elif not cancelled:
            self._active.interrupt(active)
        else:
            self._active.spawn_cancel(active)

    def _hear(self, kind: ChangeKind, run_id: str) -> None:
        if kind == "run":
            self._signals.notify(run_id)
        elif kind == "work":
            self._may_wait = True
            self._wake.set()
        else:
            # By id alone, because a word carries no owner; whether it is meant the store knows.
            held = [one for one in self._all() if run_id in ("", one.job.admitted.run_id)]
            if held:
                self._beside(self._look_once(held))

    def _all(self) -> list[Worker]:
        return [*self.workers.values(), *self._held.values()]

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = spawn_clean(work)
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)

    async def _look_once(self, workers: Sequence[Worker]) -> None:
        # If it can't be seen now, it is at the next renewal.
        with suppress(StoreUnavailableError, StoreError):
            await self._look(workers)

    async def _look(self, workers: Sequence[Worker]) -> None:
        """Ends the runs that somebody wants to end, and those that are no longer this process's."""
        kept = {job.key: job for job in await self._store.background.renew([one.job for one in workers])}
        for worker in workers:
            job = kept.get(worker.job.key)
            if worker.task.done() or (job is not None and not job.cancelled):
                continue
            self.stop(worker, cancelled=job is not None)

    async def drain(self) -> None:
        """Lets the runs end for a while; those that do not are left to the next process."""
        self._stopping = True
        await stopped(self._dispatching)
        await self._ended(self._config.seconds.shutdown_grace)
        for worker in list(self.workers.values()):
            self.stop(worker, cancelled=False)
        await self._ended(self._config.seconds.cancel_grace)
        await self._renewal.stop()

    async def _renew(self, held: Sequence[Worker]) -> tuple[Worker, ...]:
        await self._look(held)
        # What is another's by now was stopped by that look.
        return ()

    def _lose(self, worker: Worker) -> None:
        if not worker.interrupted:
            log.warning("background run %s could not be kept, and stops here", worker.job.admitted.run_id)
            self.stop(worker, cancelled=False)

    async def _ended(self, within: float) -> None:
        tasks = [worker.task for worker in self.workers.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=within)


def _need_storable(job: BackgroundRun) -> None:
    try:
        form_of(job)
    except CodecError as error:
        log.error("a request can't be kept for the background: %s", error)
        raise NotStorableError(_NOT_KEPT) from error
