"""Creates the deliveries of a channel's own replies to an event."""

from collections.abc import Iterable, Mapping

from frontdesk.chat.aliases import Aliases
from frontdesk.concurrency.offload import run_rendering
from frontdesk.delivery.plan import Planner
from frontdesk.identifiers import digest
from frontdesk.models.delivery import Delivery, InboxItem
from frontdesk.models.reply import Reply, as_reply


class ReplyRows:
    """Names each reply by its event and number, so that a repeated reply is the same delivery."""

    def __init__(self, planner: Planner, aliases: Aliases) -> None:
        self._planner = planner
        self._aliases = aliases

    async def rows(self, item: InboxItem, replies: Mapping[int, Reply]) -> list[Delivery]:
        """Return the deliveries of the replies that were given while an event was processed."""
        return await self._build_named_rows(item, ((str(number), reply) for number, reply in replies.items()))

    async def refusal_rows(self, item: InboxItem, replies: Iterable[Reply]) -> list[Delivery]:
        return await self._build_named_rows(item, ((f"refuse:{n}", reply) for n, reply in enumerate(replies)))

    async def cancel_rows(self, item: InboxItem, reply: Reply | str) -> list[Delivery]:
        """Return the deliveries of the reply to a cancellation."""
        return await self._build_named_rows(item, [("cancel", as_reply(reply))])

    async def confirmation_rows(self, item: InboxItem, approval_id: str, replies: Iterable[Reply]) -> list[Delivery]:
        """Return the deliveries of the confirmation of a question that an event has decided."""
        return await self._build_named_rows(
            item, ((f"confirm:{n}:{approval_id}", reply) for n, reply in enumerate(replies))
        )

    async def _build_named_rows(self, item: InboxItem, replies: Iterable[tuple[str, Reply]]) -> list[Delivery]:
        rows: list[Delivery] = []
        for name, reply in replies:
            key = digest(f"{name}:{len(item.channel)}:{item.channel}:{item.event_id}")[:32]
            inward, shown = await self._aliases.inward(item), await self._aliases.outward(item)
            rows += await run_rendering(reply.full_text, self._planner.reply, inward, shown, reply, key)
        return rows
