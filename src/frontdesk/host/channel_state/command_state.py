"""Keeps small values for the commands of a channel."""

from typing import Any

from frontdesk.host.channel_state.storage import HostStorage, Storages
from frontdesk.kit.chat.aliases import Aliases
from frontdesk.kit.names import digest

STORAGE = "command_state"
"""The storage of every channel in which the values are."""
KEPT_SECONDS = 30 * 24 * 3600.0
"""The seconds that a value stays unless its command says something else."""


class HostCommandState:
    """A `CommandState`: it asks the store for nothing until it is used."""

    def __init__(
        self, storages: Storages, aliases: Aliases, channel: str, native_id: str, group: str | None = None
    ) -> None:
        """Keep the values of a person of a channel in a group, or in their direct chat."""
        # Not by `Storages.of`, which warns of channels that keep secrets of their own without a key.
        self._storage = HostStorage(storages, channel, STORAGE)
        self._clock, self._aliases = storages.clock, aliases
        self._channel, self._native_id, self._group = channel, native_id, group

    async def get(self, key: str) -> Any:
        stored = await self._storage.get(await self._key(key))
        return None if stored is None else stored.value

    async def set(self, key: str, value: Any, *, seconds: float | None = None) -> None:
        expires_at = self._clock.now() + (KEPT_SECONDS if seconds is None else seconds)
        await self._storage.set(await self._key(key), value, expires_at=expires_at)

    async def delete(self, key: str) -> None:
        await self._storage.delete(await self._key(key))

    async def _key(self, key: str) -> str:
        group = self._group
        if group is not None:
            group = await self._aliases.first_name(self._channel, group)
        # The lengths keep any two people, and any two groups, apart.
        place = "direct" if group is None else f"{len(group)}:{group}"
        return digest(f"{len(self._native_id)}:{self._native_id}:{place}:{key}")
