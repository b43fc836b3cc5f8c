"""Channel values, conversations, aliases, leaderships and nonces in SQL."""

from collections.abc import Collection, Sequence
from typing import Any

from frontdesk.errors import StoreError
from frontdesk.interfaces.storage.pages import count_fitting
from frontdesk.interfaces.store_sessions import FREE_BYTES, Charge
from frontdesk.models.channel_storage import Leadership, SealedValue, ValueLocation
from frontdesk.models.conversation import AliasMerge, Conversation, ConversationAlias, ConversationItem
from frontdesk.models.live_message import LiveFence
from frontdesk.stores.sql import outbox
from frontdesk.stores.sql.background import LeaseSql
from frontdesk.stores.sql.history_sizes import READ_AHEAD_BYTES, estimate, estimate_stored, full_sizes
from frontdesk.stores.sql.records import Place, Records
from frontdesk.stores.sql.shared_leases import NOW
from frontdesk.stores.sql.tables import as_bytes, key, text
from frontdesk.stores.sql.writes import Do, Engine, Op, Rows

_HERE = "channel = ? AND storage = ? AND name = ?"
_LIVES = "(channel_values.expires_at IS NULL OR channel_values.expires_at > ?)"
_GET = f"SELECT version, key_id, data, expires_at FROM channel_values WHERE {_HERE} AND {_LIVES}"
_SET = (
    "INSERT INTO channel_values (version, key_id, data, expires_at, channel, storage, name) "
    "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (channel, storage, name) DO UPDATE SET version = excluded.version, "
    "key_id = excluded.key_id, data = excluded.data, expires_at = excluded.expires_at"
)
_IF_FREE = f"{_SET} WHERE NOT {_LIVES} RETURNING 1"
_IF_SAME = (
    "UPDATE channel_values SET version = ?, key_id = ?, data = ?, expires_at = ? "
    f"WHERE {_HERE} AND version = ? AND {_LIVES} RETURNING 1"
)


class SqlChannelValues:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def get(self, place: ValueLocation, *, now: float) -> SealedValue | None:
        rows = await self._engine.read(_GET, (*_keys(place), now))
        if not rows:
            return None
        version, key_id, data, expires_at = rows[0]
        return SealedValue(version=version, key_id=key_id, data=bytes(data), expires_at=expires_at)

    async def set(self, place: ValueLocation, value: SealedValue) -> None:
        await self._engine.write([Do(_SET, (*_columns(value), *_keys(place)))])

    async def compare_and_set(
        self,
        place: ValueLocation,
        expected_version: str | None,
        value: SealedValue,
        *,
        now: float,
        fence: LiveFence | None = None,
    ) -> bool:
        values = (*_columns(value), *_keys(place))
        if expected_version is None:
            write = Do(_IF_FREE, (*values, now), answers=True)
        else:
            write = Do(_IF_SAME, (*values, key(expected_version), now), answers=True)
        return bool((await self._engine.write([write] if fence is None else [outbox.require_live(fence), write]))[0])

    async def delete(self, place: ValueLocation) -> None:
        await self._engine.write([Do(f"DELETE FROM channel_values WHERE {_HERE}", _keys(place))])


def _columns(value: SealedValue) -> tuple[Any, ...]:
    return (value.version, value.key_id, value.data, value.expires_at)


def _keys(place: ValueLocation) -> tuple[str, str, str]:
    return (key(place.channel), key(place.storage), key(place.key))


_FIND = "SELECT first_name, current_name, next_name FROM conversation_aliases WHERE channel = ? AND name = ?"
_BEGIN = "INSERT INTO alias_versions (channel, version) VALUES (?, 1) ON CONFLICT (channel) DO NOTHING"
_COUNT = "UPDATE alias_versions SET version = version + 1 WHERE channel = ? AND version = ?"
_RENAME = "UPDATE conversation_aliases SET first_name = ?, current_name = ? WHERE channel = ? AND first_name = ?"
_PUT = (
    "INSERT INTO conversation_aliases (channel, name, first_name, current_name, next_name) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (channel, name) DO UPDATE SET next_name = COALESCE(excluded.next_name, conversation_aliases.next_name)"
)


class _ChangedError(StoreError):
    """The names were changed concurrently."""


