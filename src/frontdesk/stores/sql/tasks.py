"""The drawer of tasks that were scheduled."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, get_args

from frontdesk.data.codec import encode
from frontdesk.data.task import TaskRecord, TaskStatus
from frontdesk.errors import UnreadableRecordError
from frontdesk.stores.sql.background import LeaseSql
from frontdesk.stores.sql.engine import Engine, Rows
from frontdesk.stores.sql.records import LeftAlone, Records
from frontdesk.stores.sql.tables import as_bytes, key, text
from frontdesk.stores.sql.writes import Do

_TASK = "task_id, status, due_at, attempts, holder, fence, error, data"
_STATUSES: tuple[str, ...] = get_args(TaskStatus)
_UNCLAIMED = "UPDATE tasks SET holder = '', until = 0, attempts = attempts - 1 WHERE task_id = ? AND fence = ?"
_RUNS = "(tasks.status = 'pending' AND tasks.holder <> '')"
_WAITS = "(tasks.status = 'pending' AND tasks.holder = '')"
_SCHEDULE = f"""
INSERT INTO tasks (task_id, name, status, due_at, attempts, holder, fence, until, data)
VALUES (?, ?, 'pending', ?, 0, '', 0, 0, ?)
ON CONFLICT (task_id) DO UPDATE SET
again_at = CASE WHEN NOT {_RUNS} THEN NULL
    WHEN tasks.again_at < excluded.due_at THEN tasks.again_at ELSE excluded.due_at END,
