"""Tasks of the in-memory store."""

from collections.abc import Callable, Sequence

from frontdesk.data.task import TaskRecord, TaskStatus
from frontdesk.errors import StoreUnavailableError

_ENDED = ("succeeded", "failed", "cancelled")


class MemoryTasks:
    """Tasks that were scheduled; of those that have ended only the last ones are kept."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.open: dict[str, TaskRecord] = {}
        self.ended: dict[str, TaskRecord] = {}
        self.again: dict[str, TaskRecord] = {}

    async def get(self, task_id: str) -> TaskRecord | None:
        return self.open.get(task_id) or self.ended.get(task_id)

    async def schedule(self, task: TaskRecord) -> None:
        current = self.open.get(task.task_id)
        if current is None:
            if len(self.open) >= self.limit:
                raise StoreUnavailableError
            self.ended.pop(task.task_id, None)
            self.open[task.task_id] = task
        elif current.holder:
            earlier = self.again.get(task.task_id, task).due_at
            self.again[task.task_id] = task.replace(due_at=min(task.due_at, earlier))
        else:
            self.open[task.task_id] = current.replace(due_at=min(current.due_at, task.due_at))

    async def due(self, names: Sequence[str], before: float, *, holder: str, limit: int) -> Sequence[TaskRecord]:
        return self._free(names, holder, limit, lambda task: task.due_at < before)

    async def stranded(self, names: Sequence[str], after: float, *, holder: str, limit: int) -> Sequence[TaskRecord]:
        return self._free(names, holder, limit, lambda task: task.due_at > after and task.attempts > 0)

    def _free(
        self, names: Sequence[str], holder: str, limit: int, when: Callable[[TaskRecord], bool]
    ) -> Sequence[TaskRecord]:
        free = (task for task in self.open.values() if task.holder != holder and task.name in names)
        return sorted(filter(when, free), key=_due_at)[:limit]

    async def claim(self, task_id: str, holder: str, *, now: float) -> TaskRecord | None:
        current = self.open.get(task_id)
        if current is None or current.holder == holder or current.due_at > now:
            return None
        current = self.again.pop(task_id, current).replace(fence=current.fence, attempts=current.attempts)
        taken = current.replace(holder=holder, fence=current.fence + 1, attempts=current.attempts + 1, status="running")
        self.open[task_id] = taken
        return taken

    async def renew(self, tasks: Sequence[TaskRecord]) -> Sequence[TaskRecord]:
        return [task for task in tasks if self._holds(task)]

    def _holds(self, task: TaskRecord) -> bool:
        current = self.open.get(task.task_id)
        return current is not None and bool(current.holder) and current.fence == task.fence

    async def settle(
        self, task: TaskRecord, status: TaskStatus, *, due_at: float, attempts: int, error: str | None = None
    ) -> TaskRecord | None:
        if not self._holds(task):
            return None
        current = self.open[task.task_id]
        again = self.again.pop(task.task_id, None)
        if again is not None:
            current, status, due_at, attempts = again.replace(fence=current.fence), "pending", again.due_at, 0
        settled = current.replace(status=status, due_at=due_at, attempts=attempts, error=error, holder="")
        self._put(settled)
        return settled

    async def cancel(self, task_id: str) -> bool:
        current = self.open.get(task_id)
        if current is None:
            return False
        self.again.pop(task_id, None)
        self._put(current.replace(status="cancelled", holder="", fence=current.fence + 1))
        return True

    def _put(self, task: TaskRecord) -> None:
        if task.status not in _ENDED:
            self.open[task.task_id] = task
            return
        self.open.pop(task.task_id, None)
        self.ended[task.task_id] = task
        if len(self.ended) > self.limit:
            self.ended.pop(next(iter(self.ended)))


def _due_at(task: TaskRecord) -> float:
    return task.due_at
