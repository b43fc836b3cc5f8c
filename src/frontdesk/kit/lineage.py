"""The sessions that a session has branched from, the questions of a run, and the runs that went on with it."""

from frontdesk.abc.store import HostStateStore
from frontdesk.data.approval import PendingApproval
from frontdesk.data.run import RunRecord
from frontdesk.data.session import SessionRecord
from frontdesk.kit.framework.approval_ids import requests_in


async def descends_from(store: HostStateStore, session: SessionRecord, session_id: str) -> bool:
    """Tell whether a session is the one with an id, or has branched from it."""
    member: SessionRecord | None = session
    while member is not None and member.session_id != session_id:
        parent = member.parent
        member = None if parent is None else await store.sessions.get(member.owner, parent.session_id)
    return member is not None


async def asked_as(
    store: HostStateStore, owner: str, session: SessionRecord | None, target_request_id: str
) -> list[PendingApproval]:
    """List what a session, or one that it branched from, has asked under an id of the target's, oldest first."""
    if session is None:
        return []
    questions = await store.approvals.asked_as(owner, target_request_id)
    return [question for question in questions if await descends_from(store, session, question.session_id)]


async def continued_by(store: HostStateStore, run: RunRecord) -> str | None:
    """Return the run of the host's own that went on with a run once its question was decided, if there is one."""
    later = [question.resumed_by for question in await questions_of(store, run) if question.resumed_by]
    return later[-1] if later else None


async def questions_of(store: HostStateStore, run: RunRecord) -> list[PendingApproval]:
    """List the questions that a run has asked, decided ones too, oldest first."""
    if run.session_id is None or not requests_in(run.result):
        return []
    asked = await store.approvals.of_session(run.owner, run.session_id)
    return [question for question in asked if question.run_id == run.run_id]
