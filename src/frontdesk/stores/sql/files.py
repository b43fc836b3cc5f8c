"""Files in SQL, and the extraction of large data from records into files.

A file is written before the transaction that uses it, in chunks with a transaction each, so that no large transaction
blocks others. Its row is marked as incomplete until the transaction that uses it. Files that a crash leaves incomplete
are dropped when they are old.
"""

import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from frontdesk.clock import Clock
from frontdesk.concurrency.offload import off_loop, run_sized
from frontdesk.errors import FilesFullError, FileTooLargeError, UnreadableRecordError, VisitorFilesFullError
from frontdesk.loggers import store as log
from frontdesk.models.file import SCHEME, FileLimits, StoredFile, compute_file_id
from frontdesk.serialization.codec import VERSION
from frontdesk.stores.sql import tables
from frontdesk.stores.sql.tables import as_bytes, key
from frontdesk.stores.sql.writes import Do, Engine, Fence, Op, Put, Row

MIN_FILE_LENGTH = 8 * 1024
"""The number of characters of base64 from which on data is kept as a file."""
WITH_FILES = 2
"""The format version of a record with files."""
_START, _SIGN, _QUOTE = b'"data:', b";base64,", b'"'
_PLAIN_HEAD = f'{{"v":{VERSION},"data":'.encode()
_HEAD = f'{{"v":{WITH_FILES},"files":'.encode()
_MAX_TYPE_LENGTH = 255
_TYPE = rb"[!#-\[\]-~]{0,%d}+" % _MAX_TYPE_LENGTH
_MEDIA_TYPE = re.compile(_TYPE)
_REFERENCE = re.compile(rb'"%b([0-9a-f]{64});(%b)"' % (SCHEME.encode(), _TYPE))
# The interpreter is held during a call of the C library, and the event loop must get its turn in between.
_SLICE_LENGTH = 3 * 4 * 64 * 1024


class Detached(NamedTuple):
    """A record without its large data, and the files by id: media type and bytes."""

    data: bytes
    files: Mapping[str, tuple[str, bytes]]


def may_have_files(data: bytes) -> bool:
    """Return True if a record may contain large data. Nearly always False, at the cost of one comparison."""
    return len(data) > MIN_FILE_LENGTH and _SIGN in data


def detach(data: bytes, owner: str, longest: int) -> Detached:
    """Replace large data in a record by references. Data over `longest` bytes stays."""
    files: dict[str, tuple[str, bytes]] = {}
    pieces: list[bytes] = []
    if not data.startswith(_PLAIN_HEAD):
        return Detached(data, files)
    done = at = len(_PLAIN_HEAD)
    while (at := data.find(_START, at)) >= 0:
        end = data.find(_QUOTE, at + len(_START))
        found = None if end < 0 else _content(data, at + len(_START), end, longest)
        if found is not None:
            media_type, content = found
            file_id = compute_file_id(owner, content)
            files[file_id] = (media_type.decode("ascii"), content)
            pieces += [data[done:at], b'"%b%b;%b' % (SCHEME.encode(), file_id.encode(), media_type)]
            done = end
        at = max(end, at + 1)
    if not files:
        return Detached(data, files)
    head = b'%b%b,"data":' % (_HEAD, msgspec.json.encode(sorted(files)))
    return Detached(b"".join([head, *pieces, data[done:]]), files)


def _content(data: bytes, start: int, end: int, longest: int) -> tuple[bytes, bytes] | None:
    """Return media type and bytes of a `data:` URI, or `None` if it is small or cannot be restored exactly."""
    sign = data.find(_SIGN, start, min(end, start + _MAX_TYPE_LENGTH + len(_SIGN)))
    first = sign + len(_SIGN)
    if sign < 0 or end - first < MIN_FILE_LENGTH or (end - first) // 4 * 3 > longest + 2:
        return None
    media_type = data[start:sign]
    content = _decode(data[first:end]) if _MEDIA_TYPE.fullmatch(media_type) else None
    return None if content is None or len(content) > longest else (media_type, content)


