"""The drawer of nonces that were used."""

from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.tables import key
from frontdesk.stores.sql.writes import Do

_USE = (
    "INSERT INTO nonces (scope, nonce, expires_at) VALUES (?, ?, ?) ON CONFLICT (scope, nonce) "
    "DO UPDATE SET expires_at = excluded.expires_at WHERE nonces.expires_at <= ? RETURNING 1"
)


class SqlNonces:
    """Nonces over all processes of a database: of two that use one at the same time, one succeeds."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def use(self, scope: str, nonce: str, *, now: float, expires_at: float) -> bool:
        values = (key(scope), key(nonce), expires_at, now)
        return bool((await self._engine.write([Do(_USE, values, answers=True)]))[0])
