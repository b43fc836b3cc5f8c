"""The sessions that a person had before the present one, and the way back to one of them."""

from collections.abc import Sequence

from frontdesk.abc.store import HostStateStore
from frontdesk.data.session import SessionName, SessionSummary
from frontdesk.errors import NotFoundError


class PastSessions:
    """Lists the sessions of a tracked name, and lets the name stand for one of them again."""

    def __init__(self, store: HostStateStore) -> None:
        self._store = store

    async def list(self, name: SessionName, *, limit: int) -> Sequence[SessionSummary]:
        """Return the sessions of a name, the last used first; the present one is marked."""
        present = await self._store.sessions.find(name)
        past = await self._store.sessions.past(name, limit=limit)
        records = [*([] if present is None else [present]), *past]
        unique = {record.session_id: record for record in records}.values()
        return [
            SessionSummary(
                session_id=record.session_id,
                created_at=record.created_at,
                updated_at=record.updated_at,
                messages=record.messages,
                is_current=present is not None and record.session_id == present.session_id,
            )
            for record in sorted(unique, key=lambda record: (record.updated_at, record.session_id), reverse=True)
        ][:limit]

    async def resume(self, name: SessionName, session_id: str) -> None:
        """Let a name stand for one of its earlier sessions again; any other is a `NotFoundError`."""
        present = await self._store.sessions.find(name)
        if present is not None and present.session_id == session_id:
            return
        if not await self._store.sessions.was(name, session_id):
            raise NotFoundError("There is no such session.", param="session_id")
        async with self._store.transaction() as transaction:
            transaction.name_session(name, session_id)
