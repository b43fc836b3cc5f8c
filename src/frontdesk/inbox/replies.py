"""Collects the replies to an event during its processing."""

from collections.abc import Mapping
from contextlib import suppress

from frontdesk.chat.aliases import Aliases
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.reply_rows import ReplyRows
from frontdesk.errors import DeliveryExistsError
from frontdesk.inbox.claimed import ClaimedEvents
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.delivery import Delivery, InboxItem
from frontdesk.models.reply import Reply, as_reply


class EventReplies(ReplyRows):
    def __init__(
        self, store: HostStateStore, planner: Planner, outbox: OutboxSender, aliases: Aliases, held: ClaimedEvents
    ) -> None:
        super().__init__(planner, aliases)
        self._store = store
        self._outbox = outbox
        self._held = held

    async def add(self, item: InboxItem, reply: Reply | str, number: int) -> None:
        """Keep a reply until the event is finished. Written immediately if this process does not work on the event."""
        held = self._held.get(item)
        if held is None or held.replies is None:
            await self.write(item, {number: as_reply(reply)})
        else:
            held.replies.setdefault(number, as_reply(reply))

    async def take_collected_rows(self, item: InboxItem) -> list[Delivery]:
        """Return the deliveries of the collected replies. Later replies are written immediately."""
        held = self._held.get(item)
        return [] if held is None else await self.rows(item, held.take_replies())

    async def write(self, item: InboxItem, replies: Mapping[int, Reply]) -> None:
        """Write replies immediately. Replies that were written before are unchanged."""
        for number, reply in replies.items():
            rows = await self.rows(item, {number: reply})
            with suppress(DeliveryExistsError):
                async with self._store.transaction() as transaction:
                    for row in rows:
                        transaction.add_delivery(row, once=True)
            await self._outbox.wake(rows)
