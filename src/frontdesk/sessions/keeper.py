"""Keeps the leases of running turns; a turn that may have lost its session is cancelled before another can begin."""

import asyncio
from collections.abc import Callable

from frontdesk.abc.store import HostStateStore
from frontdesk.data.session import Lease
from frontdesk.errors import StoreUnavailableError
from frontdesk.loggers import runs as log
from frontdesk.sessions.active import ActiveRuns
from frontdesk.sessions.turns import Turn, Turns

_A_LEASE = 4
"""How often a lease is renewed in the time for which it is good."""
_LONG_AGO = float("-inf")


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
            self._task = asyncio.get_running_loop().create_task(self._go_on(self._store.lease_seconds))

    async def stop(self) -> None:
        """Ends; what is still held ends by itself."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task, *self._cancelling])

    async def _go_on(self, seconds: float) -> None:
        pause, now = seconds / _A_LEASE, asyncio.get_running_loop().time
        known: dict[Lease, float] = {}
        while True:
            await asyncio.sleep(pause)
            began, turns = now(), self._turns.leased
            # One that is not known yet was claimed since the last look.
            good = {turn.lease: known.get(turn.lease, began - pause) for turn in turns if turn.lease is not None}
            known = await self._renewed(good, began, pause)
            for turn in turns:
                # At the next look it could be too late.
                if turn.lease in known and now() + pause > known[turn.lease] + seconds - pause / 2:
                    self._give_up(turn)

    async def _renewed(self, known: dict[Lease, float], now: float, wait: float) -> dict[Lease, float]:
        """When each lease was good for the last time."""
        try:
            async with asyncio.timeout(wait):
                lost = await self._store.sessions.renew(list(known))
        except (StoreUnavailableError, TimeoutError):
            return known
        return dict.fromkeys(known, now) | dict.fromkeys(lost, _LONG_AGO)

    def _give_up(self, turn: Turn) -> None:
        run = self._active.get(turn.admitted.owner, turn.admitted.run_id)
        if run is None or run.cancel_requested or run.interrupted:
            return
        if self._interrupt(turn.admitted.owner, turn.admitted.run_id):
            log.warning("run %s could not keep its session and stops here", turn.admitted.run_id)
            return
        log.warning("run %s could not keep its session and is cancelled", turn.admitted.run_id)
        task = asyncio.get_running_loop().create_task(self._active.cancel(run))
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)
