"""Tasks and operators' lists in SQL."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast, get_args

import msgspec

from frontdesk.concurrency.offload import run_sized
from frontdesk.errors import UnreadableRecordError
from frontdesk.models.operations import ASCENDING, COMMON, LedgerKind, LedgerRow, TaskRecord, TaskStatus
from frontdesk.serialization.codec import VERSION, encode
from frontdesk.stores.sql.background import LeaseSql
from frontdesk.stores.sql.files import WITH_FILES
from frontdesk.stores.sql.records import LeftAlone, Records
from frontdesk.stores.sql.tables import as_bytes, key, text
from frontdesk.stores.sql.writes import Do, Engine, Rows

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
        row = (key(task.task_id), key(task.name), task.due_at, encode(_get_fixed_part(task)))
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


def _get_fixed_part(task: TaskRecord) -> TaskRecord:
    return TaskRecord(task_id=task.task_id, name=task.name, payload=task.payload, due_at=0.0)


_MAX_INTEGER = 2**63 - 1
_ENDED = "COALESCE(ended_at, 9e99)"
_RUN_KINDS = ("background", "request")
"""The kinds of runs, which begin the index of all runs."""
_JOB = "LEFT JOIN background AS job ON job.run_id = runs.run_id AND job.owner = runs.owner"
Range = tuple[str, tuple[Any, ...]]
"""The condition of a range of an index, and its values."""


class _Sealed(msgspec.Struct):
    v: int
    data: Any


class _List(NamedTuple):
    table: str
    order: tuple[str, ...]
    columns: tuple[str, ...]
    filters: Mapping[str, str]
    """The conditions by the names of the filters."""
    data: str = "data"
    join: str = ""


_LISTS: Mapping[LedgerKind, _List] = {
    "sessions": _List(
        "sessions",
        ("updated_at", "session_id"),
        ("session_id", "owner", "updated_at", "parent_id"),
        {"id": "session_id = ?", "person": "owner = ?"},
    ),
    "runs": _List(
        "runs",
        (_ENDED, "runs.run_id", "runs.owner"),
        ("runs.run_id", "runs.owner", "kind", "ended_at", "job.fence", "job.holder", "job.cancelled"),
        {"id": "runs.run_id = ?", "person": "runs.owner = ?"},
        data="runs.data",
        join=_JOB,
    ),
    "deliveries": _List(
        "deliveries",
        ("number", "answer_id", "part", "delivery_id"),
        (
            *("delivery_id", "status", "attempts", "due_at", "ended_at", "error", "receipt", "history", "fence"),
            *("owner", "channel", "run_id"),
        ),
        {
            "id": "delivery_id = ?",
            "run": "run_id = ?",
            "person": "owner = ?",
            "status": "status = ?",
            "channel": "channel = ?",
        },
    ),
    "approvals": _List(
        "approvals",
        ("number",),
        ("approval_id", "owner", "session_id", "status", "decided_at", "reason", "begun", "expires_at", "attempt"),
        {"id": "approval_id = ?", "person": "owner = ?", "status": "status = ?"},
    ),
    "people": _List(
        "identities",
        ("channel", "native_id"),
        ("channel", "native_id", "isolation_key", "version", "seen_at"),
        {"channel": "channel = ?", "id": "native_id = ?", "person": "isolation_key = ?"},
    ),
    "links": _List(
        "links",
        ("channel", "native_id"),
        ("channel", "native_id", "isolation_key", "linked_at"),
        {"channel": "channel = ?", "id": "native_id = ?", "person": "isolation_key = ?"},
    ),
    "inbox": _List(
        "inbox",
        ("number",),
        (
            *("number", "channel", "event_id", "conversation_id", "done_at", "error", "kind", "cancelled"),
            *("fence", "attempts", "holder"),
        ),
        {"channel": "channel = ?"},
    ),
    "audit": _List(
        "audit",
        ("number",),
        ("number", "at", "owner", "subject", "action", "actor", "reason"),
        {"subject": "subject = ?", "person": "owner = ?", "by": "actor = ?"},
        data="NULL",
    ),
}


class SqlLedger:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def rows(
        self,
        kind: LedgerKind,
        *,
        by: Mapping[str, str] | None = None,
        after: Sequence[Any] | None = None,
        limit: int = 200,
    ) -> Sequence[LedgerRow]:
        sql, values = query(kind, by or {}, after, limit)
        rows = await self._engine.read(sql, values)
        size = sum(len(row[-1]) for row in rows if row[-1] is not None)
        return await run_sized(size, lambda: [_row(kind, row) for row in rows])


def query(
    kind: LedgerKind, by: Mapping[str, str], after: Sequence[Any] | None, limit: int
) -> tuple[str, tuple[Any, ...]]:
    asked = _LISTS[kind]
    way, sign = ("ASC", ">") if kind in ASCENDING else ("DESC", "<")
    columns = ", ".join((*asked.order, *asked.columns, asked.data))
    order = ", ".join(f"{column} {way}" for column in asked.order)
    selects: list[str] = []
    values: list[Any] = []
    for condition, given in _ranges(kind, by):
        where = [condition] if condition else []
        if after is not None:
            where.append(f"({', '.join(asked.order)}) {sign} ({', '.join('?' for _ in asked.order)})")
            # SQLite finds no range of an index by a row value that begins with an expression.
            where.append(f"{asked.order[0]} {sign}= ?")
        values += [*given, *(() if after is None else (*after, after[0])), limit]
        clause = f" WHERE {' AND '.join(where)}" if where else ""
        selects.append(f"SELECT {columns} FROM {asked.table} {asked.join}{clause} ORDER BY {order} LIMIT ?")
    if len(selects) == 1:
        return selects[0], tuple(values)
    # A limit for each, so that none is read to its end.
    together = " UNION ALL ".join(f"SELECT * FROM ({select}) AS part" for select in selects)
    places = ", ".join(f"{number} {way}" for number in range(1, len(asked.order) + 1))
    return f"{together} ORDER BY {places} LIMIT ?", (*values, limit)


def _ranges(kind: LedgerKind, by: Mapping[str, str]) -> Sequence[Range]:
    if kind in ("inbox", "audit") and "id" in by:
        return [_parse_number(by["id"])]
    if kind == "runs" and "id" not in by and "person" not in by:
        return _runs_with(by.get("status", COMMON[kind]))
    if "status" in by and kind == "inbox":
        done = "error IS NOT NULL" if by["status"] in ("failed", "cancelled") else "done_at IS NULL"
        return [(done if by["status"] != COMMON[kind] else "", ())]
    conditions = _LISTS[kind].filters
    return [(" AND ".join(conditions[name] for name in by), tuple(map(key, by.values())))]


def _parse_number(text: str) -> Range:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
    return "number = ?", (min(number, _MAX_INTEGER),)


def _runs_with(status: str) -> Sequence[Range]:
    if status == COMMON["runs"]:
        return [("kind = ?", (kind,)) for kind in _RUN_KINDS]
    if status in ("queued", "running"):
        return [(f"kind = ? AND {_ENDED} >= 9e99", (kind,)) for kind in _RUN_KINDS]
    earlier = "outcome IS NULL AND ended_at IS NOT NULL"
    # A literal, so that the planner can use the partial index.
    return [(f"outcome = ? AND outcome <> '{COMMON['runs']}'", (status,)), (earlier, ())]


def _row(kind: LedgerKind, row: Sequence[Any]) -> LedgerRow:
    asked = _LISTS[kind]
    width = len(asked.order)
    names = [column.rpartition(".")[2] for column in asked.columns]
    columns = {name: _plain(name, value) for name, value in zip(names, row[width:-1], strict=True)}
    record: Any = None if row[-1] is None else parse_tree(row[-1])
    tree = cast("dict[str, Any]", record) if isinstance(record, dict) else None
    return LedgerRow(place=tuple(row[:width]), columns=columns, record=tree)


def _plain(name: str, value: Any) -> Any:
    if not isinstance(value, (bytes, memoryview)):
        return value
    return parse_tree(value) if name == "history" else text(value)


def parse_tree(data: Any) -> Any:
    """Return the content of a record as a JSON tree, or `None` if this version cannot read it."""
    try:
        record = msgspec.json.decode(bytes(data), type=_Sealed)
    except (msgspec.DecodeError, RecursionError):
        return None
    return record.data if record.v in (VERSION, WITH_FILES) else None
