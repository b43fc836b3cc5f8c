"""Base class of task runners, and the in-process runner. Stores durable tasks and sweeps for unfinished ones."""

import asyncio
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from frontdesk.clock import Clock, Moment, SystemClock
from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.concurrency.timeouts import until_available
from frontdesk.errors import FrontdeskError, StoreUnavailableError, TaskError
from frontdesk.ids import RandomIds
from frontdesk.interfaces.runner import ONE_GROUP, RetryPolicy, Task, TaskGroups, TaskHandle, TaskStatus, Waiting
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import tasks as log
from frontdesk.models.base import FrozenStruct
from frontdesk.models.operations import TaskRecord
from frontdesk.runners.wakes import Failed, Wake, Wakes
from frontdesk.serialization.codec import encode
from frontdesk.sessions.leases import LeaseRenewal

_RETRY_INTERVAL_SECONDS = 0.5
_MAX_WAITING = 10_000
"""The number of tasks whose next try is known by the steady clock; any other waits for its stored time."""
_DIED = "the process ended in each attempt"


class Registered(FrozenStruct, frozen=True, kw_only=True):
    task: Task
    retry: RetryPolicy
    waiting: Waiting | None
    most: int
    groups: TaskGroups = ONE_GROUP


class StoredTasks:
    """Runs the tasks that this process has claimed in the store."""

    def __init__(self, store: HostStateStore, clock: Clock, registered: Mapping[str, Registered]) -> None:
        self._store = store
        self._clock = clock
        self._registered = registered
        self._again: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Tasks that wait for a retry, with their stored time and the time by the steady clock."""
        self._held: dict[str, tuple[TaskRecord, asyncio.Task[Any] | None]] = {}
        self.holder = ""
        self.stopping = False

    async def keep(self, name: str, payload: Mapping[str, Any], task_id: str, at: float | None) -> float:
        """Store a task and return its due time."""
        due_at = self._clock.now() if at is None else at
        await self._store.tasks.schedule(TaskRecord(task_id=task_id, name=name, payload=payload, due_at=due_at))
        if at is None:
            # It stays due even if the clock is set back before it is claimed.
            self._note(task_id, due_at, self._clock.steady())
        return due_at

    async def do(self, task_id: str) -> float | None:
        """Claim a task and run it. Return its next due time. Do nothing if it cannot be claimed."""
        now, (due_at, again_at) = self._clock.now(), self._again.get(task_id, (0.0, 0.0))
        left = again_at - self._clock.steady()
        claimed_at = Moment.of(self._clock)
        record = await self._store.tasks.claim(task_id, self.holder, now=now if left > 0 else max(now, due_at))
        if record is None and left > 0:
            return self._clock.now() + left
        self._again.pop(task_id, None)
        if record is None or not await self._is_held(record, claimed_at):
            return None
        self._held[task_id] = (record, asyncio.current_task())
        try:
            return await self._try(record, self._registered[record.name])
        finally:
            del self._held[task_id]

    async def _is_held(self, record: TaskRecord, claimed_at: Moment) -> bool:
        """Return True if this process still holds a task, even after a standstill since the claim."""
        seconds = self._store.lease_seconds
        while seconds is not None and claimed_at.age(self._clock) > seconds / 4:
            claimed_at = Moment.of(self._clock)
            if not await self._store.tasks.renew([record]):
                log.warning("task taken over by another process: task_id=%s name=%s", record.task_id, record.name)
                return False
        return True

    async def _try(self, record: TaskRecord, registered: Registered) -> float | None:
        now, attempts = self._clock.now, record.attempts
        if attempts > registered.retry.attempts:
            log.error("task failed permanently: task_id=%s name=%s: %s", record.task_id, record.name, _DIED)
            return await self._settle(record, "failed", attempts=attempts - 1, error=_DIED)
        try:
            again = await registered.task(record.payload)
        except asyncio.CancelledError:
            # A cancelled try does not count; the task waits for the next process.
            await self._settle(record, "pending", due_at=now(), attempts=attempts - 1)
            raise
        except Exception as error:  # No caller waits for a task: its error is stored.
            why = type(error).__name__
            if attempts >= registered.retry.attempts:
                log.error("task failed permanently: task_id=%s name=%s", record.task_id, record.name, exc_info=error)
                return await self._settle(record, "failed", attempts=attempts, error=why)
            log.warning(
                "task failed: task_id=%s name=%s attempt=%s", record.task_id, record.name, attempts, exc_info=error
            )
            pause = registered.retry.delay(attempts)
            due_at, again_at = now() + pause, self._clock.steady() + pause
            settled = await self._settle(record, "pending", due_at=due_at, attempts=attempts, error=why)
            if settled == due_at:
                self._note(record.task_id, due_at, again_at)
            return settled
        if again is not None:
            return await self._settle(record, "pending", due_at=again, attempts=0)
        return await self._settle(record, "succeeded", attempts=attempts)

    async def _settle(
        self,
        record: TaskRecord,
        status: TaskStatus,
        *,
        attempts: int,
        due_at: float | None = None,
        error: str | None = None,
    ) -> float | None:
        at = record.due_at if due_at is None else due_at

        async def settle() -> TaskRecord | None:
            return await self._store.tasks.settle(record, status, due_at=at, attempts=attempts, error=error)

        try:
            settled = await until_available(settle, pause=_RETRY_INTERVAL_SECONDS, give_up=lambda: self.stopping)
        except StoreUnavailableError:
            # The next sweep finds it, because its holder is gone.
            return None
        if settled is None:
            log.info("task lease lost: task_id=%s name=%s", record.task_id, record.name)
        return settled.due_at if settled is not None and settled.status == "pending" else None

    def _note(self, task_id: str, due_at: float, again_at: float) -> None:
        self._again[task_id] = (due_at, again_at)
        if len(self._again) > _MAX_WAITING:
            self._again.popitem(last=False)

    def due(self, task: TaskRecord) -> float:
        """Return the due time of a waiting task. A failed task is due no later than its pause from now."""
        due_at, again_at = self._again.get(task.task_id, (None, 0.0))
        now, steady = self._clock.now(), self._clock.steady()
        if due_at == task.due_at:
            return now + max(again_at - steady, 0.0)
        pause = self._registered[task.name].retry.delay(task.attempts)
        if task.attempts == 0 or task.due_at - now <= pause:
            return task.due_at
        self._note(task.task_id, task.due_at, steady + pause)
        return now + pause

    def list_held(self) -> Sequence[TaskRecord]:
        return [record for record, _ in self._held.values()]

    async def renew(self, held: Sequence[str]) -> Collection[str]:
        """Renew the leases of some tasks. Return the ids whose leases were lost."""
        renewed = await self._store.tasks.renew([self._held[task_id][0] for task_id in held if task_id in self._held])
        return set(held) - {task.task_id for task in renewed}

    def lose(self, task_id: str) -> None:
        record, task = self._held.get(task_id, (None, None))
        if record is not None and task is not None:
            log.warning("task lease lost, cancelling it: task_id=%s name=%s", task_id, record.name)
            task.cancel()


MAX_CLAIMED = 100
MAX_KNOWN = 10_000
_SWEEP_SECONDS = 2.0
_BATCH_ROWS = 500


class TaskRunner(ABC):
    """Base class of task runners. Subclasses decide how a worker is woken."""

    durable: bool

    def __init__(self, store: HostStateStore, *, clock: Clock | None = None) -> None:
        self.store = store
        self.durable = store.durable
        self.clock = clock or SystemClock()
        self.registered: dict[str, Registered] = {}
        self._stored = StoredTasks(store, self.clock, self.registered)
        self._sweeping: asyncio.Task[None] | None = None
        self._renewal = LeaseRenewal(store.lease_seconds, self._list_held, self._stored.renew, self._stored.lose)
        self._started = False
        self._swept = asyncio.Event()
        self.wakes = Wakes(self.call, self.clock, most=MAX_KNOWN, freed=self._swept.set)

    def register(
        self,
        name: str,
        task: Task,
        *,
        retry: RetryPolicy | None = None,
        waiting: Waiting | None = None,
        most: int | None = None,
        groups: TaskGroups = ONE_GROUP,
    ) -> None:
        if self._started:
            raise TaskError(f"the task {name!r} is registered after the runner has started")
        if name in self.registered:
            raise TaskError(f"a task named {name!r} is already registered")
        if most is not None and most < 1:
            raise TaskError(f"the concurrency of task {name!r} must be at least 1")
        self.registered[name] = Registered(
            task=task,
            retry=retry or RetryPolicy(),
            waiting=waiting,
            most=MAX_CLAIMED if most is None else most,
            groups=groups,
        )

    async def schedule(
        self, name: str, payload: Mapping[str, Any], *, task_id: str, at: float | None = None
    ) -> TaskHandle:
        registered = self.registered.get(name)
        if registered is None:
            raise TaskError(f"no task called {name!r} is registered")
        if registered.waiting is None:
            # In every runner, the caller gets the error of a payload that can't be stored.
            encode(payload)
            at = await self._stored.keep(name, payload, task_id, at)
        if self._started:
            self.wake(Wake(name, task_id, payload if registered.waiting is not None else {}), at)
        return TaskHandle(task_id=task_id, name=name)

    async def get(self, task_id: str) -> TaskStatus | None:
        record = await self.store.tasks.get(task_id)
        return await self.wake_status(task_id) if record is None else record.status

    async def cancel(self, task_id: str) -> bool:
        written = await self.store.tasks.cancel(task_id)
        return await self.cancel_wake(task_id) or written

    async def start(self) -> None:
        # A new id at each start, so that tasks of the last run count as unclaimed.
        self._stored.holder = RandomIds().new("host")
        self._stored.stopping = False
        self._started = True
        await self.begin()
        self._sweeping = spawn_clean(self._sweep())
        self._renewal.start()

    def _list_held(self) -> list[str]:
        return [record.task_id for record in self._stored.list_held()]

    async def drain(self, grace: float) -> None:
        self._started = False
        self.halt()
        await cancel_and_wait(self._sweeping)
        self._stored.stopping = True
        await self.end(grace)
        await self._renewal.stop()

    async def call(self, wake: Wake, failures: int) -> float | None:
        """Run a woken task and return its next wake-up time. Log a failure and raise `Failed`."""
        registered = self.registered[wake.name]
        try:
            if registered.waiting is None:
                return await self._stored.do(wake.task_id)
            return await registered.task(wake.payload)
        except Exception as error:  # No caller waits for a wake-up, and its work is still stored.
            pause = registered.retry.delay(failures + 1)
            log.warning("task failed, retrying: task_id=%s name=%s delay_seconds=%.1f", wake.task_id, wake.name, pause)
            log.debug("task failed: name=%s", wake.task_id, exc_info=error)
            raise Failed(self.clock.now() + pause) from error

    async def _sweep(self) -> None:
        while True:
            self._swept.clear()
            try:
                await self.look()
            except FrontdeskError as error:
                log.warning("failed to look up unfinished tasks: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(_SWEEP_SECONDS):
                    await self._swept.wait()

    async def look(self) -> None:
        """Wake every pending task, in case its wake-up was lost."""
        stored = [name for name, registered in self.registered.items() if registered.waiting is None]
        if stored:
            await self._remind_of_stored(stored)
        for name, registered in self.registered.items():
            if registered.waiting is not None:
                await self._remind_of_waiting(name, registered.waiting, registered.groups)

    async def _remind_of_waiting(self, name: str, waiting: Waiting, groups: TaskGroups) -> None:
        full: set[str] = set()
        async for task_id, payload in waiting():
            group = groups.get_group(payload)
            if group not in full and not self.remind(Wake(name, task_id, payload), None):
                full.add(group)
                # Another group may still have room, however much the first one has queued.
                if full.issuperset(groups.names):
                    break

    async def _remind_of_stored(self, names: list[str]) -> None:
        now, holder, tasks = self.clock.now(), self._stored.holder, self.store.tasks
        records = list(await tasks.due(names, now + 2 * _SWEEP_SECONDS, holder=holder, limit=_BATCH_ROWS))
        # No pause between two tries is that long: these times come from a clock that was set back since.
        longest = max(self.registered[name].retry.longest_delay for name in names)
        records += await tasks.stranded(names, now + longest, holder=holder, limit=_BATCH_ROWS)
        for task in records:
            if not self.remind(Wake(task.name, task.task_id, {}), self._stored.due(task)):
                break

    async def begin(self) -> None:
        for name, registered in self.registered.items():
            self.wakes.evict_oldest(name, registered.most, registered.groups)

    def halt(self) -> None:
        """Stop making new calls."""
        self.wakes.stopping = True

    @abstractmethod
    async def end(self, grace: float) -> None:
        """Wait for running calls to end, and cancel them after `grace` seconds."""

    @abstractmethod
    def wake(self, wake: Wake, at: float | None) -> None:
        """Make a worker run a task, now or at a time. If the wake-up is lost, the next `look` finds the task."""

    @abstractmethod
    def remind(self, wake: Wake, at: float | None) -> bool:
        """Wake a task that may already be known. Return False if the limit is reached."""

    def is_known(self, wake: Wake, at: float | None) -> bool:
        """Return True if a task waits or runs here. A waiting task is moved to `at` if that is sooner."""
        if at is not None:
            self.wakes.move(wake.task_id, at)
        return wake.task_id in self.wakes

    async def wake_status(self, task_id: str) -> TaskStatus | None:
        """Return the status of a task that is not stored."""
        running = self.wakes.find_running(task_id)
        return None if running is None else "running" if running else "pending"

    async def cancel_wake(self, task_id: str) -> bool:
        """Drop a task's wake-up and cancel its call. Return True if there was one."""
        was_known = task_id in self.wakes
        await self.wakes.cancel(task_id)
        return was_known


class InProcessTaskRunner(TaskRunner):
    """Runs the tasks of the state store in this process."""

    in_process = True

    async def begin(self) -> None:
        await super().begin()
        self.wakes.start()

    async def end(self, grace: float) -> None:
        await self.wakes.drain(grace)

    def wake(self, wake: Wake, at: float | None) -> None:
        self.wakes.wake(wake, at)

    def remind(self, wake: Wake, at: float | None) -> bool:
        return self.is_known(wake, at) or self.wakes.wake(wake, at)
