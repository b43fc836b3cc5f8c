"""Renews leases. Cancels a turn that may have lost its session before another turn can begin."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from typing import Generic, TypeVar

from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.errors import StoreUnavailableError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import runs as log
from frontdesk.sessions.active import ActiveRuns
from frontdesk.sessions.turn import Turn
from frontdesk.sessions.turns import Turns

H = TypeVar("H", bound=Hashable)

_RENEWALS_PER_LEASE = 4
"""The number of renewals in the lifetime of a lease."""
_LONG_AGO = float("-inf")


async def renew_leases(
    seconds: float,
    held: Callable[[], Sequence[H]],
    renew: Callable[[Sequence[H]], Awaitable[Collection[H]]],
    give_up: Callable[[H], None],
) -> None:
    """Renew held leases until cancelled. Give up those that were lost, or may soon be held by others.

    `renew` returns the leases known to be lost.
    """
    pause, now = seconds / _RENEWALS_PER_LEASE, asyncio.get_running_loop().time
    # Half a pause is left to end what is given up.
    wait, longest = pause, seconds - pause / 2
    good: dict[H, float] = {}
    while True:
        await asyncio.sleep(wait)
        began, present = now(), held()
        # A lease that is new here was taken since the last round.
        good = {lease: good.get(lease, began - pause) for lease in present}
        oldest = min((last for last in good.values() if last != _LONG_AGO), default=began)
        try:
            async with asyncio.timeout(min(pause, max(oldest + longest - began, 0))):
                lost = await renew(present)
            good = dict.fromkeys(present, began) | dict.fromkeys(lost, _LONG_AGO)
            wait = pause
        except (StoreUnavailableError, TimeoutError):
            # Soon again: perhaps a single connection broke, and another is open.
            wait = pause / _RENEWALS_PER_LEASE
        for lease, last in good.items():
            # It would expire before the next round.
            if now() + wait >= last + longest:
                good[lease] = _LONG_AGO
                give_up(lease)


class LeaseRenewal(Generic[H]):
    """Renews this process's leases from start to stop. Does nothing if no other process could take them."""

    def __init__(
        self,
        seconds: float | None,
        held: Callable[[], Sequence[H]],
        renew: Callable[[Sequence[H]], Awaitable[Collection[H]]],
        give_up: Callable[[H], None],
    ) -> None:
        self._seconds, self._held, self._renew, self._give_up = seconds, held, renew, give_up
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._seconds is not None:
            self._task = spawn_clean(renew_leases(self._seconds, self._held, self._renew, self._give_up))

    async def stop(self) -> None:
        """Stop renewing. Leases that are still held expire."""
        await cancel_and_wait(self._task)


class LeaseKeeper:
    """Renews the leases of open turns. A turn that may have lost its session is stopped."""

    def __init__(
        self,
        store: HostStateStore,
        turns: Turns,
        active: ActiveRuns,
        interrupt: Callable[[str, str], bool] = lambda owner, run_id: False,
    ) -> None:
        """Call `interrupt` to stop a run. It returns False unless another process can continue the run."""
        self._interrupt = interrupt
        self._store = store
        self._turns = turns
        self._active = active
        self._renewal = LeaseRenewal(store.lease_seconds, self._list_held, self._renew, self._give_up)
        self._cancelling: set[asyncio.Task[bool]] = set()

    async def start(self) -> None:
        self._renewal.start()

    async def stop(self) -> None:
        """Stop once every turn that was given up has ended."""
        await self._renewal.stop()
        await asyncio.gather(*self._cancelling, return_exceptions=True)

    def _list_held(self) -> list[Turn]:
        return [turn for turn in self._turns.leased if turn.lease is not None]

    async def _renew(self, turns: Sequence[Turn]) -> list[Turn]:
        leases = {turn.lease: turn for turn in turns if turn.lease is not None}
        return [leases[lost] for lost in await self._store.sessions.renew(list(leases))]

    def _give_up(self, turn: Turn) -> None:
        run = self._active.get(turn.admitted.owner, turn.admitted.run_id)
        # Every round comes here again until the run has ended.
        if run is None or run.ended is not None or run.interrupted:
            return
        if turn.event is not None:
            # The event goes back to the inbox, and the next holder of the session answers it.
            log.warning("session lease lost, releasing the event: run_id=%s", turn.admitted.run_id)
            self._active.interrupt(run)
            return
        if self._interrupt(turn.admitted.owner, turn.admitted.run_id):
            log.warning("session lease lost, stopping the run: run_id=%s", turn.admitted.run_id)
            return
        log.warning("session lease lost, cancelling the run: run_id=%s", turn.admitted.run_id)
        task = spawn_clean(self._active.cancel(run))
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)
