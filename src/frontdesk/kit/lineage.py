"""The sessions that a session has branched from."""

from frontdesk.abc.store import HostStateStore
from frontdesk.data.session import SessionRecord


async def descends_from(store: HostStateStore, session: SessionRecord, session_id: str) -> bool:
    """Tell whether a session is the one with an id, or has branched from it."""
    member: SessionRecord | None = session
    while member is not None and member.session_id != session_id:
        parent = member.parent
        member = None if parent is None else await store.sessions.get(member.owner, parent.session_id)
    return member is not None
