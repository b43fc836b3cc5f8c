"""Work that outlives the request which asked for it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol

from frontdesk.data.noun import Noun

TaskStatus = Literal["pending", "running", "succeeded", "failed", "cancelled"]


class RetryPolicy(Noun, frozen=True, kw_only=True):
    """How often and how far apart a task is tried."""

    attempts: int = 5
    first_delay: float = 1.0
    factor: float = 2.0
    longest_delay: float = 300.0


class TaskHandle(Noun, frozen=True, kw_only=True):
    """A task that was scheduled."""

    task_id: str
    name: str


Task = Callable[[Mapping[str, Any]], Awaitable[None]]


class DurableTaskRunner(Protocol):
    """Runs registered tasks at least once, over restarts."""

    durable: bool
    """Whether what was scheduled survives the process."""

    def register(self, name: str, task: Task, *, retry: RetryPolicy | None = None) -> None:
        """Names a task; before start only."""
        ...

    async def schedule(self, name: str, payload: Mapping[str, Any], *, task_id: str) -> TaskHandle:
        """Schedules a task; the same id twice is one task."""
        ...

    async def get(self, task_id: str) -> TaskStatus | None:
        """How far the task is."""
        ...

    async def cancel(self, task_id: str) -> bool:
        """Cancels a task that has not ended."""
        ...

    async def start(self) -> None:
        """Takes up what an earlier process left."""
        ...

    async def drain(self, grace: float) -> None:
        """Lets running tasks end, and takes no new ones."""
        ...
