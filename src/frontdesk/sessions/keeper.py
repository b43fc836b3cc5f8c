"""Keeps the leases of running turns; a turn that may have lost its session is cancelled before another can begin."""

import asyncio
from collections.abc import Callable, Sequence

from frontdesk.abc.store import HostStateStore
from frontdesk.kit.aio.stopping import stopped
from frontdesk.kit.aio.tasks import spawn_clean
from frontdesk.loggers import runs as log
from frontdesk.sessions.active import ActiveRuns
from frontdesk.sessions.keeping import keep
from frontdesk.sessions.turn import Turn
from frontdesk.sessions.turns import Turns


class LeaseKeeper:
    """Renews what is held, again and again; does nothing where no other process can take a session."""

    def __init__(
        self,
        store: HostStateStore,
        turns: Turns,
        active: ActiveRuns,
        interrupt: Callable[[str, str], bool] = lambda owner, run_id: False,
    ) -> None:
        """`interrupt` stops a run that another process can go on with, if it is one."""
        self._interrupt = interrupt
        self._store = store
        self._turns = turns
        self._active = active
        self._task: asyncio.Task[None] | None = None
        self._cancelling: set[asyncio.Task[bool]] = set()

    async def start(self) -> None:
        """Begins to renew."""
        if self._store.lease_seconds is not None:
            work = keep(self._store.lease_seconds, self._held, self._renew, self._give_up)
            self._task = spawn_clean(work)

    async def stop(self) -> None:
        """Ends; what is still held ends by itself."""
        if self._task is not None:
            await stopped(self._task)
            await asyncio.gather(*self._cancelling, return_exceptions=True)

    def _held(self) -> list[Turn]:
        return [turn for turn in self._turns.leased if turn.lease is not None]

    async def _renew(self, turns: Sequence[Turn]) -> list[Turn]:
        leases = {turn.lease: turn for turn in turns if turn.lease is not None}
        return [leases[lost] for lost in await self._store.sessions.renew(list(leases))]

    def _give_up(self, turn: Turn) -> None:
        run = self._active.get(turn.admitted.owner, turn.admitted.run_id)
        # One that is cancelled already is so in every round until it ends.
        if run is None or run.ended is not None or run.interrupted:
            return
        if turn.event is not None:
            # The event goes back to the inbox, and whoever has the session next answers it.
            log.warning("run %s could not keep its session, and its event is given back", turn.admitted.run_id)
            self._active.interrupt(run)
            return
        if self._interrupt(turn.admitted.owner, turn.admitted.run_id):
            log.warning("run %s could not keep its session and stops here", turn.admitted.run_id)
            return
        log.warning("run %s could not keep its session and is cancelled", turn.admitted.run_id)
        task = spawn_clean(self._active.cancel(run))
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)
