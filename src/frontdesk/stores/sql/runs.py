"""The drawers of runs, approvals and checkpoints."""

from collections.abc import Sequence
from typing import Any, get_args

from frontdesk.data.approval import ApprovalStatus, PendingApproval
from frontdesk.data.run import RunEvent, RunRecord
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.records import Records
from frontdesk.stores.sql.tables import key


class SqlRuns:
    """Runs and the events of background streams."""

    def __init__(self, engine: Engine, records: Records) -> None:
        self._engine = engine
        self._records = records

    async def get(self, owner: str, run_id: str) -> RunRecord | None:
        place = (key(run_id), key(owner))
        rows = await self._engine.read("SELECT data FROM runs WHERE run_id = ? AND owner = ?", place)
        return None if not rows else await self._records.read("runs", ("runs", ("run_id", "owner"), place), rows[0][0])

    async def events(self, owner: str, run_id: str, *, after: int = 0, limit: int = 1000) -> Sequence[RunEvent]:
        rows = await self._engine.read(
            "SELECT number, data FROM events WHERE run_id = ? AND owner = ? AND number > ? ORDER BY number LIMIT ?",
            (key(run_id), key(owner), after, limit),
        )
        return [RunEvent(owner=owner, run_id=run_id, number=number, data=bytes(data)) for number, data in rows]


_STATUSES: tuple[str, ...] = get_args(ApprovalStatus)
_COLUMNS = "number, owner, approval_id, status, decided_at, reason, attempt, begun, data"
_QUESTION = f"SELECT {_COLUMNS} FROM approvals WHERE owner = ?"
# Each half has an index of its own.
_WAITING = f"{_QUESTION} AND status = 'pending' UNION ALL {_QUESTION} AND begun = 0 ORDER BY number"


class SqlApprovals:
    """Approvals that wait for a human."""

    def __init__(self, engine: Engine, records: Records) -> None:
        self._engine = engine
        self._records = records

    async def get(self, owner: str, approval_id: str) -> PendingApproval | None:
        approvals = await self._read(f"{_QUESTION} AND approval_id = ?", (key(owner), key(approval_id)))
        return approvals[0] if approvals else None

    async def of_session(self, owner: str, session_id: str) -> Sequence[PendingApproval]:
        return await self._read(f"{_QUESTION} AND session_id = ? ORDER BY number", (key(owner), key(session_id)))

    async def pending(self, owner: str) -> Sequence[PendingApproval]:
        return await self._read(_WAITING, (key(owner), key(owner)))

    async def _read(self, sql: str, values: Sequence[Any]) -> list[PendingApproval]:
        approvals: list[PendingApproval] = []
        for _, owner, approval_id, *decision, data in await self._engine.read(sql, values):
            status, decided_at, reason, attempt, begun = decision
            place = ("approvals", ("owner", "approval_id"), (owner, approval_id))
            approval: PendingApproval | None = await self._records.read("approvals", place, data)
            if approval is not None:
                self._records.require_known(place, status, _STATUSES)
                decided = {"status": status, "decided_at": decided_at, "reason": text(reason)}
                approvals.append(approval.replace(**decided, attempt=attempt, begun=bool(begun)))
        return approvals


class SqlCheckpoints:
    """Checkpoints of workflows that have paused."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def get(self, session_id: str, checkpoint_id: str) -> bytes | None:
        rows = await self._engine.read(
            "SELECT data FROM checkpoints WHERE session_id = ? AND checkpoint_id = ?",
            (key(session_id), key(checkpoint_id)),
        )
        return bytes(rows[0][0]) if rows else None


def text(value: Any) -> str | None:
    """Return a text that was stored as bytes."""
    return None if value is None else bytes(value).decode("utf-8", "surrogatepass")