due_at = CASE WHEN {_RUNS} OR ({_WAITS} AND tasks.due_at < excluded.due_at) THEN tasks.due_at ELSE excluded.due_at END,
attempts = CASE WHEN tasks.status = 'pending' THEN tasks.attempts ELSE 0 END,
error = CASE WHEN tasks.status = 'pending' THEN tasks.error ELSE NULL END,
name = CASE WHEN {_WAITS} THEN tasks.name ELSE excluded.name END,
data = CASE WHEN {_WAITS} THEN tasks.data ELSE excluded.data END,
status = 'pending', ended_at = NULL
"""
"""A task that waits keeps its record and gets the earlier time; one that runs is scheduled to run again."""
_SETTLE = """
UPDATE tasks SET holder = '', until = 0,
status = CASE WHEN again_at IS NULL THEN ? ELSE 'pending' END,
due_at = CASE WHEN again_at IS NULL THEN ? ELSE again_at END,
attempts = CASE WHEN again_at IS NULL THEN ? ELSE 0 END,
ended_at = CASE WHEN again_at IS NULL THEN CAST(? AS DOUBLE PRECISION) ELSE NULL END,
error = ?, again_at = NULL
WHERE task_id = ? AND fence = ? AND status = 'pending' AND holder <> ''
"""


class SqlTasks:
    """Tasks that were scheduled, each a row of its own."""

    def __init__(self, engine: Engine, records: Records, lease_sql: LeaseSql) -> None:
        self._engine = engine
        self._records = records
        self._lease_sql = lease_sql
        self._left = LeftAlone("task_id")

    async def get(self, task_id: str) -> TaskRecord | None:
        tasks = await self._read(
            await self._engine.read(f"SELECT {_TASK} FROM tasks WHERE task_id = ?", (key(task_id),))
        )
        return tasks[0] if tasks else None

    async def schedule(self, task: TaskRecord) -> None:
        row = (key(task.task_id), key(task.name), task.due_at, encode(_fixed_part(task)))
        await self._engine.write([Do(_SCHEDULE, row)])

    async def due(self, names: Sequence[str], before: float, *, holder: str, limit: int) -> Sequence[TaskRecord]:
        return await self._free("due_at < ?", before, names, holder, limit)

    async def stranded(self, names: Sequence[str], after: float, *, holder: str, limit: int) -> Sequence[TaskRecord]:
        return await self._free("due_at > ? AND attempts > 0", after, names, holder, limit)

    async def _free(
        self, when: str, time: float, names: Sequence[str], holder: str, limit: int
    ) -> Sequence[TaskRecord]:
        marks, (others, left) = ", ".join("?" for _ in names), self._left.condition()
        rows = await self._engine.read(
            f"SELECT {_TASK} FROM tasks WHERE status = 'pending' AND {when} AND {self._lease_sql.free} "
            f"AND name IN ({marks}) {others} ORDER BY due_at LIMIT ?",
            (time, holder, *map(key, names), *left, limit),
        )
        tasks: list[TaskRecord] = []
        for row in rows:
            with suppress(UnreadableRecordError):
                tasks += await self._read([row])
        return tasks

    async def claim(self, task_id: str, holder: str, *, now: float) -> TaskRecord | None:
        rows = await self._engine.write(
            [
                Do(
                    f"UPDATE tasks SET holder = ?, fence = fence + 1, until = {self._lease_sql.until}, "
                    "attempts = attempts + 1, again_at = NULL "
                    f"WHERE task_id = ? AND status = 'pending' AND due_at <= ? AND {self._lease_sql.free} "
                    f"RETURNING {_TASK}",
                    (holder, key(task_id), now, holder),
                    answers=True,
                )
            ]
        )
        try:
            claimed = await self._read(rows[0])
        except UnreadableRecordError:
            # A process that can read it must be able to claim it, as if it had not been tried.
            task_id, *_, fence, _, _ = rows[0][0]
            await self._engine.write([Do(_UNCLAIMED, (task_id, fence))])
            return None
        return claimed[0] if claimed else None

    async def renew(self, tasks: Sequence[TaskRecord]) -> Sequence[TaskRecord]:
        if not tasks:
            return ()
        renewed = [
            Do(
                f"UPDATE tasks SET until = {self._lease_sql.until} WHERE task_id = ? AND fence = ? AND holder <> '' "
                "RETURNING 1",
                (key(task.task_id), task.fence),
                answers=True,
            )
            for task in tasks
        ]
        kept = await self._engine.write(renewed)
        return [task for task, rows in zip(tasks, kept, strict=True) if rows]

    async def settle(
        self, task: TaskRecord, status: TaskStatus, *, due_at: float, attempts: int, error: str | None = None
    ) -> TaskRecord | None:
        ended_at = None if status == "pending" else self._records.now()
        why = as_bytes(error)
        values = (status, due_at, attempts, ended_at, why, key(task.task_id), task.fence)
        rows = await self._engine.write([Do(f"{_SETTLE} RETURNING {_TASK}", values, answers=True)])
        # A newer version may have scheduled it again meanwhile.
        with suppress(UnreadableRecordError):
            for settled in await self._read(rows[0]):
                return settled
        return None

    async def cancel(self, task_id: str) -> bool:
        rows = await self._engine.write(
            [
                Do(
                    "UPDATE tasks SET status = 'cancelled', ended_at = ?, holder = '', fence = fence + 1, "
                    "again_at = NULL WHERE task_id = ? AND status = 'pending' RETURNING 1",
                    (self._records.now(), key(task_id)),
                    answers=True,
                )
            ]
        )
        return bool(rows[0])

    async def _read(self, rows: Rows) -> list[TaskRecord]:
        tasks: list[TaskRecord] = []
        for task_id, status, due_at, attempts, holder, fence, error, data in rows:
            place = ("tasks", ("task_id",), (task_id,))
            try:
                task: TaskRecord | None = await self._records.read("tasks", place, data)
                self._records.require_known(place, status, _STATUSES)
            except UnreadableRecordError:
                self._left.add(task_id)
                raise
            if task is not None:
                state: dict[str, Any] = {"due_at": due_at, "attempts": attempts, "holder": holder, "fence": fence}
                why = text(error)
                tasks.append(task.replace(**state, status="running" if holder else status, error=why))
        return tasks


def _fixed_part(task: TaskRecord) -> TaskRecord:
    """Return the part of a task that never changes; the rest is in columns."""
    return TaskRecord(task_id=task.task_id, name=task.name, payload=task.payload, due_at=0.0)
