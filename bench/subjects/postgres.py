"""Our host on Postgres: a database of its own, Invocations channel, an agent that costs nothing."""

from __future__ import annotations

from typing import Any

from bench.setting import Setting
from bench.subjects.base import Store
from bench.subjects.frontdesk import Frontdesk
from bench.subjects.sqlite import DURABLE


class Postgres(Frontdesk):
    name = "postgres"
    store: Store | None = "postgres"
    measures = DURABLE
    import_app = f"{Frontdesk.import_app}; from frontdesk.stores.sql.postgres.engine import PostgresStateStore"

    def keep(self, setting: Setting) -> dict[str, Any]:
        from frontdesk.stores.sql.postgres.engine import PostgresStateStore

        return {"store": PostgresStateStore(setting.state)}


subject = Postgres()
