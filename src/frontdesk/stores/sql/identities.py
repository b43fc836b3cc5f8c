"""Identities in SQL, with a cache of recent lookups."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

from frontdesk.clock import Clock
from frontdesk.models.approval import claim_keys
from frontdesk.models.identity import ChannelIdentity, IdentityRecord, LastSeen, Reach
from frontdesk.models.link import Grant, LinkRecord
from frontdesk.serialization.codec import encode
from frontdesk.stores.sql.records import Place, Records
from frontdesk.stores.sql.tables import key
from frontdesk.stores.sql.writes import Do, Engine, Rows

MAX_CACHED_IDENTITIES = 10_000
_LINK = "SELECT channel, native_id, data FROM links"
_FIRST = (
    "INSERT INTO identities (channel, native_id, isolation_key, version, data, seen_at) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (channel, native_id) DO UPDATE SET seen_at = excluded.seen_at"
)
_FIND = "SELECT data, seen_at FROM identities WHERE channel = ? AND native_id = ?"
_REACH = "SELECT reference, push_group FROM identities WHERE channel = ? AND native_id = ?"
_SEEN = "UPDATE identities SET seen_at = ? WHERE channel = ? AND native_id = ? RETURNING 1"
T = TypeVar("T")


class IdentityCache(Generic[T]):
    """A bounded cache of values by identity. Entries expire if another process may change the value."""

    def __init__(self, clock: Clock, fresh_for: float | None) -> None:
        self._clock = clock
        self._fresh_for = fresh_for
        self.kept: OrderedDict[tuple[str, str], tuple[float, T]] = OrderedDict()
        self.changes = 0

    def get(self, identity: ChannelIdentity) -> tuple[float, T] | None:
        """Return the lookup time, by the steady clock, and the value, or `None` if a lookup is needed."""
        entry = self.kept.get(identity.key)
        if entry is not None and (self._fresh_for is None or self._clock.steady() - entry[0] < self._fresh_for):
            return entry
        return None

    def put(self, identity: ChannelIdentity, at: float, changes: int, value: T) -> None:
        """Cache a value, unless anything changed during the lookup, or a later lookup ended first."""
        entry = self.kept.get(identity.key)
        if changes != self.changes:
            # What is kept may be older than what was read now.
            self.kept.pop(identity.key, None)
        elif entry is None or entry[0] <= at:
            self.kept[identity.key] = (at, value)
            if len(self.kept) > MAX_CACHED_IDENTITIES:
                self.kept.popitem(last=False)

    def forget(self, identity: ChannelIdentity) -> None:
        self.changes += 1
        self.kept.pop(identity.key, None)


class SqlIdentities:
    def __init__(
        self,
        engine: Engine,
        records: Records,
        clock: Clock,
        *,
        fresh_for: float | None,
        seen_every: float | None = None,
    ) -> None:
        """Cache an identity for `fresh_for` seconds, or without expiry if `None`: no other process changes it.

        `seen_every` is the interval for writing the time of the last use, or `None` if it is not needed.
        """
        self._engine = engine
        self._records = records
        self._clock = clock
        self._seen_every = seen_every
        # A cached identity is used without a look at the row, and a row that is not looked at for long is dropped.
        cached_for = seen_every if fresh_for is None else fresh_for
        self._known: IdentityCache[IdentityRecord] = IdentityCache(clock, cached_for)
        self._reach: IdentityCache[Reach] = IdentityCache(clock, cached_for)
        self._links: IdentityCache[LinkRecord | None] = IdentityCache(clock, fresh_for)

    async def find(self, identity: ChannelIdentity, *, fresh: bool = False) -> IdentityRecord | None:
        cached = None if fresh else self._known.get(identity)
        if cached is not None:
            return cached[1]
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
        """Write the time of use, unless it was written recently. Return True if the identity still exists."""
        every = self._seen_every
        if every is None or (seen_at is not None and now - seen_at < every):
            return True
        # Before the identity is used, so that it is not dropped meanwhile.
        seen = Do(_SEEN, (now, *place), answers=True)
        return bool((await self._engine.write([seen]))[0])

    async def reach(self, identity: ChannelIdentity) -> Reach:
        cached = self._reach.get(identity)
        if cached is not None:
            return cached[1]
        changes, asked_at = self._reach.changes, self._clock.steady()
        place = (key(identity.channel), key(identity.native_id))
        rows = await self._engine.read(_REACH, place)
        where: Place = ("identities", ("channel", "native_id"), place)
        reference, group = (self._records.read_column(where, column) for column in (rows[0] if rows else (None, None)))
        reach = Reach(reference=reference or {}, group=group)
        self._reach.put(identity, asked_at, changes, reach)
        return reach

    def forget(self, identity: ChannelIdentity) -> None:
        """Drop the cached values of an identity after a change to it or to its link."""
        self._known.forget(identity)
        self._reach.forget(identity)
        self._links.forget(identity)

    async def remember(self, record: IdentityRecord) -> IdentityRecord:
        identity = record.identity
        place = (key(identity.channel), key(identity.native_id))
        answers = await self._engine.write(
            [
                Do(
                    _FIRST,
                    (*place, key(record.isolation_key), record.version, encode(record), self._clock.now()),
                ),
                Do(_FIND, place, answers=True),
            ]
        )
        where: Place = ("identities", ("channel", "native_id"), place)
        # A broken record is set aside, so that the new one can take its place.
        return await self._records.read("identities", where, answers[0][0][0]) or await self.remember(record)

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

    async def link(self, identity: ChannelIdentity, *, fresh: bool = False) -> LinkRecord | None:
        cached = None if fresh else self._links.get(identity)
        if cached is not None:
            return cached[1]
        changes, asked_at = self._links.changes, self._clock.steady()
        place = (key(identity.channel), key(identity.native_id))
        links = await self._read(f"{_LINK} WHERE channel = ? AND native_id = ?", place)
        link = links[0] if links else None
        # Its absence is cached too: every request of an identity that is not linked asks for it.
        self._links.put(identity, asked_at, changes, link)
        return link

    async def linked_as(self, subject: str) -> LinkRecord | None:
        links = await self._read(
            f"{_LINK} WHERE subject = ? ORDER BY linked_at, channel, native_id LIMIT 1", (key(subject),)
        )
        return links[0] if links else None

    async def holders(self, claims: Sequence[str], *, channels: Sequence[str], limit: int) -> Sequence[LinkRecord]:
        if not claims or not channels:
            return ()
        some, there = (", ".join("?" * len(names)) for names in (claims, channels))
        return await self._read(
            # Found by the claim and the channel first: everybody else's link is not looked at.
            "SELECT links.channel, links.native_id, links.data FROM (SELECT DISTINCT channel, native_id "
            f"FROM link_claims WHERE claim IN ({some}) AND channel IN ({there}) "
            "ORDER BY channel, native_id LIMIT ?) holding CROSS JOIN links "
            "WHERE links.channel = holding.channel AND links.native_id = holding.native_id "
            "ORDER BY links.channel, links.native_id",
            (*map(key, claims), *map(key, channels), limit),
        )

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
        # An expired grant may not have been dropped yet.
        still = (*place, self._clock.now())
        rows = await self._engine.read("SELECT data FROM grants WHERE grant_id = ? AND expires_at > ?", still)
        return None if not rows else await self._records.read("grants", ("grants", ("grant_id",), place), rows[0][0])

    async def secret(self, name: str, new: bytes) -> bytes:
        answers = await self._engine.write(
            [
                Do("INSERT INTO secrets (name, data) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", (key(name), new)),
                Do("SELECT data FROM secrets WHERE name = ?", (key(name),), answers=True),
            ]
        )
        return bytes(answers[0][0][0])


def insert_claims(link: LinkRecord) -> Iterator[Do]:
    """Insert the lookup claims of a link, replacing those of an earlier link of the identity."""
    place = (key(link.identity.channel), key(link.identity.native_id))
    yield delete_claims(link.identity)
    for claim in claim_keys(link.claims):
        yield Do(
            "INSERT INTO link_claims (claim, channel, native_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (key(claim), *place),
        )


def delete_claims(identity: ChannelIdentity) -> Do:
    place = (key(identity.channel), key(identity.native_id))
    return Do("DELETE FROM link_claims WHERE channel = ? AND native_id = ?", place)
