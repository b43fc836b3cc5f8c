"""What the in-memory store keeps for channels. Nothing here awaits, so on one event loop every call is atomic."""

from collections.abc import Sequence

from frontdesk.data.channel_value import SealedValue, ValuePlace
from frontdesk.data.leadership import Leadership
from frontdesk.stores.memory_drawers import Shelf


class MemoryLeaderships:
    """Leaderships within this process."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, str], Leadership] = {}
        self._count = 0

    async def claim(self, channel: str, name: str, holder: str) -> Leadership | None:
        held = self._holders.get((channel, name))
        if held is not None and held.holder != holder:
            return None
        self._count += 1
        leadership = Leadership(channel=channel, name=name, holder=holder, fence=self._count)
        self._holders[channel, name] = leadership
        return leadership

    async def renew(self, held: Sequence[Leadership]) -> Sequence[Leadership]:
        return [one for one in held if self._holders.get((one.channel, one.name)) != one]

    async def release(self, channel: str, name: str, holder: str) -> None:
        held = self._holders.get((channel, name))
        if held is not None and held.holder == holder:
            del self._holders[channel, name]


class MemoryChannelValues:
    """Values by channel, storage and key; when there are too many, the longest untouched go first."""

    def __init__(self, limit: int) -> None:
        self.kept: Shelf[ValuePlace, SealedValue] = Shelf(limit)

    async def get(self, place: ValuePlace, *, now: float) -> SealedValue | None:
        return self._living(place, now)

    def _living(self, place: ValuePlace, now: float) -> SealedValue | None:
        value = self.kept.get(place)
        is_over = value is not None and value.expires_at is not None and value.expires_at <= now
        return None if is_over else value

    async def set(self, place: ValuePlace, value: SealedValue) -> None:
        self.kept.put(place, value)

    async def compare_and_set(
        self, place: ValuePlace, expected_version: str | None, value: SealedValue, *, now: float
    ) -> bool:
        known = self._living(place, now)
        if expected_version != (None if known is None else known.version):
            return False
        self.kept.put(place, value)
        return True

    async def delete(self, place: ValuePlace) -> None:
        self.kept.pop(place)

    def drop_expired(self, now: float) -> None:
        """Drop what has expired."""
        for place in [place for place, _ in self.kept.items() if self._living(place, now) is None]:
            self.kept.pop(place)
