"""Work that outlives the request which asked for it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

from frontdesk.data.noun import Value
from frontdesk.data.task import TaskStatus as TaskStatus


class RetryPolicy(Value, frozen=True, kw_only=True):
    """The number of tries of a task, and the delays between them."""

    attempts: int = 5
    first_delay: float = 1.0
    factor: float = 2.0
    longest_delay: float = 300.0

    def delay(self, attempts: int) -> float:
        """Return how long to wait after so many attempts."""
        try:
            return min(self.first_delay * self.factor ** max(attempts - 1, 0), self.longest_delay)
        except OverflowError:
            return self.longest_delay


class TaskHandle(Value, frozen=True, kw_only=True):
    """A task that was scheduled."""

    task_id: str
    name: str


Task = Callable[[Mapping[str, Any]], Awaitable[float | None]]
"""Does the work; returns when it wants to be called again, or `None` when it is done."""
Waiting = Callable[[], AsyncIterator[tuple[str, Mapping[str, Any]]]]
"""Yields the ids and payloads of all tasks that are due."""


class DurableTaskRunner(Protocol):
    """Runs registered tasks at least once, over restarts; never two of one id at a time."""

    durable: bool
    """Whether what was scheduled survives the process."""
    in_process: bool
    """Whether only this process runs what it has scheduled."""

    def register(
        self,
        name: str,
        task: Task,
        *,
        retry: RetryPolicy | None = None,
        waiting: Waiting | None = None,
        most: int | None = None,
    ) -> None:
        """Name a task; before start only.

        With `waiting`, nothing of a task is stored: `schedule` only wakes the task up, and `waiting` is polled for what
        a lost wake-up has left undone.
        At most `most` of the name run at once in this process.
        """
        ...

    async def schedule(
        self, name: str, payload: Mapping[str, Any], *, task_id: str, at: float | None = None
    ) -> TaskHandle:
        """Schedule a task, now or at a time. While it waits, the same id is the same task, at the earlier time.

        While it runs, it runs once more after that; when it has ended, it begins anew.
        """
        ...

    async def get(self, task_id: str) -> TaskStatus | None:
        """Tell how far the task is; of one that is only woken nothing is known after its end."""
        ...

    async def cancel(self, task_id: str) -> bool:
        """Cancel a task that has not ended; tell whether there was one."""
        ...

    async def start(self) -> None:
        """Take up what an earlier process left."""
        ...

    async def drain(self, grace: float) -> None:
        """Take no new tasks, let the running ones end for a while, then cancel them and give them back."""
        ...
