"""The drawers of the in-memory store for channels. Nothing here awaits, so on one event loop every call is atomic."""

from collections.abc import Collection, Hashable, Sequence

from frontdesk.data.channel_value import SealedValue, ValuePlace
from frontdesk.data.conversation_alias import AliasMerge, ConversationAlias
from frontdesk.data.leadership import Leadership
from frontdesk.stores.shelf import SharedShelf


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


def _owner_of(place: ValuePlace, _: SealedValue) -> Hashable:
    """Return what is between the first two slashes of a key: there it says whose the value is, if it says it."""
    parts = place.key.split("/", 2)
    return place.channel, place.storage, parts[min(1, len(parts) - 1)]


class MemoryChannelValues:
    """Values by channel, storage and key; of too many, those of the owner with the most go first."""

    def __init__(self, limit: int) -> None:
        self.kept: SharedShelf[ValuePlace, SealedValue] = SharedShelf(limit, _owner_of)

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


class MemoryConversationAliases:
    """Names by channel."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], ConversationAlias] = {}
        self._versions: dict[str, int] = {}

    async def moved_on(self, channels: Collection[str]) -> Collection[str]:
        return [channel for channel in channels if channel in self._versions]

    async def find(self, channel: str, name: str) -> ConversationAlias | None:
        return self._names.get((channel, name))

    async def version(self, channel: str) -> int:
        return self._versions.get(channel, 0)

    async def merge(self, channel: str, merge: AliasMerge, *, version: int) -> bool:
        if self._versions.get(channel, 0) != version:
            return False
        self._versions[channel] = version + 1
        first, current = merge.first_name, merge.current_name
        for name in (merge.old, merge.new):
            alias = ConversationAlias(name=name, first_name=first, current_name=current)
            self._names.setdefault((channel, name), alias)
        for place, alias in self._names.items():
            if place[0] == channel and alias.first_name in (first, merge.merged_first_name):
                following = merge.new if alias.name == merge.old else alias.next_name
                self._names[place] = alias.replace(first_name=first, current_name=current, next_name=following)
        return True
