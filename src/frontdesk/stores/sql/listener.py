"""Receives the notifications of other processes on a Postgres database."""

import asyncio
from typing import Any, cast

import psycopg
from psycopg import AsyncConnection

from frontdesk.abc.store import ChangeKind, OnChange
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.loggers import store as log
from frontdesk.stores.sql.background import CHANNEL
from frontdesk.stores.sql.connecting import Address, error_line

_PAUSE = 1.0


class Listener:
    """Listens on a connection of its own, and reconnects when it is lost."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._task: asyncio.Task[None] | None = None
        self.subscribers: list[OnChange] = []

    def start(self) -> None:
        """Start to listen."""
        self._task = spawn_clean(self._run())

    async def stop(self) -> None:
        """Stop listening."""
        task, self._task = self._task, None
        await stopped(task)

    async def _run(self) -> None:
        while True:
            try:
                await self._listen()
            except psycopg.Error as error:
                log.warning("can't receive notifications of other processes at the moment: %s", error_line(error))
            await asyncio.sleep(_PAUSE)

    async def _listen(self) -> None:
        connection: AsyncConnection[Any]
        address = self._address
        async with await AsyncConnection.connect(address.conninfo, **address.connect_settings) as connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            # Notifications may have been missed.
            for kind in ("work", "run", "cancel"):
                self._notify(kind, "")
            async for notice in connection.notifies():
                kind, _, run_id = notice.payload.partition(" ")
                self._notify(kind, run_id)

    def _notify(self, kind: str, run_id: str) -> None:
        for on_change in self.subscribers:
            on_change(cast(ChangeKind, kind), run_id)
