"""The events that this process works on, and how the wish that one should end reaches its turn."""

import asyncio
from collections.abc import Awaitable, Collection, Sequence
from contextlib import suppress

from frontdesk.abc.store import HostStateStore
from frontdesk.data.delivery import InboxItem
from frontdesk.data.reply import Reply
from frontdesk.errors import LostEventError, StoreUnavailableError
from frontdesk.kit.aio.retry import until_available
from frontdesk.kit.aio.tasks import present_task, spawn_clean
from frontdesk.loggers import runs as log
from frontdesk.sessions.active import ActiveRuns
from frontdesk.sessions.leases import LeaseRenewal

Name = tuple[str, str]
"""The channel and the id of an event."""


class HeldEvent:
    """An event that this process works on, in the present task."""

    def __init__(self, item: InboxItem) -> None:
        self.item = item
        self.task = present_task()
        self.finished = False
        """Whether it was finished by what it asked for, so that nothing of it is left to be written."""
        self.replies: dict[int, Reply] | None = {}
        """What is to be said when it is finished, by number; `None` once nothing more is collected."""
        self._answering = False
        self._cancelled = False

    def take_replies(self) -> dict[int, Reply]:
        """Return what was collected; what is said from now on is written at once."""
        replies, self.replies = self.replies, None
        return replies or {}

    async def answer(self, work: Awaitable[bool]) -> bool:
        """Await the answer, and tell whether the event is done; false if it was cancelled meanwhile."""
        self._answering = True
        try:
            return await work
        except asyncio.CancelledError:
            if not self._cancelled or self.task.uncancel():
                raise
            return False
        finally:
            self._answering = False

    def cancel(self, active: ActiveRuns) -> None:
        """Cancel the turn, unless it has come to its end; then what it tries to write is refused by the store."""
        if self._cancelled or not self._answering:
            return
        run = active.of_event(self.item)
        if run is None or (self.item.bundle and run.cancellable):
            # Of messages that are answered together, those that came after the cancellation are answered anew.
            self._cancelled = True
            self.task.cancel()
        elif run.cancellable and not run.cancel_requested:
            active.spawn_cancel(run)


class HeldEvents:
    """Keeps the events of this process, and looks whether one of them was cancelled."""

    def __init__(self, store: HostStateStore, active: ActiveRuns) -> None:
        self._store = store
        self._active = active
        self._held: dict[Name, HeldEvent] = {}
        self._renewal = LeaseRenewal(store.lease_seconds, lambda: list(self._held), self._renew, self._lose)
        self._looking: asyncio.Task[None] | None = None
        self.stopping = False
        """Whether no more events are taken up."""
        store.listen(self._on_change)

    def start(self) -> None:
        """Begin to renew."""
        self.stopping = False
        self._renewal.start()

    def halt(self) -> None:
        """Take up no more; what is held goes on."""
        self.stopping = True

    async def stop(self) -> None:
        """End; what is still held ends by itself."""
        await self._renewal.stop()

    def add(self, item: InboxItem) -> HeldEvent:
        """Hold an event that the present task works on."""
        held = self._held[item.channel, item.event_id] = HeldEvent(item)
        return held

    def remove(self, item: InboxItem) -> None:
        """Hold an event no longer."""
        del self._held[item.channel, item.event_id]

    def get(self, item: InboxItem) -> HeldEvent | None:
        """Return the held form of an event; `None` if this process does not work on it."""
        return self._held.get((item.channel, item.event_id))

    def _on_change(self, kind: str, run_id: str) -> None:
        """Look for cancelled events when another process has cancelled some."""
        if kind == "cancel" and not run_id and self._held and (self._looking is None or self._looking.done()):
            self._looking = spawn_clean(self.look())

    async def look(self, item: InboxItem | None = None) -> None:
        """Cancel the turns of cancelled events, or only those in the conversation of one, before the next renewal."""
        place = None if item is None else (item.channel, item.conversation_id)
        names = [
            name
            for name, held in self._held.items()
            if place is None or (held.item.channel, held.item.conversation_id) == place
        ]
        try:
            await self._renew(names)
        except StoreUnavailableError:
            log.warning("the store can't tell at the moment which events were cancelled")

    async def give_back(self, item: InboxItem, *, tried: bool = False) -> None:
        """Release an event for the next process to claim; before that is written, no other can."""

        async def write() -> None:
            async with self._store.transaction() as transaction:
                transaction.give_back(item, tried=tried)

        # When the host stops, it is given back by the end of its lease.
        with suppress(LostEventError, StoreUnavailableError):
            await until_available(write, give_up=lambda: self.stopping)

    async def _renew(self, names: Sequence[Name]) -> Collection[Name]:
        items = [self._held[name].item for name in names if name in self._held]
        kept = {(item.channel, item.event_id): item for item in await self._store.inbox.renew(items)}
        for name, item in kept.items():
            held = self._held.get(name)
            if item.is_cancelled and held is not None and held.item.fence == item.fence:
                held.cancel(self._active)
        return set(names) - kept.keys()

    def _lose(self, name: Name) -> None:
        held = self._held.get(name)
        if held is not None:
            log.warning("event %s of %s could not be kept, and its turn stops here", name[1], name[0])
            held.task.cancel()
