"""Runs tasks in the process that scheduled them, and takes up in the store what another has left."""

from frontdesk.abc.runner import TaskStatus
from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.runners.base import TaskRunner
from frontdesk.runners.wakes import Wake, Wakes

MOST_KNOWN = 10_000


class InProcessTaskRunner(TaskRunner):
    """Tasks in the state store, done here."""

    in_process = True

    def __init__(self, store: HostStateStore, *, clock: Clock | None = None) -> None:
        super().__init__(store, clock=clock)
        self._wakes = Wakes(self.call, self.clock, most=MOST_KNOWN, freed=self._swept.set)

    async def begin(self) -> None:
        for name, known in self.registered.items():
            self._wakes.make_room(name, known.most)
        self._wakes.start()

    def halt(self) -> None:
        self._wakes.stopping = True

    async def end(self, grace: float) -> None:
        await self._wakes.drain(grace)

    def wake(self, wake: Wake, at: float | None) -> None:
        self._wakes.wake(wake, at)

    def remind(self, wake: Wake, at: float | None) -> bool:
        # What is known here has its own time.
        return wake.task_id in self._wakes or self._wakes.wake(wake, at)

    async def woken(self, task_id: str) -> TaskStatus | None:
        running = self._wakes.running(task_id)
        return None if running is None else "running" if running else "pending"

    async def unwake(self, task_id: str) -> bool:
        known = task_id in self._wakes
        await self._wakes.cancel(task_id)
        return known
