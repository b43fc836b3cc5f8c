"""Reads stored records, and handles unreadable ones.

A record that no version can read is broken, and is set aside. A record that a newer version may read is left unchanged.
Reading it raises an error, and dependent work is left to a process that can read it.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Any

from frontdesk.clock import Clock
from frontdesk.concurrency.offload import MIN_LARGE_BYTES, off_loop
from frontdesk.errors import BrokenRecordError, CodecError, UnreadableRecordError
from frontdesk.loggers import store as log
from frontdesk.serialization.codec import decode
from frontdesk.stores.sql.files import FileContents, has_files
from frontdesk.stores.sql.writes import Do, Engine

_MAX_KNOWN = 10_000
"""The number of unreadable records that are remembered; one that was forgotten is counted again."""
_MAX_IGNORED = 1000


class Records:
    """Reads records. A broken record is set aside, so that the host continues without it."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._contents = FileContents(engine)
        self.set_aside = 0
        self.unreadable = 0
        self._left: OrderedDict[tuple[str, tuple[Any, ...]], None] = OrderedDict()

    def now(self) -> float:
        return self._clock.now()

    async def read(self, kind: str, place: "Place", data: bytes, *, also: Sequence[Do] = ()) -> Any:
        """Return the value of a record, or `None` if it is broken. `also` are statements to run on its removal.

        Raise `UnreadableRecordError` for a record that a newer version may read. That record stays.
        """
        try:
            whole = (await self._contents.attach([data]))[0] if has_files(data) else data
            return decode(whole) if len(whole) <= MIN_LARGE_BYTES else await off_loop(decode, whole)
        except UnreadableRecordError as error:
            self.leave(place, error)
            raise
        except BrokenRecordError as error:
            await self._set_aside(kind, place, data, error, also)
            return None

    def read_column(self, place: "Place", data: bytes | None) -> Any:
        """Return the value of a column beside a record, or `None` if it is missing or broken.

        Raise `UnreadableRecordError` for a value that a newer version may read.
        """
        if data is None:
            return None
        try:
            return decode(data)
        except UnreadableRecordError as error:
            self.leave(place, error)
            raise
        except BrokenRecordError as error:
            # The next write replaces it, and the record beside it is good.
            log.error("column cannot be decoded, treating it as empty: table=%s: %s", place[0], error)
            return None

    def leave(self, place: "Place", error: UnreadableRecordError) -> None:
        """Count a record that a newer version may read, and log it once."""
        table, _, values = place
        name = (table, tuple(values))
        counted = name in self._left
        self._left[name] = None
        self._left.move_to_end(name)
        if counted:
            return
        self.unreadable += 1
        log.warning("record needs a newer version, skipping it: table=%s: %s", table, error.reason)
        if len(self._left) > _MAX_KNOWN:
            self._left.popitem(last=False)

    def require_known(self, place: "Place", word: str, words: Collection[str]) -> None:
        """Reject a column value that only a newer version knows, as `read` does for records."""
        if word not in words:
            error = UnreadableRecordError(f"{word!r} is not one of {', '.join(words)}")
            self.leave(place, error)
            raise error

    async def read_all(self, kind: str, records: Sequence[tuple["Place", bytes]]) -> list[Any]:
        values = [await self.read(kind, place, data) for place, data in records]
        return [value for value in values if value is not None]

    async def read_large(self, kind: str, records: Sequence[tuple["Place", bytes]]) -> list[Any]:
        """Return the same as `read_all`, decoded outside the event loop if the records are large."""
        return [value for value in await self.read_each(kind, records) if value is not None]

    async def read_each(self, kind: str, records: Sequence[tuple["Place", bytes]]) -> list[Any]:
        """Return the same as `read_large`, with `None` for each broken record."""
        records = await self.with_files(records)
        size = sum(len(data) for _, data in records)
        if size <= MIN_LARGE_BYTES:
            return [await self.read(kind, place, data) for place, data in records]
        decoded = await off_loop(lambda: [_try(decode, data) for _, data in records])
        return [
            value if not isinstance(value, CodecError) else await self.read(kind, place, data)
            for value, (place, data) in zip(decoded, records, strict=True)
        ]

    async def with_files(self, records: Sequence[tuple["Place", bytes]]) -> list[tuple["Place", bytes]]:
        """Return records with the large data that is stored apart from them."""
        if not any(has_files(data) for _, data in records):
            return list(records)
        whole = await self._contents.attach([data for _, data in records])
        return [(place, data) for (place, _), data in zip(records, whole, strict=True)]

    async def _set_aside(
        self, kind: str, place: "Place", data: bytes, error: CodecError, also: Sequence[Do] = ()
    ) -> None:
        table, columns, values = place
        # Only if it is unchanged: another reader may have set it aside, and a good record may have replaced it.
        broken = f"FROM {table} WHERE {' AND '.join(f'{column} = ?' for column in (*columns, 'data'))}"
        identified_by = (*values, data)
        why = (kind, repr(tuple(values)), self._clock.now(), repr(str(error)))
        moved = Do(
            f"INSERT INTO set_aside (kind, name, at, error, data) SELECT ?, ?, ?, ?, data {broken} RETURNING number",
            (*why, *identified_by),
            answers=True,
        )
        if (await self._engine.write([moved, Do(f"DELETE {broken}", identified_by), *also]))[0]:
            self.set_aside += 1
            log.error("record cannot be decoded, set aside: table=%s: %s", kind, error)


class LeftAlone:
    """The rows of a table that this process cannot read and does not claim again."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._names: OrderedDict[Any, None] = OrderedDict()

    def add(self, name: Any) -> None:
        self._names[name] = None
        if len(self._names) > _MAX_IGNORED:
            self._names.popitem(last=False)

    def condition(self) -> tuple[str, tuple[Any, ...]]:
        """Return a condition that excludes the rows, and its values."""
        if not self._names:
            return "", ()
        return f"AND {self._column} NOT IN ({', '.join('?' for _ in self._names)})", tuple(self._names)


Place = tuple[str, Sequence[str], Sequence[Any]]
"""The place of a record: its table, the columns that identify it, and their values."""


def _try(read: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return read(data)
    except CodecError as error:
        return error
