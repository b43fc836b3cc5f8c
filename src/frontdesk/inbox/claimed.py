"""The events that this process holds: their leases, and cancellation requests for their turns."""

import asyncio
from collections.abc import Awaitable, Collection, Sequence
from contextlib import suppress

from frontdesk.clock import Clock, Moment, SystemClock
from frontdesk.concurrency.tasks import current_task, spawn_clean
from frontdesk.concurrency.timeouts import until_available
from frontdesk.errors import LostEventError, StoreUnavailableError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import runs as log
from frontdesk.models.delivery import InboxItem
from frontdesk.models.reply import Reply
from frontdesk.sessions.active import ActiveRuns
from frontdesk.sessions.leases import LeaseRenewal

Name = tuple[str, str]
"""The channel and the id of an event."""


class HeldEvent:
    def __init__(self, item: InboxItem, renewed_at: Moment | None = None) -> None:
        self.item = item
        self.renewed_at = renewed_at
        """A moment before its last claim or renewal; `None` if that is not known."""
        self.task = current_task()
        self.finished = False
        """Whether it was finished by what it asked for, so that nothing of it is left to be written."""
        self.replies: dict[int, Reply] | None = {}
        """What is to be said when it is finished, by number; `None` once nothing more is collected."""
        self._answering = False
        self._cancelled = False

    def take_replies(self) -> dict[int, Reply]:
        """Return the collected replies. Later replies are written immediately."""
        replies, self.replies = self.replies, None
        return replies or {}

    async def answer(self, work: Awaitable[bool]) -> bool:
        """Await the answer. Return True if the event is done, False if it was cancelled meanwhile."""
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
        """Cancel the turn. If it has already finished, the store rejects its writes."""
        if self._cancelled or not self._answering:
            return
        run = active.of_event(self.item)
        if run is None or (self.item.bundle and run.cancellable):
            # Of messages that are answered together, those that came after the cancellation are answered anew.
            self._cancelled = True
            self.task.cancel()
        elif run.cancellable and not run.cancel_requested:
            active.spawn_cancel(run)


class ClaimedEvents:
    """The events held by this process. Renews their leases and watches for cancellation."""

    def __init__(self, store: HostStateStore, active: ActiveRuns, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self._active = active
        self._held: dict[Name, HeldEvent] = {}
        self._renewal = LeaseRenewal(store.lease_seconds, lambda: list(self._held), self._renew, self._lose)
        self._looking: asyncio.Task[None] | None = None
        self.stopping = False
        """Whether no more events are taken up."""
        store.listen(self._on_change)

    def start(self) -> None:
        self.stopping = False
        self._renewal.start()

    def halt(self) -> None:
        """Claim no more events. Held ones continue."""
        self.stopping = True

    async def stop(self) -> None:
        """Stop. Held events end by themselves."""
        await self._renewal.stop()

    def add(self, item: InboxItem, claimed_at: Moment | None = None) -> HeldEvent:
        """Hold an event for the current task. `claimed_at` is a moment before it was claimed."""
        held = self._held[item.channel, item.event_id] = HeldEvent(item, claimed_at)
        return held

    def moment(self) -> Moment:
        return Moment.of(self._clock)

    async def confirm(self, held: HeldEvent) -> None:
        """Renew the lease of an event, at most once per quarter of the lease.

        Raises `LostEventError` if the event was cancelled or claimed by another process, for example while this process
        was suspended.
        """
        while self._is_old(held.renewed_at):
            moment = self.moment()
            kept = await self._store.inbox.renew([held.item])
            if not kept or kept[0].is_cancelled:
                raise LostEventError
            held.renewed_at = moment

    def _is_old(self, moment: Moment | None) -> bool:
        if self._store.lease_seconds is None:
            return False
        return moment is None or moment.age(self._clock) > self._store.lease_seconds / 4

    def remove(self, item: InboxItem) -> None:
        del self._held[item.channel, item.event_id]

    def get(self, item: InboxItem) -> HeldEvent | None:
        """Return the held form of an event, or None if this process does not work on it."""
        return self._held.get((item.channel, item.event_id))

    def _on_change(self, kind: str, run_id: str) -> None:
        """Check for cancelled events when another process has cancelled some."""
        if kind == "cancel" and not run_id and self._held and (self._looking is None or self._looking.done()):
            self._looking = spawn_clean(self.look())

    async def look(self, item: InboxItem | None = None) -> None:
        """Cancel the turns of cancelled events before the next renewal. With `item`, only in its conversation."""
        place = None if item is None else (item.channel, item.conversation_id)
        names = [
            name
            for name, held in self._held.items()
            if place is None or (held.item.channel, held.item.conversation_id) == place
        ]
        try:
            await self._renew(names)
        except StoreUnavailableError:
            log.warning("failed to read cancelled events, retrying")

    async def give_back(self, item: InboxItem, *, tried: bool = False) -> None:
        """Release an event. Other processes can only claim it after this is written."""

        async def write() -> None:
            async with self._store.transaction() as transaction:
                transaction.give_back(item, tried=tried)

        # When the host stops, it is given back by the end of its lease.
        with suppress(LostEventError, StoreUnavailableError):
            await until_available(write, give_up=lambda: self.stopping)

    async def _renew(self, names: Sequence[Name]) -> Collection[Name]:
        moment, items = self.moment(), [self._held[name].item for name in names if name in self._held]
        kept = {(item.channel, item.event_id): item for item in await self._store.inbox.renew(items)}
        for name, item in kept.items():
            held = self._held.get(name)
            if held is None or held.item.fence != item.fence:
                continue
            held.renewed_at = moment
            if item.is_cancelled:
                held.cancel(self._active)
        return set(names) - kept.keys()

    def _lose(self, name: Name) -> None:
        held = self._held.get(name)
        if held is not None:
            log.warning("event lease lost, stopping its turn: event_id=%s channel=%s", name[1], name[0])
            held.task.cancel()
