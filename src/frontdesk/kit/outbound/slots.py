"""Slots for work that callers ask for: so many in all, and a share of them for each caller."""

import asyncio
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager
from typing import Any

from frontdesk.errors import TooManyRequestsError

MOST_WAITING = 32
"""The number of pieces of work of one caller that may wait for a slot."""


class _Share:
    """The slots of one caller, and how many pieces of work there are for them."""

    __slots__ = ("slots", "users", "waiting")

    def __init__(self, most: int) -> None:
        self.slots = asyncio.Semaphore(most)
        self.users = 0
        self.waiting = 0


class Slot:
    """A slot that is held."""

    __slots__ = ("_lasting",)

    def __init__(self) -> None:
        self._lasting: set[asyncio.Task[Any]] = set()

    def lasts(self, task: "asyncio.Task[Any]") -> None:
        """Hold the caller's share until a task has ended too, even if the work is cancelled before."""
        self._lasting.add(task)

    def left(self) -> "list[asyncio.Task[Any]]":
        """Return the tasks that have not ended."""
        return [task for task in self._lasting if not task.done()]


class Slots:
    """Gives out slots; a caller who has used up their share waits for it, and delays no other."""

    def __init__(self, most: int, *, most_each: int) -> None:
        self._all = asyncio.Semaphore(most)
        self._most_each = most_each
        self._shares: dict[Hashable, _Share] = {}

    @asynccontextmanager
    async def held(self, caller: Hashable) -> AsyncGenerator[Slot]:
        """Wait for a slot and hold it; refuse at once where too much of the caller's waits already."""
        share = self._shares.get(caller)
        if share is None:
            share = self._shares[caller] = _Share(self._most_each)
        if share.waiting >= MOST_WAITING:
            raise TooManyRequestsError("Too much of what you asked for waits already.", retry_after=1.0)
        share.users += 1
        slot = Slot()
        try:
            await self._take(share)
        except BaseException:
            self._leave(caller, share)
            raise
        try:
            yield slot
        finally:
            self._all.release()
            self._end(caller, share, slot)

    async def _take(self, share: _Share) -> None:
        share.waiting += 1
        try:
            # The caller's own first: so one caller never has more than their share waiting ahead of the others.
            await share.slots.acquire()
            try:
                await self._all.acquire()
            except BaseException:
                share.slots.release()
                raise
        finally:
            share.waiting -= 1

    def _end(self, caller: Hashable, share: _Share, slot: Slot) -> None:
        left = slot.left()
        if left:
            left[0].add_done_callback(lambda _: self._end(caller, share, slot))
            return
        share.slots.release()
        self._leave(caller, share)

    def _leave(self, caller: Hashable, share: _Share) -> None:
        share.users -= 1
        if not share.users:
            del self._shares[caller]
