"""Runs the backfills of a store, and watches whether this process still knows its schema."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from frontdesk.errors import StoreError, StoreUnavailableError
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.loggers import store as log
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.migrations import FLOOR_AND_FOUND, VERSION, NewerStoreError, backfills, check_floor
from frontdesk.stores.sql.steps import BATCH, Backfill
from frontdesk.stores.sql.writes import Do

EVERY = 10.0
_OPEN = "SELECT name, position FROM backfills WHERE done = 0 ORDER BY name"
_MOVED = "UPDATE backfills SET position = ?, done = ? WHERE name = ? AND position = ? AND done = 0"


class Upkeep:
    """Runs backfills and schema checks beside the requests, while a store is open."""

    def __init__(self, engine: Engine, refuse: Callable[[], None] | None) -> None:
        """Call `refuse` if the schema has become too new; `None` where no other process can change it."""
        self._engine = engine
        self._refuse = refuse
        self._noticed = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task."""
        self._task = spawn_clean(self._run())

    async def stop(self) -> None:
        """Stop the task."""
        await stopped(self._task)

    async def _run(self) -> None:
        open_backfills = backfills()
        while open_backfills or self._refuse is not None:
            with suppress(StoreUnavailableError, StoreError):
                if self._refuse is not None and not await self.check(self._refuse):
                    return
                if open_backfills and await self.fill():
                    open_backfills = {}
            await asyncio.sleep(EVERY)

    async def check(self, refuse: Callable[[], None]) -> bool:
        """Tell whether this version may go on with the store; if not, call `refuse`."""
        ((floor, version),) = await self._engine.read(FLOOR_AND_FOUND)
        try:
            check_floor(floor)
        except NewerStoreError as error:
            log.error("this host stops using its state store: %s", error)
            refuse()
            return False
        if version > max(VERSION, self._noticed):
            self._noticed = version
            log.warning(
                "a newer host has taken the schema of the state store to version %d; this one knows %d and goes on",
                version,
                VERSION,
            )
        return True

    async def fill(self) -> bool:
        """Complete the backfills that this version knows; return whether there is nothing left."""
        for name, position in await self._engine.read(_OPEN):
            backfill = backfills().get(name)
            if backfill is not None:
                await self._fill(backfill, position)
        return True

    async def _fill(self, backfill: Backfill, position: str) -> None:
        done = False
        while not done:
            rows = await self._engine.read(backfill.select, (position, BATCH))
            done, last = not rows, str(rows[-1][0]) if rows else position
            moved = Do(_MOVED, (last, int(done), backfill.name, position), StoreError("another process has done it"))
            # The rows and the position in one transaction, so that another process continues from here.
            await self._engine.write([moved, *(Do(sql, values) for sql, values in backfill.changes(rows))])
            position = last
        log.info("backfill %s is complete at schema version %s", backfill.name, VERSION)
