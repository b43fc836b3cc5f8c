"""The drawer of values that channels keep."""

from typing import Any

from frontdesk.data.channel_value import SealedValue, ValuePlace
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.tables import key
from frontdesk.stores.sql.writes import Do

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
    """Values by channel, storage and key."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def get(self, place: ValuePlace, *, now: float) -> SealedValue | None:
        rows = await self._engine.read(_GET, (*_keys(place), now))
        if not rows:
            return None
        version, key_id, data, expires_at = rows[0]
        return SealedValue(version=version, key_id=key_id, data=bytes(data), expires_at=expires_at)

    async def set(self, place: ValuePlace, value: SealedValue) -> None:
        await self._engine.write([Do(_SET, (*_columns(value), *_keys(place)))])

    async def compare_and_set(
        self, place: ValuePlace, expected_version: str | None, value: SealedValue, *, now: float
    ) -> bool:
        values = (*_columns(value), *_keys(place))
        if expected_version is None:
            write = Do(_IF_FREE, (*values, now), answers=True)
        else:
            write = Do(_IF_SAME, (*values, key(expected_version), now), answers=True)
        return bool((await self._engine.write([write]))[0])

    async def delete(self, place: ValuePlace) -> None:
        await self._engine.write([Do(f"DELETE FROM channel_values WHERE {_HERE}", _keys(place))])


def _columns(value: SealedValue) -> tuple[Any, ...]:
    return (value.version, value.key_id, value.data, value.expires_at)


def _keys(place: ValuePlace) -> tuple[str, str, str]:
    return (key(place.channel), key(place.storage), key(place.key))
