"""Runs tasks in the process that scheduled them, and claims those that another process has left in the store."""

from frontdesk.runners.base import TaskRunner
from frontdesk.runners.wakes import Wake


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
