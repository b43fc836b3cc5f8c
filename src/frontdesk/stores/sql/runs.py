"""The drawers of runs and checkpoints."""

from collections.abc import Sequence

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
