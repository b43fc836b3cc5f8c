"""Stored tasks: claimed, tried as often as their policy allows, and settled."""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from frontdesk.abc.runner import RetryPolicy, Task, Waiting
from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.noun import Value
from frontdesk.data.task import TaskRecord, TaskStatus
from frontdesk.errors import StoreUnavailableError
from frontdesk.kit.aio.retry import until_available
from frontdesk.loggers import tasks as log

_PAUSE = 0.5
_MOST_WAITING = 10_000
"""The number of tasks whose next try is known by the steady clock; any other waits for its stored time."""
_DIED = "the process ended each time that it worked on it"


class Registered(Value, frozen=True, kw_only=True):
    """A task and its settings, as registered under a name."""

    task: Task
    retry: RetryPolicy
    waiting: Waiting | None
    most: int


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
        """Store a task; return when it is due."""
        due_at = self._clock.now() if at is None else at
        await self._store.tasks.schedule(TaskRecord(task_id=task_id, name=name, payload=payload, due_at=due_at))
        if at is None:
            # It stays due even if the clock is set back before it is claimed.
            self._note(task_id, due_at, self._clock.steady())
        return due_at

    async def do(self, task_id: str) -> float | None:
        """Claim a task and try it; return when it is due again. Do nothing if it can't be claimed."""
        now, (due_at, again_at) = self._clock.now(), self._again.get(task_id, (0.0, 0.0))
        left = again_at - self._clock.steady()
        record = await self._store.tasks.claim(task_id, self.holder, now=now if left > 0 else max(now, due_at))
        if record is None and left > 0:
            return self._clock.now() + left
        self._again.pop(task_id, None)
        if record is None:
            return None
        self._held[task_id] = (record, asyncio.current_task())
        try:
            return await self._try(record, self._registered[record.name])
        finally:
            del self._held[task_id]

    async def _try(self, record: TaskRecord, registered: Registered) -> float | None:
        now, attempts = self._clock.now, record.attempts
        if attempts > registered.retry.attempts:
            log.error("task %s (%s) is given up: %s", record.task_id, record.name, _DIED)
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
                log.error("task %s (%s) has failed for good", record.task_id, record.name, exc_info=error)
                return await self._settle(record, "failed", attempts=attempts, error=why)
            log.warning("task %s (%s) failed, attempt %s", record.task_id, record.name, attempts, exc_info=error)
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
            settled = await until_available(settle, pause=_PAUSE, give_up=lambda: self.stopping)
        except StoreUnavailableError:
            # The next sweep finds it, because its holder is gone.
            return None
        if settled is None:
            log.info("task %s (%s) is no longer held by this process", record.task_id, record.name)
        return settled.due_at if settled is not None and settled.status == "pending" else None

    def _note(self, task_id: str, due_at: float, again_at: float) -> None:
        self._again[task_id] = (due_at, again_at)
        if len(self._again) > _MOST_WAITING:
            self._again.popitem(last=False)

    def due(self, task: TaskRecord) -> float:
        """Return when a waiting task is to be tried: one that has failed, no later than its pause from now."""
        due_at, again_at = self._again.get(task.task_id, (None, 0.0))
        now, steady = self._clock.now(), self._clock.steady()
        if due_at == task.due_at:
            return now + max(again_at - steady, 0.0)
        pause = self._registered[task.name].retry.delay(task.attempts)
        if task.attempts == 0 or task.due_at - now <= pause:
            return task.due_at
        self._note(task.task_id, task.due_at, steady + pause)
        return now + pause

    def held(self) -> Sequence[TaskRecord]:
        """Return the tasks that this process works on."""
        return [record for record, _ in self._held.values()]

    async def renew(self, held: Sequence[str]) -> Collection[str]:
        """Renew the leases of some tasks; return the ids of those that were lost."""
        renewed = await self._store.tasks.renew([self._held[task_id][0] for task_id in held if task_id in self._held])
        return set(held) - {task.task_id for task in renewed}

    def lose(self, task_id: str) -> None:
        """Cancel a task whose lease was lost."""
        record, task = self._held.get(task_id, (None, None))
        if record is not None and task is not None:
            log.warning("task %s (%s) has lost its lease, and is cancelled here", task_id, record.name)
            task.cancel()
