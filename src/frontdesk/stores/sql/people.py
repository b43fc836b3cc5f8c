"""The drawer of identities, with the last ones looked up kept in memory."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from frontdesk.clock import Clock
from frontdesk.data.codec import encode
from frontdesk.data.identity import ChannelIdentity, IdentityRecord, LastSeen, Reach
from frontdesk.data.link import Grant, LinkRecord
from frontdesk.stores.sql.engine import Engine, Rows
from frontdesk.stores.sql.records import Place, Records
from frontdesk.stores.sql.tables import key
from frontdesk.stores.sql.writes import Do

KEPT = 10_000
_LINK = "SELECT channel, native_id, data FROM links"
_FIRST = (
    "INSERT INTO identities (channel, native_id, isolation_key, version, data, seen_at) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (channel, native_id) DO UPDATE SET seen_at = excluded.seen_at"
)
_FIND = "SELECT data, seen_at FROM identities WHERE channel = ? AND native_id = ?"
_REACH = "SELECT reference, push_group FROM identities WHERE channel = ? AND native_id = ?"
_SEEN = "UPDATE identities SET seen_at = ? WHERE channel = ? AND native_id = ? RETURNING 1"
T = TypeVar("T")


class Known(Generic[T]):
    """What was looked up of identities, bounded, and fresh unless somebody else may have changed it since."""

    def __init__(self, clock: Clock, fresh_for: float | None) -> None:
        self._clock = clock
        self._fresh_for = fresh_for
        self.kept: OrderedDict[tuple[str, str], tuple[float, T]] = OrderedDict()
        self.changes = 0

    def get(self, identity: ChannelIdentity) -> tuple[float, T] | None:
        """Return when it was looked up, by the steady clock, and what was found; `None` if it has to be looked up."""
        known = self.kept.get(identity.key)
        if known is not None and (self._fresh_for is None or self._clock.steady() - known[0] < self._fresh_for):
            return known
        return None

    def put(self, identity: ChannelIdentity, at: float, changes: int, value: T) -> None:
        """Keeps what was found, unless something has changed while it was looked up."""
        if changes == self.changes:
            self.kept[identity.key] = (at, value)
            if len(self.kept) > KEPT:
                self.kept.popitem(last=False)

    def forget(self, identity: ChannelIdentity) -> None:
        """What was known of an identity has changed."""
        self.changes += 1
        self.kept.pop(identity.key, None)


class SqlIdentities:
    """Who was issued which isolation key, who was linked with whom, and where they were last seen."""

    def __init__(
        self,
        engine: Engine,
        records: Records,
        clock: Clock,
        *,
        fresh_for: float | None,
        seen_every: float | None = None,
    ) -> None:
        """`fresh_for` is how long an identity that was looked up counts as known; `None` if nobody else changes it.

        `seen_every` is after how long it is noted again that somebody was seen; `None` if that is not needed.
        """
        self._engine = engine
        self._records = records
        self._clock = clock
        self._seen_every = seen_every
        # What is known is used without a look at the row, which is dropped if nobody looks at it for long.
        self._known: Known[IdentityRecord] = Known(clock, seen_every if fresh_for is None else fresh_for)
        self._reach: Known[Reach] = Known(clock, seen_every if fresh_for is None else fresh_for)
        self._links: Known[LinkRecord | None] = Known(clock, fresh_for)

    async def find(self, identity: ChannelIdentity, *, fresh: bool = False) -> IdentityRecord | None:
        known = None if fresh else self._known.get(identity)
        if known is not None:
            return known[1]
        changes, asked_at = self._known.changes, self._clock.steady()
        place = (key(identity.channel), key(identity.native_id))
        rows = await self._engine.read(_FIND, place)
        if not rows or not await self._see(place, rows[0][1], self._clock.now()):
            return None
        where: Place = ("identities", ("channel", "native_id"), place)
        record: IdentityRecord | None = await self._records.read("identities", where, rows[0][0])
        if record is not None:
            self._known.put(identity, asked_at, changes, record)
        return record

    async def _see(self, place: tuple[str, str], seen_at: float | None, now: float) -> bool:
        """Note that somebody was seen, unless that was noted lately; tell whether they are still known."""
        every = self._seen_every
        if every is None or (seen_at is not None and now - seen_at < every):
            return True
        # Before anything is done for them, so that they are not forgotten meanwhile.
        seen = Do(_SEEN, (now, *place), answers=True)
        return bool((await self._engine.write([seen]))[0])

    async def reach(self, identity: ChannelIdentity) -> Reach:
        known = self._reach.get(identity)
        if known is not None:
            return known[1]
        changes, asked_at = self._reach.changes, self._clock.steady()
        place = (key(identity.channel), key(identity.native_id))
        rows = await self._engine.read(_REACH, place)
        where: Place = ("identities", ("channel", "native_id"), place)
        reference, group = (self._records.read_column(where, one) for one in (rows[0] if rows else (None, None)))
        reach = Reach(reference=reference or {}, group=group)
        self._reach.put(identity, asked_at, changes, reach)
        return reach

    def forget(self, identity: ChannelIdentity) -> None:
        """What was known of an identity, or of its link, has changed."""
        self._known.forget(identity)
        self._reach.forget(identity)
        self._links.forget(identity)

    async def remember(self, record: IdentityRecord) -> IdentityRecord:
        identity = record.identity
        place = (key(identity.channel), key(identity.native_id))
        found = await self._engine.write(
            [
                Do(
                    _FIRST,
                    (*place, key(record.isolation_key), record.version, encode(record), self._clock.now()),
                ),
                Do(_FIND, place, answers=True),
            ]
        )
        where: Place = ("identities", ("channel", "native_id"), place)
        # One that can't be read is put aside, and there is room for this one.
        return await self._records.read("identities", where, found[0][0][0]) or await self.remember(record)

    async def of_owner(self, isolation_key: str) -> Sequence[ChannelIdentity]:
        rows = await self._engine.read(
            "SELECT channel, native_id, data FROM identities WHERE isolation_key = ? ORDER BY channel, native_id",
            (key(isolation_key),),
        )
        places: list[tuple[Place, bytes]] = [
            (("identities", ("channel", "native_id"), (channel, native_id)), data) for channel, native_id, data in rows
        ]
        return [record.identity for record in await self._records.read_all("identities", places)]

    async def last_seen(self, isolation_key: str) -> LastSeen | None:
        place = (key(isolation_key),)
        rows = await self._engine.read("SELECT data FROM last_seen WHERE isolation_key = ?", place)
        if not rows:
            return None
        return await self._records.read("last_seen", ("last_seen", ("isolation_key",), place), rows[0][0])

    async def links(self, isolation_key: str) -> Sequence[LinkRecord]:
        return await self._read(f"{_LINK} WHERE isolation_key = ? ORDER BY channel, native_id", (key(isolation_key),))

    async def link(self, identity: ChannelIdentity) -> LinkRecord | None:
        known = self._links.get(identity)
        if known is not None:
            return known[1]
        changes, asked_at = self._links.changes, self._clock.steady()
        place = (key(identity.channel), key(identity.native_id))
        found = await self._read(f"{_LINK} WHERE channel = ? AND native_id = ?", place)
        link = found[0] if found else None
        # That there is none is kept too: it is asked for at every request of those who are not linked.
        self._links.put(identity, asked_at, changes, link)
        return link

    async def linked_as(self, subject: str) -> LinkRecord | None:
        found = await self._read(
            f"{_LINK} WHERE subject = ? ORDER BY linked_at, channel, native_id LIMIT 1", (key(subject),)
        )
        return found[0] if found else None

    async def all_links(self, *, after: ChannelIdentity | None = None, limit: int = 100) -> Sequence[LinkRecord]:
        if after is None:
            return await self._read(f"{_LINK} ORDER BY channel, native_id LIMIT ?", (limit,))
        place = (key(after.channel), key(after.native_id), limit)
        return await self._read(
            f"{_LINK} WHERE (channel, native_id) > (?, ?) ORDER BY channel, native_id LIMIT ?", place
        )

    async def _read(self, sql: str, values: Sequence[Any]) -> list[LinkRecord]:
        rows: Rows = await self._engine.read(sql, values)
        places: list[tuple[Place, bytes]] = [
            (("links", ("channel", "native_id"), (channel, native_id)), data) for channel, native_id, data in rows
        ]
        return await self._records.read_all("links", places)

    async def grant(self, grant_id: str) -> Grant | None:
        place = (key(grant_id),)
        # It may have ended, and wait to be dropped.
        still = (*place, self._clock.now())
        rows = await self._engine.read("SELECT data FROM grants WHERE grant_id = ? AND expires_at > ?", still)
        return None if not rows else await self._records.read("grants", ("grants", ("grant_id",), place), rows[0][0])

    async def secret(self, name: str, new: bytes) -> bytes:
        found = await self._engine.write(
            [
                Do("INSERT INTO secrets (name, data) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", (key(name), new)),
                Do("SELECT data FROM secrets WHERE name = ?", (key(name),), answers=True),
            ]
        )
        return bytes(found[0][0][0])
