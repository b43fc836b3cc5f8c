"""The interface of task runners, for durable work outside of requests."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from frontdesk.models.base import FrozenStruct
from frontdesk.models.operations import TaskStatus as TaskStatus


class RetryPolicy(FrozenStruct, frozen=True, kw_only=True):
    """The number of attempts of a task, and the delays between them."""

    attempts: int = 5
    first_delay: float = 1.0
    factor: float = 2.0
    longest_delay: float = 300.0

    def delay(self, attempts: int) -> float:
        """Return the delay in seconds after this many attempts."""
        try:
            return min(self.first_delay * self.factor ** max(attempts - 1, 0), self.longest_delay)
        except OverflowError:
            return self.longest_delay


class TaskHandle(FrozenStruct, frozen=True, kw_only=True):
    """A scheduled task."""

    task_id: str
    name: str


Task = Callable[[Mapping[str, Any]], Awaitable[float | None]]
"""Does the work; returns when it wants to be called again, or `None` when it is done."""
Waiting = Callable[[], AsyncIterator[tuple[str, Mapping[str, Any]]]]
"""Yields the ids and payloads of all tasks that are due."""


class TaskGroups(NamedTuple):
    """The groups that share the calls of one task name in a process."""

    names: Sequence[str]
    """Each of these always has an equal part of one half of the calls. The other half is for all of them."""
    get_group: Callable[[Mapping[str, Any]], str]
    """Returns the group of a payload."""


def _no_group(payload: Mapping[str, Any]) -> str:
    return ""


ONE_GROUP = TaskGroups(("",), _no_group)


class DurableTaskRunner(Protocol):
    """Runs registered tasks at least once, across restarts. Never runs two with the same id at a time."""

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
        groups: TaskGroups = ONE_GROUP,
    ) -> None:
        """Register a task under a name. Only before the start.

        With `waiting`, no task state is stored: `schedule` only wakes the task, and `waiting` is polled for work whose
        wake-up was lost. At most `most` tasks of the name run concurrently in this process. If more are due, the groups
        take turns: no group waits for the whole queue of another one.
        """
        ...

    async def schedule(
        self, name: str, payload: Mapping[str, Any], *, task_id: str, at: float | None = None
    ) -> TaskHandle:
        """Schedule a task, now or at a time. While it waits, the same id is the same task, at the earlier time.

        If it is running, it runs once more afterwards. If it has ended, it starts anew.
        """
        ...

    async def get(self, task_id: str) -> TaskStatus | None:
        """Return the status of a task. A task with `waiting` has none after its end."""
        ...

    async def cancel(self, task_id: str) -> bool:
        """Cancel a task that has not ended. Return True if there was one."""
        ...

    async def start(self) -> None:
        """Resume the tasks of earlier processes."""
        ...

    async def drain(self, grace: float) -> None:
        """Accept no new tasks, let running ones finish for `grace` seconds, then cancel and release them."""
        ...