def _decode(text: bytes) -> bytes | None:
    """Return the bytes of base64, or `None` if they would not encode to the same text."""
    if len(text) % 4:
        return None
    slices = [text[start : start + _SLICE_LENGTH] for start in range(0, len(text), _SLICE_LENGTH)]
    try:
        content = [a2b_base64(piece, strict_mode=True) for piece in slices]
    except Base64Error:
        return None
    # Padding ends a text, and the bits behind the last byte must be zero.
    if any(piece.endswith(b"=") for piece in slices[:-1]) or _encode(content[-1]) != slices[-1]:
        return None
    return b"".join(content)


def _encode(content: bytes) -> bytes:
    pieces = [content[start : start + _SLICE_LENGTH] for start in range(0, len(content), _SLICE_LENGTH)]
    return b"".join(b2a_base64(piece, newline=False) for piece in pieces)


def has_files(data: bytes) -> bool:
    return data[: len(_HEAD)] == _HEAD


def files_in(data: bytes) -> list[str]:
    return _split(data)[0]


def references_in(data: bytes) -> list[str]:
    """Return the file id of each reference in a record. A file may be referenced several times."""
    ids, rest = _split(data)
    known = {file_id.encode(): file_id for file_id in ids}
    return [known[match[1]] for match in _REFERENCE.finditer(rest) if match[1] in known]


def attach(data: bytes, files: Mapping[str, bytes]) -> bytes:
    """Return a record with references replaced by their data. The data of a missing file is empty."""
    ids, rest = _split(data)
    known = {file_id.encode(): files.get(file_id, b"") for file_id in ids}

    def content(match: re.Match[bytes]) -> bytes:
        if match[1] not in known:
            return match[0]
        return b'"data:%b;base64,%b"' % (match[2], _encode(known[match[1]]))

    return _PLAIN_HEAD + _REFERENCE.sub(content, rest)


def without_contents(data: bytes) -> bytes:
    """Return a record that can be decoded without its files. The references stay in it."""
    return _PLAIN_HEAD + _split(data)[1] if has_files(data) else data


def _split(data: bytes) -> tuple[list[str], bytes]:
    end = data.find(b'],"data":', len(_HEAD))
    if end < 0:
        raise UnreadableRecordError("the record has files but no `data`")
    try:
        ids = msgspec.json.decode(data[len(_HEAD) : end + 1], type=list[str])
    except msgspec.DecodeError as error:
        raise UnreadableRecordError("the files of the record are malformed") from error
    return ids, data[end + len(b'],"data":') :]


SIZE = "SELECT COALESCE(SUM(size), 0) FROM files WHERE owner = ?"
_VISITORS = "SELECT COALESCE(SUM(size), 0) FROM files WHERE visitor = 1"
_SHARE_BETWEEN_LOOKS = 20
"""The part of the visitors' bytes after which the other hosts' files are counted again, as one in so many."""
_LOOK_SECONDS = 1.0
"""The time between two looks at the store while there is no room."""


class FileQuota:
    """Accounts for the bytes of files, including those being written.

    The total of all visitors is read from the store only occasionally. Several hosts together may therefore exceed the
    limit, each by a twentieth.
    """

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._writing: Counter[str] = Counter()
        """The bytes that are being written, by owner."""
        self._visitors_writing = 0
        self._visitors: int | None = None
        """The bytes of all visitors, as the store had them at the last look; none before the first."""
        self._added = 0
        """The bytes of visitors that were written here since, or were being written then."""
        self._looked_at = 0.0

    @asynccontextmanager
    async def reserve(self, limits: FileLimits, owner: str, size: int, *, visitor: bool) -> AsyncGenerator[None]:
        """Reserve space for a new file while it is written. Raise `FilesFullError` if there is none."""
        most = min(limits.max_owner_bytes, limits.max_visitor_bytes) if visitor else limits.max_owner_bytes
        stored = int((await self._engine.read(SIZE, (owner,)))[0][0])
        if stored + self._writing[owner] + size > most:
            raise FilesFullError(most)
        # From here on no other task decides before the bytes are counted.
        self._writing[owner] += size
        try:
            if not visitor:
                yield
                return
            await self._count_visitors(size, limits.max_visitors_bytes)
            try:
                yield
            finally:
                self._visitors_writing -= size
        finally:
            self._writing[owner] -= size
            if not self._writing[owner]:
                del self._writing[owner]

    async def _count_visitors(self, size: int, most: int) -> None:
        if self._is_stale(size, most):
            self._looked_at = self._clock.now()
            found = int((await self._engine.read(_VISITORS))[0][0])
            self._visitors, self._added = found, self._visitors_writing
        if (self._visitors or 0) + self._added + size > most:
            raise VisitorFilesFullError(most)
        self._added += size
        self._visitors_writing += size

    def _is_stale(self, size: int, most: int) -> bool:
        if self._visitors is None:
            return True
        if self._visitors + self._added + size > most:
            return abs(self._clock.now() - self._looked_at) >= _LOOK_SECONDS
        return self._added - self._visitors_writing > most // _SHARE_BETWEEN_LOOKS


