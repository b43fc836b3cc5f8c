"""Our host on SQLite: a file in a directory of its own, Invocations channel, an agent that costs nothing."""

from __future__ import annotations

from typing import Any

from bench.setting import Setting
from bench.subjects.base import Store
from bench.subjects.frontdesk import Frontdesk

DURABLE = ("json", "first", "long", "agent", "filled", "memory")


class Sqlite(Frontdesk):
    name = "sqlite"
    store: Store | None = "sqlite"
    measures = DURABLE
    import_app = f"{Frontdesk.import_app}; from frontdesk.stores.sql.sqlite.engine import SqliteStateStore"

    def keep(self, setting: Setting) -> dict[str, Any]:
        return {"state_dir": setting.state}


subject = Sqlite()
