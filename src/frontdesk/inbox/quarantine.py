"""The quarantine of events whose process crashed: retried one at a time across all hosts.

Senders take turns. An event that takes long leaves the quarantine and continues in parallel with the next one.
Otherwise the slow turns of one person would delay all other events of the same crash. Control events have a separate
quarantine, because a cancellation must not wait for the turn that it cancels.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.concurrency.timeouts import until_available
from frontdesk.errors import LostEventError, StoreUnavailableError
from frontdesk.ids import RandomIds
from frontdesk.inbox.claimed import HeldEvent
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.channel_storage import Leadership
from frontdesk.models.delivery import EventKind, InboxItem
from frontdesk.sessions.leases import LeaseRenewal

POLL_SECONDS = 0.5
"""The time between two attempts to take a quarantine that another host uses."""
MAX_FIRST_SECONDS = 5.0
"""The time for which an event has the quarantine for itself after its first loss: most of them have ended nothing."""
MAX_HELD_SECONDS = 40.0
"""The same after more losses. It is not less than the time for which an event may be isolated."""
_NO_CHANNEL = ""


class QuarantinedConversation(NamedTuple):
    """A conversation whose next event of a kind is quarantined."""

    kind: EventKind
    conversation: tuple[str, str]
    """Its channel and its id."""


Sender = tuple[str, str]
"""The channel and the id of an account."""


class QuarantineQueue:
    """The conversations of this process whose next event is quarantined. One is served, the others wait."""

    def __init__(self) -> None:
        self._served: dict[str, QuarantinedConversation] = {}
        # By sender: the one who was served comes after all others.
        self._waiting: dict[str, OrderedDict[Sender, OrderedDict[QuarantinedConversation, None]]] = {}
        self._senders: dict[QuarantinedConversation, Sender] = {}

    def enter(self, kind: EventKind, conversation: tuple[str, str], sender: Sender) -> bool:
        """Serve a conversation, or queue it. Return True if it is served."""
        name, waiting = _name(kind), QuarantinedConversation(kind, conversation)
        self.forget(kind, conversation)
        if name in self._served:
            self._waiting.setdefault(name, OrderedDict()).setdefault(sender, OrderedDict())[waiting] = None
            self._senders[waiting] = sender
            return False
        self._served[name] = waiting
        if sender in self._waiting.get(name, ()):
            self._waiting[name].move_to_end(sender)
        return True

    def waits(self, kind: EventKind, conversation: tuple[str, str]) -> bool:
        """Return True if a conversation must not be processed until another one has been served."""
        return _name(kind) in self._served and QuarantinedConversation(kind, conversation) in self._senders

    def forget(self, kind: EventKind, conversation: tuple[str, str]) -> None:
        name, waiting = _name(kind), QuarantinedConversation(kind, conversation)
        sender = self._senders.pop(waiting, None)
        if sender is None:
            return
        del self._waiting[name][sender][waiting]
        if not self._waiting[name][sender]:
            del self._waiting[name][sender]
        if not self._waiting[name]:
            del self._waiting[name]

    def leave(self, kind: EventKind) -> None:
        del self._served[_name(kind)]

    def next(self, kind: EventKind) -> QuarantinedConversation | None:
        """Return a conversation of the sender with the longest wait, if none is served."""
        name = _name(kind)
        if name in self._served or name not in self._waiting:
            return None
        return next(iter(next(iter(self._waiting[name].values()))))


class QuarantineHold:
    def __init__(self, release: Callable[[], Awaitable[None]]) -> None:
        self._release = release
        self._timer: asyncio.Task[None] | None = None

    def limit(self, item: InboxItem) -> None:
        """Release the quarantine after the event's time limit, done or not."""
        self._timer = spawn_clean(self._end(MAX_FIRST_SECONDS if item.lost <= 1 else MAX_HELD_SECONDS))

    async def _end(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._release()

    async def stop(self) -> None:
        """Stop the timer. A release in progress is finished by the next one."""
        await cancel_and_wait(self._timer)


class Quarantine:
    """Acquires a quarantine in the store, so that only one host at a time is at risk."""

    def __init__(self, store: HostStateStore, stopping: Callable[[], bool]) -> None:
        self._store = store
        self._stopping = stopping
        self.queue = QuarantineQueue()

    @asynccontextmanager
    async def hold(
        self, kind: EventKind, leave: Callable[[], Awaitable[None]]
    ) -> AsyncGenerator[QuarantineHold | None]:
        """Acquire a quarantine for the duration of the block or less. Yields None if the host stops first.

        `leave` is called after the quarantine was released.
        """
        holder, leaderships = RandomIds().new("lead"), self._store.leaderships
        held: list[Leadership] = []
        renewal = LeaseRenewal(self._store.lease_seconds, lambda: held, self._renew, lambda one: None)
        lock, left = asyncio.Lock(), False

        async def release() -> None:
            nonlocal left
            async with lock:
                if left:
                    return
                await renewal.stop()
                with suppress(StoreUnavailableError):
                    await leaderships.release(_NO_CHANNEL, _name(kind), holder)
                left = True
                await leave()

        hold = QuarantineHold(release)
        try:
            while not held and not self._stopping():
                leadership = await leaderships.claim(_NO_CHANNEL, _name(kind), holder)
                if leadership is None:
                    await asyncio.sleep(POLL_SECONDS)
                else:
                    held.append(leadership)
            renewal.start()
            yield hold if held else None
        finally:
            await hold.stop()
            await release()

    async def _renew(self, held: Sequence[Leadership]) -> Collection[Leadership]:
        # One that is lost is not missed: the event has a lease of its own, and what ends a process is known without it.
        return await self._store.leaderships.renew(held)


def _name(kind: EventKind) -> str:
    return "quarantined control events" if kind == "control" else "quarantined turns"


MAX_DRAIN_SECONDS = 10.0
"""The time in which the other events of the process may end. After it, the event is tried beside them."""
MAX_QUIET_SECONDS = 1.0
"""The same after the first loss, when no event waits for the isolated one."""
MAX_ALONE_SECONDS = 30.0
"""The time for which other turns wait for an isolated one. After it, they are taken up beside it."""


class _Isolated:
    def __init__(self, store: HostStateStore, item: InboxItem, closed_until: float) -> None:
        self.closed_until = closed_until
        self.opened, self.quiet = asyncio.Event(), asyncio.Event()
        self.recorded = False
        self._store, self._item = store, item
        self._ended = False
        self._lock = asyncio.Lock()

    async def record(self) -> None:
        async with self._lock:
            if not self._ended:
                # Before the write: its reply may be lost.
                self.recorded = True
                await self._write(True)

    async def end(self) -> None:
        """Remove the record before another event is claimed."""
        self._ended = True
        async with self._lock:
            if self.recorded:
                with suppress(LostEventError):
                    await until_available(lambda: self._write(False))
                self.recorded = False

    async def _write(self, isolated: bool) -> None:
        async with self._store.transaction() as transaction:
            transaction.isolate(self._item, isolated=isolated)


class Isolation:
    """Counts the events in progress in this process, and keeps them separate from an isolated one."""

    def __init__(self, store: HostStateStore) -> None:
        self._store = store
        self._count = 0
        self._isolated: _Isolated | None = None

    async def join(self, kind: EventKind) -> None:
        """Count one more event. A turn first waits for an isolated one, up to `MAX_ALONE_SECONDS`."""
        now = asyncio.get_running_loop().time
        while (isolated := self._isolated) is not None:
            if kind != "control" and isolated.closed_until > now():
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(isolated.closed_until):
                        await isolated.opened.wait()
            elif isolated.recorded:
                await isolated.end()
                self._open(isolated)
            else:
                break
        self._count += 1

    def leave(self) -> None:
        self._count -= 1
        if self._count <= 1 and self._isolated is not None:
            self._isolated.quiet.set()

    @asynccontextmanager
    async def isolate(self, held: HeldEvent) -> AsyncGenerator[None]:
        """Isolate a joined event for the duration of the block, or until others may no longer be kept waiting."""
        now, closes = asyncio.get_running_loop().time, held.item.lost > 1
        drain = MAX_DRAIN_SECONDS if closes else MAX_QUIET_SECONDS
        if self._isolated is not None:
            # The one of the other quarantine is not alone any more.
            await self._isolated.end()
            self._open(self._isolated)
        isolated = self._isolated = _Isolated(self._store, held.item, now() + drain if closes else 0.0)
        try:
            if await self._is_quiet(isolated, drain):
                await isolated.record()
                isolated.closed_until = now() + MAX_ALONE_SECONDS if closes else 0.0
            else:
                self._open(isolated)
            yield
        finally:
            self._open(isolated)

    async def _is_quiet(self, isolated: _Isolated, seconds: float) -> bool:
        """Wait until an event is the only one. Return False on timeout."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._count > 1:
                    isolated.quiet.clear()
                    await isolated.quiet.wait()
        return self._count == 1 and self._isolated is isolated

    def _open(self, isolated: _Isolated) -> None:
        if self._isolated is isolated:
            self._isolated = None
        isolated.opened.set()
