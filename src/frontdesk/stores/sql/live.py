"""The drawer of live answers, and the statement that writes them."""

from collections.abc import Sequence
from typing import Any, get_args

from frontdesk.data.codec import encode
from frontdesk.data.live import LiveAnswer, LiveState
from frontdesk.errors import LostEventError
from frontdesk.stores.sql.engine import Engine
from frontdesk.stores.sql.records import Records
from frontdesk.stores.sql.tables import key
from frontdesk.stores.sql.writes import Do

_STATES: tuple[str, ...] = get_args(LiveState)
_KEY = ("run_id", "channel", "place")
_COLUMNS = (*_KEY, "state", "handles", "fence", "expires_at")
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM live"
_SAVE = (
    f"INSERT INTO live ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' for _ in _COLUMNS)}) "
    f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET "
    f"{', '.join(f'{column} = excluded.{column}' for column in _COLUMNS[len(_KEY) :])} "
    "WHERE live.fence <= excluded.fence AND live.state <> 'closed'"
)


class SqlLiveAnswers:
    """Live answers by the run, the channel and the place."""

    def __init__(self, engine: Engine, records: Records) -> None:
        self._engine = engine
        self._records = records

    async def get(self, run_id: str, channel: str, place: str) -> LiveAnswer | None:
        where = " AND ".join(f"{column} = ?" for column in _KEY)
        rows = await self._engine.read(f"{_SELECT} WHERE {where}", (key(run_id), key(channel), key(place)))
        if not rows:
            return None
        return self._live(rows[0]).replace(run_id=run_id, channel=channel, place=place)

    async def lost(self, *, limit: int = 100) -> Sequence[LiveAnswer]:
        rows = await self._engine.read(f"{_SELECT} WHERE state = 'lost' ORDER BY run_id LIMIT ?", (limit,))
        return [self._live(row) for row in rows]

    def _live(self, row: Sequence[Any]) -> LiveAnswer:
        *name, state, handles, fence, expires_at = row
        place = ("live", _KEY, name)
        self._records.require_known(place, state, _STATES)
        known: list[str] | None = self._records.read_column(place, None if handles is None else bytes(handles))
        run_id, channel, destination = name
        return LiveAnswer(
            run_id=run_id,
            channel=channel,
            place=destination,
            state=state,
            handles=tuple(known or ()),
            fence=fence,
            expires_at=expires_at,
        )


def saved(live: LiveAnswer) -> Do:
    """Save a live answer, unless a later claim has it or it is closed."""
    names = (key(live.run_id), key(live.channel), key(live.place))
    handles = encode(list(live.handles)) if live.handles else None
    return Do(_SAVE, (*names, live.state, handles, live.fence, live.expires_at), LostEventError())
