"""Records as they are stored, and what happens to one that can't be read."""

from collections.abc import Callable, Sequence
from typing import Any

from frontdesk.clock import Clock
from frontdesk.data.codec import decode
from frontdesk.errors import CodecError, UnknownVersionError
from frontdesk.kit.large import LARGE, off_loop, run_sized
from frontdesk.loggers import store as log
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.writes import Do


class Records:
    """Reads records; one that is broken is put aside, so that the host goes on without it."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self.set_aside = 0

    def now(self) -> float:
        """What time it is."""
        return self._clock.now()

    async def read(self, kind: str, place: "Place", data: bytes, *, also: Sequence[Do] = ()) -> Any:
        """The value of a record, or `None` if it can't be read; `also` is what has to be done with it then."""
        try:
            return await run_sized(len(data), decode, data)
        except UnknownVersionError:
            # A newer version wrote it and can read it.
            raise
        except CodecError as error:
            await self._put_aside(kind, place, data, error, also)
            return None

    async def read_all(self, kind: str, found: Sequence[tuple["Place", bytes]]) -> list[Any]:
        """The values of many records, without those that can't be read."""
        values = [await self.read(kind, place, data) for place, data in found]
        return [value for value in values if value is not None]

    async def read_large(self, kind: str, found: Sequence[tuple["Place", bytes]]) -> list[Any]:
        """The same, away from the event loop if there is much to read."""
        size = sum(len(data) for _, data in found)
        if size <= LARGE:
            return await self.read_all(kind, found)
        decoded = await off_loop(lambda: [_try(decode, data) for _, data in found])
        values = [
            value if not isinstance(value, CodecError) else await self.read(kind, place, data)
            for value, (place, data) in zip(decoded, found, strict=True)
        ]
        return [value for value in values if value is not None]

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


Place = tuple[str, Sequence[str], Sequence[Any]]
"""Where a record lies: the table, the columns that find it, and their values."""


def _try(read: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return read(data)
    except CodecError as error:
        return error
