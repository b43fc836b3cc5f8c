"""The sessions that a person had before the present one, their titles, and the way back to one of them."""

from collections.abc import Sequence
from typing import Any

from frontdesk.abc.store import HostStateStore
from frontdesk.data.session import LONGEST_TITLE, SessionName, SessionSummary
from frontdesk.errors import InvalidRequestError, NotFoundError
from frontdesk.kit.chat.text import one_line

_WORDS_SHOWN = 40
"""The characters of its first message that stand for a session without a title."""
_NO_SESSION = "There is no such session."
_TOO_LONG = f"A title has {LONGEST_TITLE} characters at most."


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
        latest = sorted(unique, key=lambda record: (record.updated_at, record.session_id), reverse=True)[:limit]
        ids = [record.session_id for record in latest]
        titles = await self._store.sessions.titles(name.owner, ids)
        untitled = [session_id for session_id in ids if session_id not in titles]
        first = await self._store.sessions.first_messages(name.owner, untitled)
        return [
            SessionSummary(
                session_id=record.session_id,
                created_at=record.created_at,
                updated_at=record.updated_at,
                messages=record.messages,
                is_current=present is not None and record.session_id == present.session_id,
                title=titles.get(record.session_id),
                first_words=_first_words(first.get(record.session_id, ())),
            )
            for record in latest
        ]

    async def retitle(self, name: SessionName, session_id: str, title: str | None) -> None:
        """Give a session of a name a title, or take it away; any other is a `NotFoundError`."""
        title = one_line(title or "") or None
        if title is not None and len(title) > LONGEST_TITLE:
            raise InvalidRequestError(_TOO_LONG, param="title")
        await self._need(name, session_id)
        async with self._store.transaction() as transaction:
            transaction.title_session(name.owner, session_id, title)

    async def resume(self, name: SessionName, session_id: str) -> None:
        """Let a name stand for one of its earlier sessions again; any other is a `NotFoundError`."""
        if await self._need(name, session_id):
            return
        async with self._store.transaction() as transaction:
            transaction.name_session(name, session_id)

    async def _need(self, name: SessionName, session_id: str) -> bool:
        """Refuse a session that a name never stood for; tell whether it is the present one."""
        present = await self._store.sessions.find(name)
        if present is not None and present.session_id == session_id:
            return True
        if not await self._store.sessions.was(name, session_id):
            raise NotFoundError(_NO_SESSION, param="session_id")
        return False


def _first_words(messages: Sequence[Any]) -> str:
    """Return the beginning of what the user has said first; empty if that was no text."""
    said = next((message.text for message in messages if message.role == "user" and message.text), "")
    words = one_line(said[: 4 * _WORDS_SHOWN])
    return words if len(words) <= _WORDS_SHOWN else f"{words[: _WORDS_SHOWN - 1].rstrip()}…"
