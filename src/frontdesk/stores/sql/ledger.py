"""The drawer of operators' lists: each query reads a range of one index."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from frontdesk.data.codec import VERSION
from frontdesk.data.ledger import ASCENDING, COMMON, LedgerKind, LedgerRow
from frontdesk.kit.aio.large import run_sized
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.file_references import WITH_FILES
from frontdesk.stores.sql.tables import key, text

_LARGEST = 2**63 - 1
_ENDED = "COALESCE(ended_at, 9e99)"
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
    """Rows of every owner."""

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
    """Return the query of rows, and its values."""
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
        values += [*given, *(after or ()), limit]
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
        return [_numbered(by["id"])]
    if "status" in by and kind == "runs":
        return _runs_with(by["status"])
    if "status" in by and kind == "inbox":
        done = "error IS NOT NULL" if by["status"] in ("failed", "cancelled") else "done_at IS NULL"
        return [(done if by["status"] != COMMON[kind] else "", ())]
    conditions = _LISTS[kind].filters
    return [(" AND ".join(conditions[name] for name in by), tuple(map(key, by.values())))]


def _numbered(text: str) -> Range:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
    return "number = ?", (min(number, _LARGEST),)


def _runs_with(status: str) -> Sequence[Range]:
    if status == COMMON["runs"]:
        return [("", ())]
    if status in ("queued", "running"):
        return [(f"{_ENDED} >= 9e99", ())]
    earlier = "outcome IS NULL AND ended_at IS NOT NULL"
    # A literal, so that the planner can use the partial index.
    return [(f"outcome = ? AND outcome <> '{COMMON['runs']}'", (status,)), (earlier, ())]


def _row(kind: LedgerKind, row: Sequence[Any]) -> LedgerRow:
    asked = _LISTS[kind]
    width = len(asked.order)
    names = [column.rpartition(".")[2] for column in asked.columns]
    columns = {name: _plain(name, value) for name, value in zip(names, row[width:-1], strict=True)}
    record: Any = None if row[-1] is None else tree_of(row[-1])
    tree = cast("dict[str, Any]", record) if isinstance(record, dict) else None
    return LedgerRow(place=tuple(row[:width]), columns=columns, record=tree)


def _plain(name: str, value: Any) -> Any:
    if not isinstance(value, (bytes, memoryview)):
        return value
    return tree_of(value) if name == "history" else text(value)


def tree_of(data: Any) -> Any:
    """Return what a record holds, as a JSON tree; `None` if this version can't read it."""
    try:
        record = msgspec.json.decode(bytes(data), type=_Sealed)
    except (msgspec.DecodeError, RecursionError):
        return None
    return record.data if record.v in (VERSION, WITH_FILES) else None
