"""The drawer of files, and the way of large data between records and files.

A file is written before the transaction that uses it, in chunks that are transactions of their own, so that no large
one holds up the others. Its row says first that it is not complete, and says otherwise in the transaction that uses
it. What a crash leaves between the two is dropped when it is old.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from frontdesk.clock import Clock
from frontdesk.data.file import FileLimits, StoredFile, file_id_of
from frontdesk.errors import FilesFullError, FileTooLargeError
from frontdesk.kit.aio.large import off_loop, run_sized
from frontdesk.loggers import store as log
from frontdesk.stores.sql import tables
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.file_references import Detached, attach, detach, files_in, has_files, may_have_files
from frontdesk.stores.sql.tables import as_bytes, key
from frontdesk.stores.sql.writes import Do, Fence, Op, Put, Row

CHUNK = 256 * 1024
"""The bytes in a row."""
_AT_ONCE = 4
"""The number of chunks in a transaction."""
_MOST_ASKED = 200
_BEGIN = (
    "INSERT INTO files (file_id, owner, media_type, name, size, complete, touched_at) VALUES (?, ?, ?, ?, ?, 0, ?) "
    "ON CONFLICT (file_id) DO UPDATE SET touched_at = excluded.touched_at RETURNING complete"
)
_SIZE = "SELECT COALESCE(SUM(size), 0) FROM files WHERE owner = ?"
_KNOWN = "SELECT file_id FROM files WHERE owner = ? AND complete = 1 AND file_id IN ({marks})"
_CHUNKS = (
    "SELECT files.file_id, files.size, file_chunks.data FROM files "
    "LEFT JOIN file_chunks ON file_chunks.file_id = files.file_id "
    "WHERE files.file_id IN ({marks}) ORDER BY files.file_id, file_chunks.number"
)
_ONE = "SELECT media_type, name, size FROM files WHERE file_id = ? AND owner = ? AND complete = 1"


class FileUse(NamedTuple):
    """A record that may have large data: the number of its operation, and its name among the uses of files."""

    operation: int
    kind: str
    place: str
    of: str
    owner: str


class _New(NamedTuple):
    owner: str
    media_type: str
    content: bytes
    name: str = ""


class FileContents:
    """Reads the bytes of files, and puts them back into records."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def attached(self, records: Sequence[bytes]) -> list[bytes]:
        """Return records with the data that was taken out of them; one query for all."""
        wanted = sorted({file_id for data in records if has_files(data) for file_id in files_in(data)})
        if not wanted:
            return list(records)
        contents = await self.read(wanted)
        for file_id in wanted:
            if file_id not in contents:
                log.error("file %s is gone, and is empty in the record that uses it", file_id)
        return await run_sized(
            sum(map(len, contents.values())),
            lambda: [attach(data, contents) if has_files(data) else data for data in records],
        )

    async def read(self, file_ids: Sequence[str]) -> dict[str, bytes]:
        """Return the contents of files, by their ids, without those that are not whole."""
        chunks: dict[str, list[bytes]] = {}
        sizes: dict[str, int] = {}
        for start in range(0, len(file_ids), _MOST_ASKED):
            asked = file_ids[start : start + _MOST_ASKED]
            for file_id, size, data in await self._engine.read(_CHUNKS.format(marks=_marks(asked)), tuple(asked)):
                sizes[file_id] = size
                chunks.setdefault(file_id, []).append(b"" if data is None else bytes(data))
        contents = {file_id: b"".join(some) for file_id, some in chunks.items()}
        return {file_id: content for file_id, content in contents.items() if len(content) == sizes[file_id]}