CHUNK_BYTES = 256 * 1024
"""The bytes in a row."""
_CHUNKS_PER_TRANSACTION = 4
"""The number of chunks in a transaction."""
_MAX_QUERIED = 200
_BEGIN = (
    "INSERT INTO files (file_id, owner, media_type, name, size, complete, touched_at, visitor) "
    "VALUES (?, ?, ?, ?, ?, 0, ?, ?) "
    "ON CONFLICT (file_id) DO UPDATE SET touched_at = excluded.touched_at RETURNING complete"
)
_KNOWN = "SELECT file_id FROM files WHERE owner = ? AND complete = 1 AND file_id IN ({marks})"
_CHUNKS = (
    "SELECT files.file_id, files.size, file_chunks.data FROM files "
    "LEFT JOIN file_chunks ON file_chunks.file_id = files.file_id "
    "WHERE files.file_id IN ({marks}) ORDER BY files.file_id, file_chunks.number"
)
_ONE = "SELECT media_type, name, size FROM files WHERE file_id = ? AND owner = ? AND complete = 1"


class FileUse(NamedTuple):
    """A record that may have large data: its operation's number, and its name in the file uses."""

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
    visitor: bool = False


class FileContents:
    """Reads the bytes of files, and restores them in records."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def attach(self, records: Sequence[bytes]) -> list[bytes]:
        """Return records with their detached data, using one query for all."""
        wanted = sorted({file_id for data in records if has_files(data) for file_id in files_in(data)})
        if not wanted:
            return list(records)
        contents = await self.read(wanted)
        for file_id in wanted:
            if file_id not in contents:
                log.error("file missing, returning an empty one in the record: file_id=%s", file_id)
        return await run_sized(
            sum(map(len, contents.values())),
            lambda: [attach(data, contents) if has_files(data) else data for data in records],
        )

    async def read(self, file_ids: Sequence[str]) -> dict[str, bytes]:
        """Return the contents of files by id, without incomplete files."""
        chunks: dict[str, list[bytes]] = {}
        sizes: dict[str, int] = {}
        for start in range(0, len(file_ids), _MAX_QUERIED):
            asked = file_ids[start : start + _MAX_QUERIED]
            for file_id, size, data in await self._engine.read(_CHUNKS.format(marks=_marks(asked)), tuple(asked)):
                sizes[file_id] = size
                chunks.setdefault(file_id, []).append(b"" if data is None else bytes(data))
        contents = {file_id: b"".join(some) for file_id, some in chunks.items()}
        return {file_id: content for file_id, content in contents.items() if len(content) == sizes[file_id]}


class SqlFiles:
    def __init__(self, engine: Engine, clock: Clock, limits: FileLimits) -> None:
        self._engine = engine
        self._clock = clock
        self._limits = limits
        self._contents = FileContents(engine)
        self._room = FileQuota(engine, clock)

    async def put(
        self, owner: str, data: bytes, *, media_type: str, name: str = "", visitor: bool = False
    ) -> StoredFile:
        if len(data) > self._limits.max_file_bytes:
            raise FileTooLargeError(self._limits.max_file_bytes)
        file_id = await run_sized(len(data), compute_file_id, key(owner), data)
        new = _New(key(owner), media_type, data, name, visitor)
        if await self._engine.read(_KNOWN.format(marks="?"), (key(owner), file_id)):
            if await self._write(file_id, new):
                # It was dropped since the look.
                await self._engine.write([self._complete(file_id)])
        else:
            async with self._room.reserve(self._limits, key(owner), len(data), visitor=visitor):
                if await self._write(file_id, new):
                    await self._engine.write([self._complete(file_id)])
        stored = await self.get_stored(owner, file_id)
        return stored or StoredFile(file_id=file_id, media_type=media_type, name=name, size=len(data))

    async def get(self, owner: str, file_id: str) -> tuple[StoredFile, bytes] | None:
        stored = await self.get_stored(owner, file_id)
        if stored is None:
            return None
        content = (await self._contents.read([key(file_id)])).get(key(file_id))
        return None if content is None else (stored, content)

    async def get_stored(self, owner: str, file_id: str) -> StoredFile | None:
        """Return a file's metadata without its bytes."""
        rows = await self._engine.read(_ONE, (key(file_id), key(owner)))
        if not rows:
            return None
        media_type, name, size = rows[0]
        return StoredFile(file_id=file_id, media_type=_text(media_type), name=_text(name), size=size)

    async def get_size(self, owner: str) -> int:
        return int((await self._engine.read(SIZE, (key(owner),)))[0][0])

    async def detach(self, operations: Sequence[Op], uses: Sequence[FileUse]) -> list[Op]:
        """Move large data of some operations to files. Return all operations, with references to them.

        Data beyond the owner's file limit stays in its record, so that no turn fails because of it.
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
                changed.append(self._complete(file_id))
        return changed

    def _take_out(self, operations: Sequence[Op], uses: Sequence[FileUse]) -> "_Found":
        records: list[tuple[int, Detached]] = []
        new: dict[str, _New] = {}
        for use in uses:
            row = _build_row(operations[use.operation])
            position = next(number for number, value in enumerate(row) if is_large(value))
            detached = detach(row[position], use.owner, self._limits.max_file_bytes)
            records.append((position, detached))
            for file_id, (media_type, content) in detached.files.items():
                new.setdefault(file_id, _New(use.owner, media_type, content))
        return _Found(records, new)

    async def _fits(self, owner: str, new: Mapping[str, _New]) -> bool:
        """Return True if an owner has space for files. Files that already exist take none."""
        rows = await self._engine.read(_KNOWN.format(marks=_marks(list(new))), (owner, *new))
        known = {file_id for (file_id,) in rows}
        more = sum(len(file.content) for file_id, file in new.items() if file_id not in known)
        if not more:
            return True
        return int((await self._engine.read(SIZE, (owner,)))[0][0]) + more <= self._limits.max_owner_bytes

    async def _write(self, file_id: str, new: _New) -> bool:
        """Write the chunks of a file and reset its age. Return True if it must still be completed."""
        row = (file_id, new.owner, as_bytes(new.media_type), as_bytes(new.name), len(new.content), self._clock.now())
        ((complete,),) = (await self._engine.write([Do(_BEGIN, (*row, int(new.visitor)), answers=True)]))[0]
        if complete:
            return False
        chunks: list[Op] = [
            Put(tables.FILE_CHUNKS, (file_id, number, new.content[start : start + CHUNK_BYTES]))
            for number, start in enumerate(range(0, len(new.content), CHUNK_BYTES))
        ]
        for start in range(0, len(chunks), _CHUNKS_PER_TRANSACTION):
            await self._engine.write(chunks[start : start + _CHUNKS_PER_TRANSACTION])
        return True

    def _complete(self, file_id: str) -> Do:
        return Do("UPDATE files SET complete = 1, touched_at = ? WHERE file_id = ?", (self._clock.now(), file_id))


class _Found(NamedTuple):
    records: list[tuple[int, Detached]]
    """For each use the position of its record in the operation, and what is left of it."""
    new: dict[str, _New]


def is_large(value: Any) -> bool:
    return type(value) is bytes and may_have_files(value)


def _build_row(operation: Op) -> Row:
    if isinstance(operation, Put):
        return operation.row
    return () if isinstance(operation, Fence) else operation.values


def has_large(operation: Op) -> bool:
    """Return True if an operation writes a record that may have large data."""
    return any(map(is_large, _build_row(operation)))


def _with(operation: Op, position: int, data: bytes) -> Op:
    row = list(_build_row(operation))
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
