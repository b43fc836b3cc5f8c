"""Stores small values for channels, encrypted if the operator configures a key."""

from typing import Any

from msgspec import json

from frontdesk.auth.sealing import Sealer
from frontdesk.chat.aliases import Aliases
from frontdesk.clock import Clock
from frontdesk.errors import SealError
from frontdesk.identifiers import digest
from frontdesk.ids import Ids
from frontdesk.interfaces.store import HostStateStore
from frontdesk.loggers import host as log
from frontdesk.models.channel_storage import SealedToken, SealedValue, StoredValue, ValueLocation
from frontdesk.models.delivery import InboxItem
from frontdesk.models.live_message import LiveFence
from frontdesk.serialization.codec import decode, encode_within

MAX_VALUE_LENGTH = 65_536
"""The most bytes that a value may have as JSON."""
_NOT_SEALED = "channel {!r}: what it keeps in its storage is not encrypted; give the host a seal_key="


class Storages:
    """The storages of all channels, and the channels that use one."""

    def __init__(self, store: HostStateStore, sealer: Sealer, clock: Clock, ids: Ids) -> None:
        self.store, self.sealer, self.clock, self.ids = store, sealer, clock, ids
        self._channels: dict[str, None] = {}
        self._has_started = False

    async def start(self) -> None:
        """Log warnings immediately from now on, because those of the host are already logged."""
        self._has_started = True

    def of(self, channel: str, name: str, *, holds_tokens: bool = True) -> "HostStorage":
        """Return a storage of a channel. One that `holds_tokens` should be encrypted."""
        if holds_tokens and channel not in self._channels:
            self._channels[channel] = None
            if self._has_started and not self.sealer.has_key:
                log.warning(_NOT_SEALED.format(channel))
        return HostStorage(self, channel, name)

    def warnings(self) -> list[str]:
        """Return the channels whose values are stored unencrypted."""
        return [] if self.sealer.has_key else [_NOT_SEALED.format(channel) for channel in self._channels]


class HostStorage:
    def __init__(self, storages: Storages, channel: str, name: str) -> None:
        self._storages = storages
        self._channel = channel
        self._name = name
        self._values = storages.store.channel_values

    async def get(self, key: str) -> StoredValue | None:
        place = self._place(key)
        found = await self._values.get(place, now=self._storages.clock.now())
        if found is None:
            return None
        data = self._storages.sealer.open(found.key_id, found.data, _build_binding(place))
        return StoredValue(value=decode(data), version=found.version)

    async def set(self, key: str, value: Any, *, expires_at: float | None = None) -> str:
        place = self._place(key)
        sealed = self._seal(place, value, expires_at)
        await self._values.set(place, sealed)
        return sealed.version

    async def compare_and_set(
        self,
        key: str,
        expected_version: str | None,
        value: Any,
        *,
        expires_at: float | None = None,
        fence: LiveFence | None = None,
    ) -> str | None:
        place = self._place(key)
        sealed = self._seal(place, value, expires_at)
        now = self._storages.clock.now()
        is_set = await self._values.compare_and_set(place, expected_version, sealed, now=now, fence=fence)
        return sealed.version if is_set else None

    async def delete(self, key: str) -> None:
        await self._values.delete(self._place(key))

    def _place(self, key: str) -> ValueLocation:
        return ValueLocation(channel=self._channel, storage=self._name, key=key)

    def _seal(self, place: ValueLocation, value: Any, expires_at: float | None) -> SealedValue:
        data = encode_within(value, MAX_VALUE_LENGTH, "a value")
        key_id, sealed = self._storages.sealer.seal(data, _build_binding(place))
        version = self._storages.ids.new("val")
        return SealedValue(version=version, key_id=key_id, data=sealed, expires_at=expires_at)


def _build_binding(place: ValueLocation) -> bytes:
    """Return the binding of a sealed value, which prevents moving it to another key."""
    return json.encode([place.channel, place.storage, place.key])


STORAGE = "command_state"
"""The storage of every channel in which the values are."""
KEPT_SECONDS = 30 * 24 * 3600.0
"""The seconds that a value stays unless its command says something else."""


class HostCommandState:
    """A `CommandState`. It does not query the store until it is used."""

    def __init__(
        self, storages: Storages, aliases: Aliases, channel: str, native_id: str, group: str | None = None
    ) -> None:
        """Use the values of a person in a group, or in their direct chat."""
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


_NO_KEY = "a token of a platform is stored only encrypted: set needs_seal_key on the channel, and seal_key= on the host"


class ReplyTokens:
    """The tokens of one channel's events."""

    def __init__(self, channel: str, sealer: Sealer, clock: Clock) -> None:
        self._channel = channel
        self._sealer = sealer
        self._clock = clock

    def seal(self, item: InboxItem, token: str, expires_at: float) -> InboxItem:
        """Return an event with its sealed token. Raise `SealError` if the host has no key."""
        if not self._sealer.has_key:
            raise SealError(_NO_KEY)
        key_id, data = self._sealer.seal(token.encode(), self._build_binding(item.event_id))
        sealed = SealedToken(event_id=item.event_id, key_id=key_id, data=data, expires_at=expires_at)
        return item.replace(reply_token=sealed)

    def open(self, token: SealedToken | None) -> str | None:
        """Return a token, or None if it is missing or expired."""
        if token is None or self._clock.now() >= token.expires_at:
            return None
        return self._sealer.open(token.key_id, token.data, self._build_binding(token.event_id)).decode()

    def _build_binding(self, event_id: str) -> bytes:
        return json.encode(["reply token", self._channel, event_id])
