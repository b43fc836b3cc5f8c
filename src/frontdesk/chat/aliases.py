"""Maps moved conversations: the first id is used inside the host, the current id on the platform."""

import asyncio
from collections.abc import Collection
from contextlib import suppress

from frontdesk.concurrency.tasks import cancel_and_wait, spawn_clean
from frontdesk.errors import StoreError, StoreUnavailableError
from frontdesk.interfaces.store import HostStateStore
from frontdesk.models.conversation import ConversationAlias, merge_aliases
from frontdesk.models.delivery import Delivery, InboxItem
from frontdesk.models.request import ChannelRequest

REFRESH_INTERVAL_SECONDS = 5.0
"""After how many seconds it is looked again whether another process has moved a conversation of a channel."""


class Aliases:
    """The names of conversations. Nothing is looked up on a channel without moved conversations."""

    def __init__(self, store: HostStateStore, channels: Collection[str]) -> None:
        self._store = store
        self._channels = channels
        self._moved_on: frozenset[str] = frozenset()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Load the channels with moved conversations. Repeat that if other processes may move one."""
        await self.look()
        if self._store.lease_seconds is not None:
            self._task = spawn_clean(self._go_on())

    async def stop(self) -> None:
        await cancel_and_wait(self._task)

    async def look(self) -> None:
        self._moved_on = frozenset(await self._store.conversation_aliases.moved_on(self._channels))

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_INTERVAL_SECONDS)
            with suppress(StoreUnavailableError, StoreError):
                await self.look()

    async def move(self, channel: str, old: str, new: str) -> None:
        """Rename a conversation. Raise `ValueError` if it had the new name before."""
        aliases = self._store.conversation_aliases
        while True:
            version = await aliases.version(channel)
            known_old, known_new = await aliases.find(channel, old), await aliases.find(channel, new)
            try:
                merge = merge_aliases(old, new, known_old, known_new)
            except ValueError:
                if await aliases.version(channel) == version:
                    raise
                continue  # Another process renamed one of the two between the reads.
            if merge is None or await aliases.merge(channel, merge, version=version):
                break
        self._moved_on |= {channel}

    async def first_name(self, channel: str, name: str) -> str:
        """Return the host's name of a conversation."""
        alias = await self._find(channel, name)
        return name if alias is None else alias.first_name

    async def current_name(self, channel: str, name: str) -> str:
        """Return the platform's name of a conversation."""
        alias = await self._find(channel, name)
        return name if alias is None else alias.current_name

    async def _find(self, channel: str, name: str) -> ConversationAlias | None:
        return await self._store.conversation_aliases.find(channel, name) if channel in self._moved_on else None

    async def inward(self, item: InboxItem) -> InboxItem:
        """Return an event with the host's conversation name."""
        if item.channel not in self._moved_on:
            return item
        name = await self.first_name(item.channel, item.conversation_id)
        return item.replace(conversation_id=name, request=await self.inward_request(item.request))

    async def inward_request(self, request: ChannelRequest) -> ChannelRequest:
        if request.channel not in self._moved_on or request.conversation_id is None:
            return request
        return request.replace(conversation_id=await self.first_name(request.channel, request.conversation_id))

    async def outward(self, item: InboxItem) -> InboxItem:
        """Return an event with the platform's conversation name."""
        if item.channel not in self._moved_on:
            return item
        name, request = await self.current_name(item.channel, item.conversation_id), item.request
        if request.conversation_id is not None:
            request = request.replace(conversation_id=await self.current_name(item.channel, request.conversation_id))
        return item.replace(conversation_id=name, request=request)

    async def outward_delivery(self, delivery: Delivery) -> Delivery:
        if delivery.channel not in self._moved_on or delivery.conversation_id is None:
            return delivery
        return delivery.replace(conversation_id=await self.current_name(delivery.channel, delivery.conversation_id))