class SqlConversationAliases:
    """Names by channel. Each row has the first and the current name."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def moved_on(self, channels: Collection[str]) -> Collection[str]:
        stored = {channel for (channel,) in await self._engine.read("SELECT channel FROM alias_versions")}
        return [channel for channel in channels if key(channel) in stored]

    async def find(self, channel: str, name: str) -> ConversationAlias | None:
        rows = await self._engine.read(_FIND, (key(channel), key(name)))
        if not rows:
            return None
        first, current, following = (text(value) for value in rows[0])
        return ConversationAlias(name=name, first_name=first or "", current_name=current or "", next_name=following)

    async def version(self, channel: str) -> int:
        rows = await self._engine.read("SELECT version FROM alias_versions WHERE channel = ?", (key(channel),))
        return int(rows[0][0]) if rows else 0

    async def merge(self, channel: str, merge: AliasMerge, *, version: int) -> bool:
        here, changed = key(channel), _ChangedError("the names were changed meanwhile")
        first, current = as_bytes(merge.first_name), as_bytes(merge.current_name)
        counted = Do(_COUNT, (here, version), changed) if version else Do(_BEGIN, (here,), changed)
        ops: list[Op] = [counted]
        for known in (merge.first_name, merge.merged_first_name):
            ops.append(Do(_RENAME, (first, current, here, as_bytes(known))))
        ops.append(Do(_PUT, (here, key(merge.old), first, current, as_bytes(merge.new))))
        ops.append(Do(_PUT, (here, key(merge.new), first, current, None)))
        try:
            await self._engine.write(ops)
        except _ChangedError:
            return False
        return True


_ITEMS = (
    "SELECT i.number, i.data FROM items i JOIN conversations c ON c.conversation_id = i.conversation_id "
    "WHERE i.conversation_id = ? AND c.owner = ?"
)
_LENGTHS = _ITEMS.replace("i.data", "LENGTH(i.data)")
_SIZED = """
SELECT i.number, LENGTH(i.data), CASE WHEN w.size <= ? THEN i.data END
FROM items i JOIN conversations c ON c.conversation_id = i.conversation_id
CROSS JOIN (SELECT COALESCE(SUM(LENGTH(data)), 0) AS size FROM items WHERE conversation_id = ? AND number > ?) w
WHERE i.conversation_id = ? AND c.owner = ? AND i.number > ? ORDER BY i.number
"""
_CHUNK = "SELECT data FROM items WHERE conversation_id = ? AND number > ? AND number <= ? ORDER BY number"


class SqlConversations:
    def __init__(self, engine: Engine, records: Records) -> None:
        self._engine = engine
        self._records = records

    async def get(self, owner: str, conversation_id: str) -> Conversation | None:
        place = (key(conversation_id), key(owner))
        rows = await self._engine.read("SELECT data FROM conversations WHERE conversation_id = ? AND owner = ?", place)
        if not rows:
            return None
        where: Place = ("conversations", ("conversation_id", "owner"), place)
        return await self._records.read("conversations", where, rows[0][0])

    async def items(
        self,
        owner: str,
        conversation_id: str,
        *,
        after: int = 0,
        limit: int = 100,
        descending: bool = False,
        charge: Charge | None = None,
        max_bytes: int | None = None,
    ) -> Sequence[ConversationItem]:
        place = (key(conversation_id), key(owner))
        if max_bytes is not None:
            return await self._read(await self._read_bounded(place, after, limit, descending, max_bytes))
        if charge is not None and (few := await self._charge_items(place, after, charge)) is not None:
            return await self._read(few[:limit])
        if descending:
            before = f"{_ITEMS} AND (? = 0 OR i.number < ?) ORDER BY i.number DESC LIMIT ?"
            return await self._read(await self._engine.read(before, (*place, after, after, limit)))
        rows = await self._engine.read(f"{_ITEMS} AND i.number > ? ORDER BY i.number LIMIT ?", (*place, after, limit))
        return await self._read(rows)

    async def _read_bounded(
        self, place: tuple[str, str], after: int, limit: int, descending: bool, max_bytes: int
    ) -> Rows:
        """Return the rows of a page that fit into `max_bytes`, and at least one."""
        order = "DESC" if descending else "ASC"
        behind = "(? = 0 OR i.number < ?)" if descending else "(? = 0 OR i.number > ?)"
        sql = f"{_LENGTHS} AND {behind} ORDER BY i.number {order} LIMIT ?"
        lengths = await self._engine.read(sql, (*place, after, after, limit))
        count = count_fitting([length for _, length in lengths], max_bytes)
        if not count:
            return []
        first, last = sorted((lengths[0][0], lengths[count - 1][0]))
        sql = f"{_ITEMS} AND i.number >= ? AND i.number <= ? ORDER BY i.number {order}"
        rows = await self._engine.read(sql, (*place, first, last))
        # A file is stored once, and is read for each item that refers to it.
        return rows[: count_fitting(await full_sizes(self._engine, [data for _, data in rows]), max_bytes)]

    async def _charge_items(self, place: tuple[str, str], after: int, charge: Charge) -> Rows | None:
        """Charge all items after a number. Return them if they are small enough to be read first."""
        values = (READ_AHEAD_BYTES, place[0], after, *place, after)
        rows = await self._engine.read(_SIZED, values)
        is_large = bool(rows) and rows[0][2] is None
        if is_large:
            lengths = [(number, length) for number, length, _ in rows]
            size = await estimate_stored(self._engine, _CHUNK, place[:1], lengths)
        else:
            size = await estimate(self._engine, [data for *_, data in rows])
        if size > FREE_BYTES:
            await charge(size)
        return None if is_large else [(number, data) for number, _, data in rows]

    async def item(self, owner: str, conversation_id: str, item_id: str) -> ConversationItem | None:
        values = (key(conversation_id), key(owner), key(item_id))
        items = await self._read(await self._engine.read(f"{_ITEMS} AND i.item_id = ? ORDER BY i.number", values))
        return items[0] if items else None

    async def _read(self, rows: Rows) -> list[ConversationItem]:
        places: list[tuple[Place, bytes]] = [(("items", ("number",), (number,)), data) for number, data in rows]
        items: list[ConversationItem | None] = await self._records.read_each("items", places)
        return [item.replace(number=number) for item, (number, _) in zip(items, rows, strict=True) if item is not None]


_MINE = "WHERE channel = ? AND name = ? AND holder = ?"


class SqlLeaderships:
    """Leaderships across all processes of a database, or within the one process that owns it."""

    def __init__(self, engine: Engine, lease_sql: LeaseSql) -> None:
        self._engine = engine
        self._until = lease_sql.until
        self._is_shared = lease_sql.notifies
        self._local: dict[tuple[str, str], str] = {}
        """The holders in this process, where it alone owns the database: a row of another process has no holder."""

    async def claim(self, channel: str, name: str, holder: str) -> Leadership | None:
        if not self._is_shared and self._local.setdefault((channel, name), holder) != holder:
            return None
        is_free = f" WHERE leaderships.until < {NOW} OR leaderships.holder = excluded.holder" if self._is_shared else ""
        claim = (
            f"INSERT INTO leaderships (channel, name, holder, fence, until) VALUES (?, ?, ?, 1, {self._until}) "
            "ON CONFLICT (channel, name) DO UPDATE SET fence = leaderships.fence + 1, holder = excluded.holder, "
            f"until = excluded.until{is_free} RETURNING fence"
        )
        try:
            rows = (await self._engine.write([Do(claim, (key(channel), key(name), holder), answers=True)]))[0]
        except BaseException:
            self._forget(channel, name, holder)
            raise
        if not rows:
            return None
        return Leadership(channel=channel, name=name, holder=holder, fence=int(rows[0][0]))

    async def renew(self, held: Sequence[Leadership]) -> Sequence[Leadership]:
        if not self._is_shared:
            return [one for one in held if self._local.get((one.channel, one.name)) != one.holder]
        if not held:
            return ()
        renew = f"UPDATE leaderships SET until = {self._until} {_MINE} AND fence = ? RETURNING 1"
        renewals = [Do(renew, (key(one.channel), key(one.name), one.holder, one.fence), answers=True) for one in held]
        answers = await self._engine.write(renewals)
        return [one for one, rows in zip(held, answers, strict=True) if not rows]

    async def release(self, channel: str, name: str, holder: str) -> None:
        if not self._is_shared:
            self._forget(channel, name, holder)
            return
        free = f"UPDATE leaderships SET holder = '', until = 0 {_MINE}"
        await self._engine.write([Do(free, (key(channel), key(name), holder))])

    def _forget(self, channel: str, name: str, holder: str) -> None:
        if self._local.get((channel, name)) == holder:
            del self._local[channel, name]


_USE = (
    "INSERT INTO nonces (scope, nonce, expires_at) VALUES (?, ?, ?) ON CONFLICT (scope, nonce) "
    "DO UPDATE SET expires_at = excluded.expires_at WHERE nonces.expires_at <= ? RETURNING 1"
)


class SqlNonces:
    """Nonces across all processes of a database. Of two concurrent uses, one succeeds."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def use(self, scope: str, nonce: str, *, now: float, expires_at: float) -> bool:
        values = (key(scope), key(nonce), expires_at, now)
        return bool((await self._engine.write([Do(_USE, values, answers=True)]))[0])
