"""Channel values, leaderships, conversation aliases and files of the in-memory store. Calls are atomic.

Nothing here awaits, so every call is atomic on one event loop.
"""

from collections.abc import Collection, Hashable, Sequence

from frontdesk.clock import Clock
from frontdesk.concurrency.offload import run_sized
from frontdesk.errors import FilesFullError, FileTooLargeError, VisitorFilesFullError
from frontdesk.models.channel_storage import Leadership, SealedValue, ValueLocation
from frontdesk.models.conversation import AliasMerge, ConversationAlias
from frontdesk.models.file import FileLimits, StoredFile, compute_file_id
from frontdesk.models.live_message import LiveFence
from frontdesk.stores.memory.bounded_dict import FairBoundedDict
from frontdesk.stores.memory.delivery import MemoryLiveAnswers
from frontdesk.stores.memory.sessions import owner_in_key


class MemoryLeaderships:
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


def _get_owner(place: ValueLocation, _: SealedValue) -> Hashable:
    """Return the key segment between the first two slashes, which names the owner if there is one."""
    parts = place.key.split("/", 2)
    return place.channel, place.storage, parts[min(1, len(parts) - 1)]


class MemoryChannelValues:
    """Values by channel, storage and key. On overflow, the owner with the most values loses first."""

    def __init__(self, limit: int, live: MemoryLiveAnswers) -> None:
        self._live = live
        self.kept: FairBoundedDict[ValueLocation, SealedValue] = FairBoundedDict(limit, _get_owner)

    async def get(self, place: ValueLocation, *, now: float) -> SealedValue | None:
        return self._find_living(place, now)

    def _find_living(self, place: ValueLocation, now: float) -> SealedValue | None:
        value = self.kept.get(place)
        is_over = value is not None and value.expires_at is not None and value.expires_at <= now
        return None if is_over else value

    async def set(self, place: ValueLocation, value: SealedValue) -> None:
        self.kept.put(place, value)

    async def compare_and_set(
        self,
        place: ValueLocation,
        expected_version: str | None,
        value: SealedValue,
        *,
        now: float,
        fence: LiveFence | None = None,
    ) -> bool:
        if fence is not None:
            self._live.check_held(fence)
        known = self._find_living(place, now)
        if expected_version != (None if known is None else known.version):
            return False
        self.kept.put(place, value)
        return True

    async def delete(self, place: ValueLocation) -> None:
        self.kept.pop(place)

    def drop_expired(self, now: float) -> None:
        for place in [place for place, _ in self.kept.items() if self._find_living(place, now) is None]:
            self.kept.pop(place)


class MemoryConversationAliases:
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


class MemoryFiles:
    """Files by owner. On overflow, the owner with the most files loses the least recently used one.

    Records in this store contain their data, so only files that were put are here.
    """

    def __init__(self, limit: int, limits: FileLimits, clock: Clock) -> None:
        self.kept: FairBoundedDict[tuple[str, str], tuple[StoredFile, bytes, float, bool]] = FairBoundedDict(
            limit, owner_in_key
        )
        self._limits = limits
        self._clock = clock

    async def put(
        self, owner: str, data: bytes, *, media_type: str, name: str = "", visitor: bool = False
    ) -> StoredFile:
        if len(data) > self._limits.max_file_bytes:
            raise FileTooLargeError(self._limits.max_file_bytes)
        file_id = await run_sized(len(data), compute_file_id, owner, data)
        known = self.kept.get((owner, file_id))
        if known is None:
            self._require_capacity(owner, len(data), visitor)
        stored = StoredFile(file_id=file_id, media_type=media_type, name=name, size=len(data))
        stored = stored if known is None else known[0]
        self.kept.put((owner, file_id), (stored, data, self._clock.now(), visitor))
        return stored

    def _require_capacity(self, owner: str, size: int, visitor: bool) -> None:
        limits = self._limits
        most = min(limits.max_owner_bytes, limits.max_visitor_bytes) if visitor else limits.max_owner_bytes
        if self._get_size(owner) + size > most:
            raise FilesFullError(most)
        if visitor and self._size_of_visitors() + size > limits.max_visitors_bytes:
            raise VisitorFilesFullError(limits.max_visitors_bytes)

    async def get(self, owner: str, file_id: str) -> tuple[StoredFile, bytes] | None:
        kept = self.kept.get((owner, file_id))
        return None if kept is None else kept[:2]

    async def get_size(self, owner: str) -> int:
        return self._get_size(owner)

    def _get_size(self, owner: str) -> int:
        return sum(stored.size for (of, _), (stored, *_) in self.kept.items() if of == owner)

    def _size_of_visitors(self) -> int:
        return sum(stored.size for _, (stored, _, _, visitor) in self.kept.items() if visitor)

    def drop_unused(self, before: float) -> None:
        for place in [place for place, (_, _, at, _) in self.kept.items() if at < before]:
            self.kept.pop(place)
