"""The drawer of identities, with the last ones looked up kept in memory."""

from collections import OrderedDict
from collections.abc import Sequence

from frontdesk.clock import Clock
from frontdesk.data.codec import encode
from frontdesk.data.identity import ChannelIdentity, IdentityRecord, LastSeen
from frontdesk.data.link import Grant, LinkRecord
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.records import Place, Records
from frontdesk.stores.sql.tables import key
from frontdesk.stores.sql.writes import Do

KEPT = 10_000


class SqlIdentities:
    """Who was issued which isolation key, and where they were last seen."""

    def __init__(self, engine: Engine, records: Records, clock: Clock, *, fresh_for: float | None) -> None:
        """`fresh_for` is how long an identity that was looked up counts as known; `None` if nobody else changes it."""
        self._engine = engine
        self._records = records
        self._clock = clock
        self._fresh_for = fresh_for
        self._known: OrderedDict[tuple[str, str], tuple[float, IdentityRecord]] = OrderedDict()
        self._changes = 0

    async def find(self, identity: ChannelIdentity) -> IdentityRecord | None:
        known = self._known.get(identity.key)
        if known is not None and (self._fresh_for is None or self._clock.now() - known[0] < self._fresh_for):
            return known[1]
        changes, now = self._changes, self._clock.now()
        place = (key(identity.channel), key(identity.native_id))
        rows = await self._engine.read("SELECT data FROM identities WHERE channel = ? AND native_id = ?", place)
        if not rows:
            return None
        where: Place = ("identities", ("channel", "native_id"), place)
        record: IdentityRecord | None = await self._records.read("identities", where, rows[0][0])
        if record is not None and changes == self._changes:
            self._known[identity.key] = (now, record)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        return record

    def forget(self, identity: ChannelIdentity) -> None:
        """What was known of an identity has changed."""
        self._changes += 1
        self._known.pop(identity.key, None)

    async def remember(self, record: IdentityRecord) -> IdentityRecord:
        identity = record.identity
        place = (key(identity.channel), key(identity.native_id))
        found = await self._engine.write(
            [
                Do(
                    "INSERT INTO identities (channel, native_id, isolation_key, data) VALUES (?, ?, ?, ?) "
                    "ON CONFLICT (channel, native_id) DO NOTHING",
                    (*place, key(record.isolation_key), encode(record)),
                ),
                Do("SELECT data FROM identities WHERE channel = ? AND native_id = ?", place, answers=True),
            ]
        )
        where: Place = ("identities", ("channel", "native_id"), place)
        # One that can't be read is put aside, and there is room for this one.
        return await self._records.read("identities", where, found[0][0][0]) or await self.remember(record)

    async def of_owner(self, isolation_key: str) -> Sequence[ChannelIdentity]:
        rows = await self._engine.read(
            "SELECT channel, native_id, data FROM identities WHERE isolation_key = ?", (key(isolation_key),)
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
        rows = await self._engine.read(
            "SELECT channel, native_id, data FROM links WHERE isolation_key = ?", (key(isolation_key),)
        )
        columns = ("isolation_key", "channel", "native_id")
        places: list[tuple[Place, bytes]] = [
            (("links", columns, (key(isolation_key), channel, native_id)), data) for channel, native_id, data in rows
        ]
        return await self._records.read_all("links", places)

    async def grant(self, grant_id: str) -> Grant | None:
        place = (key(grant_id),)
        # It may have ended, and wait to be dropped.
        still = (*place, self._clock.now())
        rows = await self._engine.read("SELECT data FROM grants WHERE grant_id = ? AND expires_at > ?", still)
        return None if not rows else await self._records.read("grants", ("grants", ("grant_id",), place), rows[0][0])
