"""Limits the memory of loaded histories, per owner and in total.

A history loaded for a request counts for the limits of the caller's channel, and is rejected above them. A history
loaded for an event or a background run waits for free memory instead, because neither may be lost.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

from frontdesk.concurrency.current import current_memory, current_turn
from frontdesk.errors import HistoryTooLargeError
from frontdesk.interfaces.store_sessions import Charge
from frontdesk.loggers import runs as log

MAX_HISTORY_BYTES = 512 * 1024 * 1024
"""The default limit for the memory that one history takes."""
MAX_BYTES = 256 * 1024 * 1024
"""The memory that the histories of events and background runs take together."""
MAX_BYTES_PER_OWNER = 64 * 1024 * 1024
"""The same for one owner. A history that is alone is always read."""

Release = Callable[[], None]


class _Waiter:
    __slots__ = ("admitted", "owner", "size")

    def __init__(self, owner: str, size: int) -> None:
        self.owner = owner
        self.size = size
        self.admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class HistoryMemory:
    """Accounts for the memory of histories during their turns."""

    def __init__(
        self,
        max_history_bytes: int = MAX_HISTORY_BYTES,
        *,
        max_bytes: int = MAX_BYTES,
        max_bytes_per_owner: int = MAX_BYTES_PER_OWNER,
    ) -> None:
        self._max_history = max_history_bytes
        self._max = max_bytes
        self._max_per_owner = max_bytes_per_owner
        self._held: dict[str, int] = {}
        self._waiting: deque[_Waiter] = deque()
        self.held = 0
        """The bytes that are counted at the moment."""

    async def take(self, owner: str, size: int) -> Release:
        """Charge the history of a turn, and return its release. Raise `HistoryTooLargeError` above the maximum."""
        if size > self._max_history:
            log.warning("history rejected, it is too large: bytes=%d max_history_bytes=%d", size, self._max_history)
            raise HistoryTooLargeError(size, self._max_history)
        request = current_memory.get()
        if request is not None:
            return request.charge(size)
        waiter = _Waiter(owner, size)
        if current_turn.get() is not None:
            # The turn that asks may hold the room for which this one would wait.
            self._admit(waiter)
            return partial(self._give_back, waiter)
        self._waiting.append(waiter)
        self._admit_waiting()
        try:
            await waiter.admitted
        except asyncio.CancelledError:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
                self._admit_waiting()
            else:
                self._give_back(waiter)
            raise
        return partial(self._give_back, waiter)

    @asynccontextmanager
    async def charge_reads(self, owner: str) -> AsyncGenerator[Charge]:
        """Charge the histories that are read in the block, until it ends."""
        releases: list[Release] = []

        async def charge(size: int) -> None:
            releases.append(await self.take(owner, size))

        try:
            yield charge
        finally:
            for release in releases:
                release()

    def _admit_waiting(self) -> None:
        """Admit waiters within the limit, in order. An owner at their own limit delays no other."""
        full: set[str] = set()
        for waiter in list(self._waiting):
            held = self._held.get(waiter.owner, 0)
            if waiter.owner in full or (held and held + waiter.size > self._max_per_owner):
                full.add(waiter.owner)
            elif self.held and self.held + waiter.size > self._max:
                # Who comes later does not get the room for which this one waits.
                return
            else:
                self._waiting.remove(waiter)
                self._admit(waiter)

    def _admit(self, waiter: _Waiter) -> None:
        self._held[waiter.owner] = self._held.get(waiter.owner, 0) + waiter.size
        self.held += waiter.size
        if not waiter.admitted.done():
            # Otherwise its task was cancelled, and gives it back at once.
            waiter.admitted.set_result(None)

    def _give_back(self, waiter: _Waiter) -> None:
        self.held -= waiter.size
        left = self._held[waiter.owner] - waiter.size
        if left:
            self._held[waiter.owner] = left
        else:
            del self._held[waiter.owner]
        self._admit_waiting()
