"""Records as they are stored, and what happens to one that can't be read.

One that no version can read is broken, and is put aside. One that a newer version may read is left where it is: whoever
needs it is told so, and whoever takes up work leaves it to a process that knows it.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Any

from frontdesk.clock import Clock
from frontdesk.data.codec import decode
from frontdesk.errors import BrokenRecordError, CodecError, UnreadableRecordError
from frontdesk.kit.aio.large import LARGE, off_loop
from frontdesk.loggers import store as log
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.writes import Do

_MOST_KNOWN = 10_000
"""How many records are known to be unreadable; one that was forgotten is counted again."""
_MOST_LEFT_ALONE = 1000


class Records:
    """Reads records; one that is broken is put aside, so that the host goes on without it."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self.set_aside = 0
        self.unreadable = 0
        self._left: OrderedDict[tuple[str, tuple[Any, ...]], None] = OrderedDict()

    def now(self) -> float:
        """What time it is."""
        return self._clock.now()

    async def read(self, kind: str, place: "Place", data: bytes, *, also: Sequence[Do] = ()) -> Any:
        """Return the value of a record, or `None` if it is broken; `also` is what has to be done with it then.

        A record that a newer version may read raises `UnreadableRecordError`, and stays where it is.
        """
        try:
            return decode(data) if len(data) <= LARGE else await off_loop(decode, data)
        except UnreadableRecordError as error:
            self.leave(place, error)
            raise
        except BrokenRecordError as error:
            await self._put_aside(kind, place, data, error, also)
            return None

    def read_column(self, place: "Place", data: bytes | None) -> Any:
        """Return the value of a column beside a record; `None` if there is none, or if it is broken.

        One that a newer version may read raises `UnreadableRecordError`.
        """
        if data is None:
            return None
        try:
            return decode(data)
        except UnreadableRecordError as error:
            self.leave(place, error)
            raise
        except BrokenRecordError as error:
            # It is written anew when there is something new to write, and the record beside it is good.
            log.error("a column of %s can't be read, and counts as empty: %s", place[0], error)
            return None

    def leave(self, place: "Place", error: UnreadableRecordError) -> None:
        """Count a record that a newer version may read, and log it once."""
        table, _, values = place
        name = (table, tuple(values))
        known = name in self._left
        self._left[name] = None
        self._left.move_to_end(name)
        if known:
            return
        self.unreadable += 1
        log.warning(
            "a record of %s is left to a newer version, because this one can't read it: %s", table, error.reason
        )
        if len(self._left) > _MOST_KNOWN:
            self._left.popitem(last=False)

    def known(self, place: "Place", word: str, words: Collection[str]) -> None:
        """Refuse a word of a column that only a newer version knows, as if it were in the record."""
        if word not in words:
            error = UnreadableRecordError(f"{word!r} is not one of {', '.join(words)}")
            self.leave(place, error)
            raise error

    async def read_all(self, kind: str, found: Sequence[tuple["Place", bytes]]) -> list[Any]:
        """The values of many records, without those that are broken."""
        values = [await self.read(kind, place, data) for place, data in found]
        return [value for value in values if value is not None]

    async def read_large(self, kind: str, found: Sequence[tuple["Place", bytes]]) -> list[Any]:
        """The same, away from the event loop if there is much to read."""
        return [value for value in await self.read_each(kind, found) if value is not None]

    async def read_each(self, kind: str, found: Sequence[tuple["Place", bytes]]) -> list[Any]:
        """The same, with `None` in the place of each that is broken."""
        size = sum(len(data) for _, data in found)
        if size <= LARGE:
            return [await self.read(kind, place, data) for place, data in found]
        decoded = await off_loop(lambda: [_try(decode, data) for _, data in found])
        return [
            value if not isinstance(value, CodecError) else await self.read(kind, place, data)
            for value, (place, data) in zip(decoded, found, strict=True)
        ]

    async def _put_aside(
        self, kind: str, place: "Place", data: bytes, error: CodecError, also: Sequence[Do] = ()
    ) -> None:
        table, columns, values = place
        # Only if it is still the same: another reader may have put it aside, and a good one may lie in its place.
        broken = f"FROM {table} WHERE {' AND '.join(f'{column} = ?' for column in (*columns, 'data'))}"
        found = (*values, data)
        why = (kind, repr(tuple(values)), self._clock.now(), repr(str(error)))
        moved = Do(
            f"INSERT INTO set_aside (kind, name, at, error, data) SELECT ?, ?, ?, ?, data {broken} RETURNING number",
            (*why, *found),
            answers=True,
        )
        if (await self._engine.write([moved, Do(f"DELETE {broken}", found), *also]))[0]:
            self.set_aside += 1
            log.error("a record of %s can't be read and was put aside: %s", kind, error)


class LeftAlone:
    """The rows of a table that this process can't read, now or ever: it need not take them up again."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._names: OrderedDict[Any, None] = OrderedDict()

    def add(self, name: Any) -> None:
        """Leave a row alone from now on."""
        self._names[name] = None
        if len(self._names) > _MOST_LEFT_ALONE:
            self._names.popitem(last=False)

    def condition(self) -> tuple[str, tuple[Any, ...]]:
        """Return what the other rows have in common, and its values."""
        if not self._names:
            return "", ()
        return f"AND {self._column} NOT IN ({', '.join('?' for _ in self._names)})", tuple(self._names)


Place = tuple[str, Sequence[str], Sequence[Any]]
"""Where a record lies: the table, the columns that find it, and their values."""


def _try(read: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return read(data)
    except CodecError as error:
        return error
