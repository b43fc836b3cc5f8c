"""The base of all runners: registers tasks, stores those that are durable, and sweeps for unfinished ones."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from frontdesk.abc.runner import RetryPolicy, Task, TaskHandle, TaskStatus, Waiting
from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock, SystemClock
from frontdesk.data.codec import encode
from frontdesk.errors import FrontdeskError, TaskError
from frontdesk.ids import RandomIds
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.loggers import tasks as log
from frontdesk.runners.stored import Registered, StoredTasks
from frontdesk.runners.wakes import Failed, Wake, Wakes
from frontdesk.sessions.leases import LeaseRenewal

MOST = 100
MOST_KNOWN = 10_000
_SWEEP = 2.0
_AT_ONCE = 500


class TaskRunner(ABC):
    """The part that runners share; each subclass decides how a worker is woken."""

    durable: bool

    def __init__(self, store: HostStateStore, *, clock: Clock | None = None) -> None:
        self.store = store
        self.durable = store.durable
        self.clock = clock or SystemClock()
        self.registered: dict[str, Registered] = {}
        self._stored = StoredTasks(store, self.clock, self.registered)
        self._sweeping: asyncio.Task[None] | None = None
        self._renewal = LeaseRenewal(store.lease_seconds, self._held, self._stored.renew, self._stored.lose)
        self._started = False
        self._swept = asyncio.Event()
        self.wakes = Wakes(self.call, self.clock, most=MOST_KNOWN, freed=self._swept.set)

    def register(
        self,
        name: str,
        task: Task,
        *,
        retry: RetryPolicy | None = None,
        waiting: Waiting | None = None,
        most: int | None = None,
    ) -> None:
        if self._started:
            raise TaskError(f"the task {name!r} is registered after the runner has started")
        if name in self.registered:
            raise TaskError(f"there is a task called {name!r} already")
        if most is not None and most < 1:
            raise TaskError(f"the task {name!r} needs room for at least one at a time")
        self.registered[name] = Registered(
            task=task, retry=retry or RetryPolicy(), waiting=waiting, most=MOST if most is None else most
        )

    async def schedule(
        self, name: str, payload: Mapping[str, Any], *, task_id: str, at: float | None = None
    ) -> TaskHandle:
        registered = self.registered.get(name)
        if registered is None:
            raise TaskError(f"there is no task called {name!r}")
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

    def _held(self) -> list[str]:
        return [record.task_id for record in self._stored.held()]

    async def drain(self, grace: float) -> None:
        self._started = False
        self.halt()
        await stopped(self._sweeping)
        self._stored.stopping = True
        await self.end(grace)
        await self._renewal.stop()

    async def call(self, wake: Wake, failures: int) -> float | None:
        """Run a task that was woken; return when to wake it again. Log a failure, and raise `Failed`."""
        registered = self.registered[wake.name]
        try:
            if registered.waiting is None:
                return await self._stored.do(wake.task_id)
            return await registered.task(wake.payload)
        except Exception as error:  # No caller waits for a wake-up, and its work is still stored.
            pause = registered.retry.delay(failures + 1)
            log.warning("task %s (%s) failed, and is tried again in %.1f s", wake.task_id, wake.name, pause)
            log.debug("task %s failed", wake.task_id, exc_info=error)
            raise Failed(self.clock.now() + pause) from error

    async def _sweep(self) -> None:
        while True:
            self._swept.clear()
            try:
                await self.look()
            except FrontdeskError as error:
                log.warning("unfinished tasks could not be looked for: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(_SWEEP):
                    await self._swept.wait()

    async def look(self) -> None:
        """Wake every task that has something to do, in case its wake-up was lost."""
        stored = [name for name, registered in self.registered.items() if registered.waiting is None]
        if stored:
            await self._remind_of_stored(stored)
        for name, registered in self.registered.items():
            if registered.waiting is not None:
                async for task_id, payload in registered.waiting():
                    if not self.remind(Wake(name, task_id, payload), None):
                        break

    async def _remind_of_stored(self, names: list[str]) -> None:
        now, holder, tasks = self.clock.now(), self._stored.holder, self.store.tasks
        records = list(await tasks.due(names, now + 2 * _SWEEP, holder=holder, limit=_AT_ONCE))
        # No pause between two tries is that long: these times come from a clock that was set back since.
        longest = max(self.registered[name].retry.longest_delay for name in names)
        records += await tasks.stranded(names, now + longest, holder=holder, limit=_AT_ONCE)
        for task in records:
            if not self.remind(Wake(task.name, task.task_id, {}), self._stored.due(task)):
                break

    async def begin(self) -> None:
        """Prepare to be woken."""
        for name, registered in self.registered.items():
            self.wakes.make_room(name, registered.most)

    def halt(self) -> None:
        """Stop making new calls."""
        self.wakes.stopping = True

    @abstractmethod
    async def end(self, grace: float) -> None:
        """Wait for running calls to end, and cancel them after `grace` seconds."""

    @abstractmethod
    def wake(self, wake: Wake, at: float | None) -> None:
        """Have a worker run a task, now or at a time. A wake-up may be lost: the next `look` finds the task."""

    @abstractmethod
    def remind(self, wake: Wake, at: float | None) -> bool:
        """Wake a task that may be known already; return false if there is no room for more."""

    def is_known(self, wake: Wake, at: float | None) -> bool:
        """Tell whether a task waits or runs here; one that waits is moved to `at` if that is sooner."""
        if at is not None:
            self.wakes.move(wake.task_id, at)
        return wake.task_id in self.wakes

    async def wake_status(self, task_id: str) -> TaskStatus | None:
        """Return the status of a task that is not stored."""
        running = self.wakes.running(task_id)
        return None if running is None else "running" if running else "pending"

    async def cancel_wake(self, task_id: str) -> bool:
        """Drop the wake-up of a task, and cancel its call; tell whether there was one."""
        was_known = task_id in self.wakes
        await self.wakes.cancel(task_id)
        return was_known
