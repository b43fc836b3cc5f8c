"""Hears what other processes have written to a Postgres database."""

import asyncio
from typing import Any, cast

import psycopg
from psycopg import AsyncConnection

from frontdesk.abc.store import ChangeKind, OnChange
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.loggers import store as log
from frontdesk.stores.sql.background import CHANNEL
from frontdesk.stores.sql.connecting import Address, told

_PAUSE = 1.0


class Listener:
    """Listens on a connection of its own, and connects again when that is lost."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._task: asyncio.Task[None] | None = None
        self.subscribers: list[OnChange] = []

    def start(self) -> None:
        """Begins to listen."""
        self._task = spawn_clean(self._go_on())

    async def stop(self) -> None:
        """Ends."""
        task, self._task = self._task, None
        await stopped(task)

    async def _go_on(self) -> None:
        while True:
            try:
                await self._listen()
            except psycopg.Error as error:
                log.warning("other processes can't be heard at the moment: %s", told(error))
            await asyncio.sleep(_PAUSE)

    async def _listen(self) -> None:
        connection: AsyncConnection[Any]
        async with await AsyncConnection.connect(self._address.conninfo, **self._address.patient) as connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            # Nobody knows what was missed.
            for kind in ("work", "run", "cancel"):
                self._tell(kind, "")
            async for notice in connection.notifies():
                kind, _, run_id = notice.payload.partition(" ")
                self._tell(kind, run_id)

    def _tell(self, kind: str, run_id: str) -> None:
        for one in self.subscribers:
            one(cast(ChangeKind, kind), run_id)
