"""Keep small values for channels, sealed if the operator gives a key."""

from typing import Any

from msgspec import json

from frontdesk.abc.store import HostStateStore
from frontdesk.clock import Clock
from frontdesk.data.channel_value import SealedValue, StoredValue, ValuePlace
from frontdesk.data.codec import decode, encode_within
from frontdesk.ids import Ids
from frontdesk.kit.auth.sealing import Sealer
from frontdesk.loggers import host as log

LONGEST_VALUE = 65_536
"""The most bytes that a value may have as JSON."""
_NOT_SEALED = "channel {!r}: what it keeps in its storage is not encrypted; give the host a seal_key="


class Storages:
    """The storages of all channels, and which channels have asked for one."""

    def __init__(self, store: HostStateStore, sealer: Sealer, clock: Clock, ids: Ids) -> None:
        self.store, self.sealer, self.clock, self.ids = store, sealer, clock, ids
        self._channels: dict[str, None] = {}
        self._has_started = False

    async def start(self) -> None:
        """Warn at once from here on: the warnings of the host were logged."""
        self._has_started = True

    def of(self, channel: str, name: str, *, holds_tokens: bool = True) -> "HostStorage":
        """Return a storage of a channel; one that `holds_tokens` should be encrypted."""
        if holds_tokens and channel not in self._channels:
            self._channels[channel] = None
            if self._has_started and not self.sealer.has_key:
                log.warning(_NOT_SEALED.format(channel))
        return HostStorage(self, channel, name)

    def warnings(self) -> list[str]:
        """Name the channels whose values are stored as they are."""
        return [] if self.sealer.has_key else [_NOT_SEALED.format(channel) for channel in self._channels]


class HostStorage:
    """A `ChannelStorage`."""

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
        data = self._storages.sealer.open(found.key_id, found.data, _bound_to(place))
        return StoredValue(value=decode(data), version=found.version)

    async def set(self, key: str, value: Any, *, expires_at: float | None = None) -> str:
        place = self._place(key)
        sealed = self._sealed(place, value, expires_at)
        await self._values.set(place, sealed)
        return sealed.version

    async def compare_and_set(
        self, key: str, expected_version: str | None, value: Any, *, expires_at: float | None = None
    ) -> str | None:
        place = self._place(key)
        sealed = self._sealed(place, value, expires_at)
        now = self._storages.clock.now()
        is_set = await self._values.compare_and_set(place, expected_version, sealed, now=now)
        return sealed.version if is_set else None

    async def delete(self, key: str) -> None:
        await self._values.delete(self._place(key))

    def _place(self, key: str) -> ValuePlace:
        return ValuePlace(channel=self._channel, storage=self._name, key=key)

    def _sealed(self, place: ValuePlace, value: Any, expires_at: float | None) -> SealedValue:
        data = encode_within(value, LONGEST_VALUE, "a value")
        key_id, sealed = self._storages.sealer.seal(data, _bound_to(place))
        version = self._storages.ids.new("val")
        return SealedValue(version=version, key_id=key_id, data=sealed, expires_at=expires_at)


def _bound_to(place: ValuePlace) -> bytes:
    """Return what a sealed value belongs to, so that nobody can move it to another place."""
    return json.encode([place.channel, place.storage, place.key])
