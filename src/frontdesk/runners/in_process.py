"""Runs tasks in the process that scheduled them, and takes up in the store what another has left."""

from frontdesk.runners.base import TaskRunner
from frontdesk.runners.wakes import Wake


class InProcessTaskRunner(TaskRunner):
    """Tasks in the state store, done here."""

    in_process = True

    async def begin(self) -> None:
        await super().begin()
        self.wakes.start()

    async def end(self, grace: float) -> None:
        await self.wakes.drain(grace)

    def wake(self, wake: Wake, at: float | None) -> None:
        self.wakes.wake(wake, at)

    def remind(self, wake: Wake, at: float | None) -> bool:
        return self.known(wake, at) or self.wakes.wake(wake, at)
