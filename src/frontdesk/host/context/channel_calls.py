"""The calls of a context that are about the channel itself, on all replicas alike."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from math import inf

from frontdesk.abc.channel_state import ChannelStorage
from frontdesk.data.delivery import InboxItem
from frontdesk.data.leadership import Leadership
from frontdesk.data.reply_token import SealedToken
from frontdesk.host.channel_state.ending import Ending
from frontdesk.host.channel_state.settling import Settlement, Settling
from frontdesk.host.channel_state.tokens import ReplyTokens
from frontdesk.host.context.session_calls import SessionCalls


class ChannelCalls(SessionCalls):
    """The part of a `ChannelContext` that is about the channel itself."""

    def leadership(self, name: str) -> AbstractAsyncContextManager[Leadership]:
        return self._parts.leaders.lead(self.channel, name)

    def channel_storage(self, name: str, *, holds_tokens: bool = True) -> ChannelStorage:
        return self._parts.storages.of(self.channel, name, holds_tokens=holds_tokens)

    def seal_reply_token(self, item: InboxItem, token: str, *, expires_at: float) -> InboxItem:
        return self._tokens().seal(item, token, expires_at)

    def open_reply_token(self, token: SealedToken | None) -> str | None:
        return self._tokens().open(token)

    def _tokens(self) -> ReplyTokens:
        return ReplyTokens(self.channel, self._parts.storages.sealer, self._parts.clock)

    async def alias_conversation(self, old: str, new: str) -> None:
        await self._parts.aliases.move(self.channel, old, new)

    async def is_finished(self, item: InboxItem) -> bool:
        known = await self._store.inbox.find(self.channel, item.event_id)
        return known is None or known.is_done

    async def end_deliveries(
        self, place: str, *, reason: str, before: float | None = None, also: Callable[[str], bool] | None = None
    ) -> int:
        parts = self._parts
        ending = Ending(self._store, parts.clock, parts.aliases, parts.outbox, self.channel)
        return await ending.end(place, reason, inf if before is None else before, also)

    async def settle_delivery(
        self,
        *,
        receipt: str | None = None,
        key: str | None = None,
        status: Settlement,
        reason: str | None = None,
        at: float | None = None,
    ) -> bool:
        settling = Settling(self._store, self._parts.clock)
        return await settling.settle(self.channel, receipt, key, status, reason, at)
