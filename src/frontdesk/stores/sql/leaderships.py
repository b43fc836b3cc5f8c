"""The drawer of leaderships: a row each, whose fence only grows."""

from collections.abc import Sequence

from frontdesk.data.leadership import Leadership
from frontdesk.stores.sql.background import LeaseSql
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.shared_leases import NOW
from frontdesk.stores.sql.tables import key
from frontdesk.stores.sql.writes import Do

_MINE = "WHERE channel = ? AND name = ? AND holder = ?"


class SqlLeaderships:
    """Leaderships over all processes of a database, or within the one process that owns it."""

    def __init__(self, engine: Engine, lease_sql: LeaseSql) -> None:
        self._engine = engine
        self._until = lease_sql.until
        self._is_shared = lease_sql.notifies
        self._local: dict[tuple[str, str], str] = {}
        """The holders in this process, where it alone owns the database: a row of another process has no holder."""

    async def claim(self, channel: str, name: str, holder: str) -> Leadership | None:
        if not self._is_shared and self._local.setdefault((channel, name), holder) != holder:
            return None
        is_free = f" WHERE leaderships.until < {NOW} OR leaderships.holder = excluded.holder" if self._is_shared else ""
        claim = (
            f"INSERT INTO leaderships (channel, name, holder, fence, until) VALUES (?, ?, ?, 1, {self._until}) "
            "ON CONFLICT (channel, name) DO UPDATE SET fence = leaderships.fence + 1, holder = excluded.holder, "
            f"until = excluded.until{is_free} RETURNING fence"
        )
        try:
            rows = (await self._engine.write([Do(claim, (key(channel), key(name), holder), answers=True)]))[0]
        except BaseException:
            self._forget(channel, name, holder)
            raise
        if not rows:
            return None
        return Leadership(channel=channel, name=name, holder=holder, fence=int(rows[0][0]))

    async def renew(self, held: Sequence[Leadership]) -> Sequence[Leadership]:
        if not self._is_shared:
            return [one for one in held if self._local.get((one.channel, one.name)) != one.holder]
        if not held:
            return ()
        renew = f"UPDATE leaderships SET until = {self._until} {_MINE} AND fence = ? RETURNING 1"
        renewals = [Do(renew, (key(one.channel), key(one.name), one.holder, one.fence), answers=True) for one in held]
        answers = await self._engine.write(renewals)
        return [one for one, rows in zip(held, answers, strict=True) if not rows]

    async def release(self, channel: str, name: str, holder: str) -> None:
        if not self._is_shared:
            self._forget(channel, name, holder)
            return
        free = f"UPDATE leaderships SET holder = '', until = 0 {_MINE}"
        await self._engine.write([Do(free, (key(channel), key(name), holder))])

    def _forget(self, channel: str, name: str, holder: str) -> None:
        if self._local.get((channel, name)) == holder:
            del self._local[channel, name]
