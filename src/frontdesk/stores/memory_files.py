"""The drawer of files of the in-memory store. Nothing here awaits but the digest of a large file."""

from frontdesk.clock import Clock
from frontdesk.data.file import FileLimits, StoredFile, file_id_of
from frontdesk.errors import FilesFullError, FileTooLargeError
from frontdesk.kit.aio.large import run_sized
from frontdesk.stores.memory_drawers import owner_in_key
from frontdesk.stores.shelf import SharedShelf


class MemoryFiles:
    """Files of owners; when there are too many, the owner with the most loses the longest untouched.

    Records of this store hold their data themselves, so only what was put is here.
    """

    def __init__(self, limit: int, limits: FileLimits, clock: Clock) -> None:
        self.kept: SharedShelf[tuple[str, str], tuple[StoredFile, bytes, float]] = SharedShelf(limit, owner_in_key)
        self._limits = limits
        self._clock = clock

    async def put(self, owner: str, data: bytes, *, media_type: str, name: str = "") -> StoredFile:
        if len(data) > self._limits.max_file_bytes:
            raise FileTooLargeError(self._limits.max_file_bytes)
        file_id = await run_sized(len(data), file_id_of, owner, data)
        known = self.kept.get((owner, file_id))
        if known is None and self._size_of(owner) + len(data) > self._limits.max_owner_bytes:
            raise FilesFullError(self._limits.max_owner_bytes)
        stored = StoredFile(file_id=file_id, media_type=media_type, name=name, size=len(data))
        stored = stored if known is None else known[0]
        self.kept.put((owner, file_id), (stored, data, self._clock.now()))
        return stored

    async def get(self, owner: str, file_id: str) -> tuple[StoredFile, bytes] | None:
        kept = self.kept.get((owner, file_id))
        return None if kept is None else kept[:2]

    async def size_of(self, owner: str) -> int:
        return self._size_of(owner)

    def _size_of(self, owner: str) -> int:
        return sum(stored.size for (of, _), (stored, _, _) in self.kept.items() if of == owner)

    def drop_unused(self, before: float) -> None:
        """Drop files that were put before a time."""
        for place in [place for place, (_, _, at) in self.kept.items() if at < before]:
            self.kept.pop(place)
