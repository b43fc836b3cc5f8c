"""The drawer of names of conversations that have moved."""

from collections.abc import Collection

from frontdesk.data.conversation_alias import AliasMerge, ConversationAlias
from frontdesk.errors import StoreError
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.tables import as_bytes, key, text
from frontdesk.stores.sql.writes import Do, Op

_FIND = "SELECT first_name, current_name, next_name FROM conversation_aliases WHERE channel = ? AND name = ?"
_BEGIN = "INSERT INTO alias_versions (channel, version) VALUES (?, 1) ON CONFLICT (channel) DO NOTHING"
_COUNT = "UPDATE alias_versions SET version = version + 1 WHERE channel = ? AND version = ?"
_RENAME = "UPDATE conversation_aliases SET first_name = ?, current_name = ? WHERE channel = ? AND first_name = ?"
_PUT = (
    "INSERT INTO conversation_aliases (channel, name, first_name, current_name, next_name) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (channel, name) DO UPDATE SET next_name = COALESCE(excluded.next_name, conversation_aliases.next_name)"
)


class _ChangedError(StoreError):
    """Another has changed the names meanwhile."""


class SqlConversationAliases:
    """Names by channel: a row each, which says the first and the current one."""

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
