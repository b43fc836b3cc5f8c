"""Runs work in one process across all replicas, and cancels it when the leadership may have been lost."""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from frontdesk.concurrency.tasks import current_task, spawn_clean
from frontdesk.errors import LeadershipLostError, StoreError, StoreUnavailableError
from frontdesk.ids import RandomIds
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import host as log
from frontdesk.models.channel_storage import Leadership
from frontdesk.sessions.leases import LeaseRenewal

_CHECK_INTERVAL_SECONDS = 1.0
"""The seconds between two looks whether another process has released a leadership."""
_LOST = "leadership %s of channel %s is lost: it could not be renewed in time, or another process has taken it"


class Leaders:
    """The leaderships of one process, and its tasks that wait for one."""

    def __init__(self, store: HostStateStore) -> None:
        self._store = store
        self._waiting: set[asyncio.Event] = set()
        self._releasing: set[asyncio.Task[None]] = set()

    def lead(self, channel: str, name: str) -> "LeadershipHold":
        """Return a context manager that waits for a leadership and holds it."""
        return LeadershipHold(self, self._store, channel, name)

    async def claim(self, channel: str, name: str, holder: str) -> Leadership:
        """Wait until the holder has the leadership."""
        while True:
            # Before the claim, so that a release which comes right after it is not missed.
            freed = asyncio.Event()
            self._waiting.add(freed)
            try:
                leadership = await self._try(channel, name, holder)
                if leadership is not None:
                    return leadership
                await self._wait(freed)
            except BaseException:
                # It may have been claimed, and nobody was told.
                self.release_soon(channel, name, holder)
                raise
            finally:
                self._waiting.discard(freed)

    async def _try(self, channel: str, name: str, holder: str) -> Leadership | None:
        loop, seconds = asyncio.get_running_loop(), self._store.lease_seconds
        asked_at = loop.time()
        try:
            leadership = await self._store.leaderships.claim(channel, name, holder)
        except StoreUnavailableError:
            return None
        # An answer that was on its way for long is about a lease that may be over.
        is_old = seconds is not None and loop.time() - asked_at > seconds / 4
        return None if is_old else leadership

    async def _wait(self, freed: asyncio.Event) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(None if self._store.lease_seconds is None else _CHECK_INTERVAL_SECONDS):
                await freed.wait()

    async def release(self, channel: str, name: str, holder: str) -> None:
        """Release a leadership. If that fails, it becomes free when its lease ends."""
        with suppress(StoreUnavailableError):
            await self._store.leaderships.release(channel, name, holder)
        for freed in self._waiting:
            freed.set()

    def release_soon(self, channel: str, name: str, holder: str) -> None:
        """Release a leadership without waiting for it."""
        task = spawn_clean(self.release(channel, name, holder))
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)

    async def stop(self) -> None:
        """Wait for pending releases."""
        await asyncio.gather(*self._releasing, return_exceptions=True)


class LeadershipHold:
    """An async context manager whose body runs as the leader.

    The body is cancelled when the leadership is lost, which raises `LeadershipLostError` from the block. Other
    cancellations are propagated unchanged.
    """

    def __init__(self, leaders: Leaders, store: HostStateStore, channel: str, name: str) -> None:
        self._leaders = leaders
        self._store = store
        self._channel = channel
        self._name = name
        self._holder = RandomIds().new("lead")
        self._task: asyncio.Task[Any] | None = None
        self._cancels_before = 0
        self._held: list[Leadership] = []
        self._is_lost = False

    async def __aenter__(self) -> Leadership:
        if self._task is not None:
            raise RuntimeError("this leadership was entered before. Request a new one from the context")
        self._task = current_task()
        leadership = await self._leaders.claim(self._channel, self._name, self._holder)
        self._cancels_before = self._task.cancelling()
        self._held = [leadership]
        self._renewal = LeaseRenewal(self._store.lease_seconds, lambda: self._held, self._renew, self._lose)
        self._renewal.start()
        return leadership

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # From here on there is nothing left to cancel.
        self._held, was_lost, task = [], self._is_lost, self._task
        try:
            await self._renewal.stop()
        finally:
            self._leaders.release_soon(self._channel, self._name, self._holder)
        if not was_lost or task is None:
            return
        # Whoever has cancelled the task besides wants it to end as cancelled.
        is_ours = task.uncancel() <= self._cancels_before
        if kind is None or (issubclass(kind, asyncio.CancelledError) and is_ours):
            raise LeadershipLostError(self._channel, self._name) from error

    async def _renew(self, held: Sequence[Leadership]) -> Collection[Leadership]:
        try:
            return await self._store.leaderships.renew(held)
        except StoreError:
            # What the database refuses it will refuse again, and nobody would renew any more.
            return held

    def _lose(self, leadership: Leadership) -> None:
        if self._task is None or not self._held or self._is_lost:
            return
        self._is_lost = True
        log.warning(_LOST, self._name, self._channel)
        self._task.cancel()
