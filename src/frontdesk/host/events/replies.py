"""Makes the deliveries of what is said to an event in the channel's own words."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from frontdesk.abc.store import HostStateStore
from frontdesk.data.delivery import Delivery, InboxItem
from frontdesk.data.reply import Reply, as_reply
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.plan import Planner
from frontdesk.errors import DeliveryExistsError
from frontdesk.host.events.held import HeldEvents
from frontdesk.kit.chat.aliases import Aliases
from frontdesk.kit.names import digest


class ReplyRows:
    """Names each reply by its event and its number, so that it is one delivery however often it is made."""

    def __init__(self, planner: Planner, aliases: Aliases) -> None:
        self._planner = planner
        self._aliases = aliases

    async def rows(self, item: InboxItem, replies: Mapping[int, Reply]) -> list[Delivery]:
        """Return the deliveries of the replies that were given while an event was worked on."""
        return await self._named_rows(item, ((str(number), reply) for number, reply in replies.items()))

    async def refusal_rows(self, item: InboxItem, replies: Iterable[Reply]) -> list[Delivery]:
        """Return the deliveries of a refusal."""
        return await self._named_rows(item, ((f"refuse:{n}", reply) for n, reply in enumerate(replies)))

    async def cancel_rows(self, item: InboxItem, reply: Reply | str) -> list[Delivery]:
        """Return the deliveries of what is said about a cancellation."""
        return await self._named_rows(item, [("cancel", as_reply(reply))])

    async def confirmation_rows(self, item: InboxItem, approval_id: str, replies: Iterable[Reply]) -> list[Delivery]:
        """Return the deliveries of what is said about a question that an event has decided."""
        return await self._named_rows(item, ((f"confirm:{n}:{approval_id}", reply) for n, reply in enumerate(replies)))

    async def _named_rows(self, item: InboxItem, replies: Iterable[tuple[str, Reply]]) -> list[Delivery]:
        rows: list[Delivery] = []
        for name, reply in replies:
            key = digest(f"{name}:{len(item.channel)}:{item.channel}:{item.event_id}")[:32]
            inward, shown = await self._aliases.inward(item), await self._aliases.outward(item)
            rows += self._planner.reply(inward, shown, reply, key)
        return rows


class EventReplies(ReplyRows):
    """Collects what is said to an event while it is worked on."""

    def __init__(
        self, store: HostStateStore, planner: Planner, outbox: OutboxSender, aliases: Aliases, held: HeldEvents
    ) -> None:
        super().__init__(planner, aliases)
        self._store = store
        self._outbox = outbox
        self._held = held

    async def add(self, item: InboxItem, reply: Reply | str, number: int) -> None:
        """Keep a reply until the event is finished; write it at once if this process does not work on the event."""
        held = self._held.get(item)
        if held is None or held.replies is None:
            await self.write(item, {number: as_reply(reply)})
        else:
            held.replies.setdefault(number, as_reply(reply))

    async def collected_rows(self, item: InboxItem) -> list[Delivery]:
        """Return the deliveries of the replies that were kept; what is said from now on is written at once."""
        held = self._held.get(item)
        return [] if held is None else await self.rows(item, held.take_replies())

    async def write(self, item: InboxItem, replies: Mapping[int, Reply]) -> None:
        """Write replies at once; those that were written before stay as they are."""
        for number, reply in replies.items():
            rows = await self.rows(item, {number: reply})
            with suppress(DeliveryExistsError):
                async with self._store.transaction() as transaction:
                    for row in rows:
                        transaction.add_delivery(row, once=True)
            await self._outbox.wake(rows)