class SqlFiles:
    """The files of owners."""

    def __init__(self, engine: Engine, clock: Clock, limits: FileLimits) -> None:
        self._engine = engine
        self._clock = clock
        self._limits = limits
        self._contents = FileContents(engine)

    async def put(self, owner: str, data: bytes, *, media_type: str, name: str = "") -> StoredFile:
        if len(data) > self._limits.max_file_bytes:
            raise FileTooLargeError(self._limits.max_file_bytes)
        file_id = await run_sized(len(data), file_id_of, key(owner), data)
        new = _New(key(owner), media_type, data, name)
        if not await self._fits(key(owner), {file_id: new}):
            raise FilesFullError(self._limits.max_owner_bytes)
        if await self._write(file_id, new):
            await self._engine.write([self._completed(file_id)])
        stored = await self.get_stored(owner, file_id)
        return stored or StoredFile(file_id=file_id, media_type=media_type, name=name, size=len(data))

    async def get(self, owner: str, file_id: str) -> tuple[StoredFile, bytes] | None:
        stored = await self.get_stored(owner, file_id)
        if stored is None:
            return None
        content = (await self._contents.read([key(file_id)])).get(key(file_id))
        return None if content is None else (stored, content)

    async def get_stored(self, owner: str, file_id: str) -> StoredFile | None:
        """Return a file of an owner without its bytes."""
        rows = await self._engine.read(_ONE, (key(file_id), key(owner)))
        if not rows:
            return None
        media_type, name, size = rows[0]
        return StoredFile(file_id=file_id, media_type=_text(media_type), name=_text(name), size=size)

    async def size_of(self, owner: str) -> int:
        return int((await self._engine.read(_SIZE, (key(owner),)))[0][0])

    async def detached(self, operations: Sequence[Op], uses: Sequence[FileUse]) -> list[Op]:
        """Keep large data of some operations as files, and return all operations with references to them.

        What its owner has no room for stays in its record: no turn fails because of that.
        """
        found = await off_loop(self._take_out, operations, uses)
        kept = {
            owner: await self._fits(owner, {i: new for i, new in found.new.items() if new.owner == owner})
            for owner in {new.owner for new in found.new.values()}
        }
        changed = list(operations)
        for use, (position, detached) in zip(uses, found.records, strict=True):
            if detached.files and kept[use.owner]:
                changed[use.operation] = _with(operations[use.operation], position, detached.data)
                changed += [_used(file_id, use, self._clock.now()) for file_id in detached.files]
        # In one order, so that two processes never wait for each other.
        for file_id, new in sorted(found.new.items()):
            if kept[new.owner] and await self._write(file_id, new):
                changed.append(self._completed(file_id))
        return changed

    def _take_out(self, operations: Sequence[Op], uses: Sequence[FileUse]) -> "_Found":
        records: list[tuple[int, Detached]] = []
        new: dict[str, _New] = {}
        for use in uses:
            row = _row_of(operations[use.operation])
            position = next(number for number, value in enumerate(row) if is_large(value))
            detached = detach(row[position], use.owner, self._limits.max_file_bytes)
            records.append((position, detached))
            for file_id, (media_type, content) in detached.files.items():
                new.setdefault(file_id, _New(use.owner, media_type, content))
        return _Found(records, new)

    async def _fits(self, owner: str, new: Mapping[str, _New]) -> bool:
        """Tell whether an owner has room for files; those that are there already take none."""
        rows = await self._engine.read(_KNOWN.format(marks=_marks(list(new))), (owner, *new))
        known = {file_id for (file_id,) in rows}
        more = sum(len(file.content) for file_id, file in new.items() if file_id not in known)
        if not more:
            return True
        return int((await self._engine.read(_SIZE, (owner,)))[0][0]) + more <= self._limits.max_owner_bytes

    async def _write(self, file_id: str, new: _New) -> bool:
        """Write the chunks of a file, and tell whether it is still to be completed; from here on it is not old."""
        row = (file_id, new.owner, as_bytes(new.media_type), as_bytes(new.name), len(new.content), self._clock.now())
        ((complete,),) = (await self._engine.write([Do(_BEGIN, row, answers=True)]))[0]
        if complete:
            return False
        chunks: list[Op] = [
            Put(tables.FILE_CHUNKS, (file_id, number, new.content[start : start + CHUNK]))
            for number, start in enumerate(range(0, len(new.content), CHUNK))
        ]
        for start in range(0, len(chunks), _AT_ONCE):
            await self._engine.write(chunks[start : start + _AT_ONCE])
        return True

    def _completed(self, file_id: str) -> Do:
        return Do("UPDATE files SET complete = 1, touched_at = ? WHERE file_id = ?", (self._clock.now(), file_id))


class _Found(NamedTuple):
    records: list[tuple[int, Detached]]
    """For each use the position of its record in the operation, and what is left of it."""
    new: dict[str, _New]


def is_large(value: Any) -> bool:
    """Tell whether a value is a record that may have large data."""
    return type(value) is bytes and may_have_files(value)


def _row_of(operation: Op) -> Row:
    if isinstance(operation, Put):
        return operation.row
    return () if isinstance(operation, Fence) else operation.values


def has_large(operation: Op) -> bool:
    """Tell whether an operation writes a record that may have large data."""
    return any(map(is_large, _row_of(operation)))


def _with(operation: Op, position: int, data: bytes) -> Op:
    row = list(_row_of(operation))
    row[position : position + 1] = [data]
    if isinstance(operation, Put):
        return Put(operation.table, tuple(row))
    if isinstance(operation, Do):
        return Do(operation.sql, tuple(row), operation.refusal, operation.answers)
    return operation


def _used(file_id: str, use: FileUse, now: float) -> Put:
    return Put(tables.FILE_USES, (file_id, use.kind, use.place, use.of, now))


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" for _ in values)


def _text(data: bytes) -> str:
    return bytes(data).decode("utf-8", "surrogatepass")
