"""Give up deliveries to a place that the platform has closed to us."""

from collections.abc import AsyncIterator, Callable
from math import inf

from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.delivery import Delivery
from frontdesk.delivery.edits import noted
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.errors import LostDeliveryError, UnreadableRecordError
from frontdesk.kit.chat.aliases import Aliases
from frontdesk.loggers import deliveries as log

_PAGE = 200


class Ending:
    """Ends deliveries of one channel that wait; one that is being sent is left to its sender, and the platform."""

    def __init__(
        self, store: HostStateStore, clock: Clock, aliases: Aliases, outbox: OutboxSender, channel: str
    ) -> None:
        self._store = store
        self._clock = clock
        self._aliases = aliases
        self._outbox = outbox
        self._channel = channel

    async def end(self, place: str, reason: str, before: float, also: Callable[[str], bool] | None) -> int:
        """End what waits for a place since before a time, and for others that `also` chooses; return how many."""
        if await self._aliases.current_name(self._channel, place) != place:
            # The platform closes the old name of a conversation that has moved.
            return 0
        count = await self._end_at(await self._aliases.first_name(self._channel, place), reason, before)
        if also is not None:
            places = [name async for name in self._waiting() if also(name)]
            count += sum([await self._end_at(name, reason, before) for name in places])
        if count:
            log.info("%d deliveries on %s are given up: %s", count, self._channel, reason)
        return count

    async def _waiting(self) -> AsyncIterator[str]:
        last: str | None = None
        while page := await self._store.outbox.waiting(self._channel, now=inf, after=last, limit=_PAGE):
            for place in page:
                yield place
            last = page[-1]

    async def _end_at(self, place: str, reason: str, before: float) -> int:
        count = 0
        while rows := await self._open(place, before):
            now = self._clock.now()
            try:
                async with self._store.transaction() as transaction:
                    for row in rows:
                        ended = noted(row, now, reason).replace(status="dead", error=reason, ended_at=now)
                        transaction.change_delivery(ended)
            except LostDeliveryError:
                # A sender has taken one of them; the others still wait.
                continue
            count += len(rows)
        return count

    async def _open(self, place: str, before: float) -> list[Delivery]:
        try:
            rows = await self._store.outbox.open((self._channel, place), limit=_PAGE)
        except UnreadableRecordError:
            # A newer version gives them up.
            return []
        return [row for row in rows if self._waits(row) and (row.queued_at or row.created_at) < before]

    def _waits(self, row: Delivery) -> bool:
        return row.status == "pending" and row.held_for <= 0 and not self._outbox.is_kept(row)
