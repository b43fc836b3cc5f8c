"""The storage for tasks that wait for their time."""

from collections.abc import Sequence
from typing import Protocol

from frontdesk.data.task import TaskRecord, TaskStatus


class Tasks(Protocol):
    """Tasks that were scheduled."""

    async def get(self, task_id: str) -> TaskRecord | None: ...

    async def schedule(self, task: TaskRecord) -> None:
        """Keep a task. One that waits stays as it is, at the earlier time; one that runs is noted to run again."""
        ...

    async def due(self, names: Sequence[str], before: float, *, holder: str, limit: int) -> Sequence[TaskRecord]:
        """List tasks of these names that are due before a time and that a holder could take up, the first due first."""
        ...

    async def stranded(self, names: Sequence[str], after: float, *, holder: str, limit: int) -> Sequence[TaskRecord]:
        """List those that were tried, wait to be tried again and are due only after a time, the first due first."""
        ...

    async def claim(self, task_id: str, holder: str, *, now: float) -> TaskRecord | None:
        """Take up a task that is due and on which nobody works, for `lease_seconds`; the attempt counts."""
        ...

    async def renew(self, tasks: Sequence[TaskRecord]) -> Sequence[TaskRecord]:
        """Keep tasks for another `lease_seconds`; return those that are still the holder's."""
        ...

    async def settle(
        self, task: TaskRecord, status: TaskStatus, *, due_at: float, attempts: int, error: str | None = None
    ) -> TaskRecord | None:
        """Note how a task ended, or that it waits again; if it was scheduled meanwhile, it waits in any case.

        Returns it as it is then, or nothing if it is no longer the holder's.
        """
        ...

    async def cancel(self, task_id: str) -> bool:
        """End a task that has not ended, whoever works on it; tell whether there was one."""
        ...
