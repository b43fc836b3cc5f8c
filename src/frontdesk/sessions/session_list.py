"""The earlier sessions of a person: their titles, their transcripts, and switching back to one of them."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent_framework import Message

from frontdesk.errors import InvalidRequestError, NotFoundError
from frontdesk.framework.approval_ids import requests_in
from frontdesk.framework.contents import RUN_ID
from frontdesk.ids import extract_time
from frontdesk.interfaces.store import HostStateStore
from frontdesk.markdown.plain_text import one_line
from frontdesk.models.approval import PendingApproval
from frontdesk.models.conversation import TranscriptMessage, TranscriptPage, answer_message_id
from frontdesk.models.run import RunRecord
from frontdesk.models.session import MAX_TITLE_LENGTH, SessionName, SessionRecord, SessionSummary

_MAX_LABEL_LENGTH = 40
"""The characters of its first message that stand for a session without a title."""
_NO_SESSION = "Session not found."
_TOO_LONG = f"A title has {MAX_TITLE_LENGTH} characters at most."


class PastSessions:
    """Lists the sessions of a tracked name, and points the name at one of them again."""

    def __init__(self, store: HostStateStore) -> None:
        self._store = store

    async def list(self, name: SessionName, *, limit: int) -> Sequence[SessionSummary]:
        """Return the sessions of a name, most recently used first, with the current one marked."""
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
        """Set or remove the title of a name's session. Raise `NotFoundError` for any other session."""
        title = one_line(title or "") or None
        if title is not None and len(title) > MAX_TITLE_LENGTH:
            raise InvalidRequestError(_TOO_LONG, param="title")
        await self._need(name, session_id)
        async with self._store.transaction() as transaction:
            transaction.title_session(name.owner, session_id, title)

    async def resume(self, name: SessionName, session_id: str) -> None:
        """Point a name at one of its earlier sessions. Raise `NotFoundError` for any other session."""
        if await self._need(name, session_id):
            return
        async with self._store.transaction() as transaction:
            transaction.name_session(name, session_id)

    async def _need(self, name: SessionName, session_id: str) -> bool:
        """Reject a session that the name never pointed at. Return True if it is the current one."""
        present = await self._store.sessions.find(name)
        if present is not None and present.session_id == session_id:
            return True
        if not await self._store.sessions.was(name, session_id):
            raise NotFoundError(_NO_SESSION, param="session_id")
        return False


def _first_words(messages: Sequence[Any]) -> str:
    """Return the beginning of the user's first message, or an empty string if it has no text."""
    said = next((message.text for message in messages if message.role == "user" and message.text), "")
    words = one_line(said[: 4 * _MAX_LABEL_LENGTH])
    return words if len(words) <= _MAX_LABEL_LENGTH else f"{words[: _MAX_LABEL_LENGTH - 1].rstrip()}…"


MAX_TURNS = 100
"""The number of turns that one part of a transcript can have."""


class Transcripts:
    """The transcripts of all sessions."""

    def __init__(self, store: HostStateStore) -> None:
        self._store = store

    async def page(self, name: SessionName, *, before: int | None, limit: int) -> TranscriptPage:
        """Return a page of the session that a name points at, or an empty page if there is none."""
        record = await self._store.sessions.find(name)
        if record is None or record.owner != name.owner:
            return TranscriptPage()
        turns = max(1, min(limit, MAX_TURNS))
        page = await self._store.sessions.history_page(name.owner, record.session_id, before=before, limit=turns)
        return TranscriptPage(messages=tuple(as_transcript(page.messages)), before=page.before)


def as_transcript(messages: Sequence[Message]) -> list[TranscriptMessage]:
    """Return messages with channels, times, runs and ids. An answer has the time of the preceding question."""
    noted: list[TranscriptMessage] = []
    at: float | None = None
    echoes = answers = 0
    run_id: str | None = None
    for message in messages:
        hosting = _get_hosting(message)
        if message.role == "user":
            at = extract_time(message.message_id or "", "msg") or at
            echoes = len(noted) + 1 if _as_mapping(hosting.get("response_target")).get("echo_input") else 0
        channel = hosting.get("channel") or hosting.get("originating_channel")
        targets = _targets(hosting)
        if targets and echoes:
            # What was asked is shown there too, before the answer.
            asked = noted[echoes - 1]
            noted[echoes - 1] = asked.replace(shown_on=asked.shown_on | targets)
        own = {channel} if channel and hosting.get("includes_originating", True) else set[str]()
        is_answer, named = "originating_channel" in hosting, message.additional_properties.get(RUN_ID)
        if named != run_id and (named is not None or not is_answer):
            run_id, answers = named, 0
        shown_id = message.message_id
        if is_answer and run_id is not None:
            shown_id, answers = answer_message_id(run_id, answers), answers + 1
        noted.append(
            TranscriptMessage(
                message=message,
                channel=channel,
                at=at,
                shown_on=frozenset(own | targets),
                message_id=shown_id,
                run_id=run_id,
            )
        )
    return noted


def _get_hosting(message: Message) -> Mapping[str, Any]:
    return _as_mapping(message.additional_properties.get("hosting"))


def _targets(hosting: Mapping[str, Any]) -> frozenset[str]:
    targets: Any = hosting.get("intended_targets") or ()
    return frozenset(str(_as_mapping(target).get("channel")) for target in targets)


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


async def descends_from(store: HostStateStore, session: SessionRecord, session_id: str) -> bool:
    """Return True if a session has the id, or branched from the session that has it."""
    member: SessionRecord | None = session
    while member is not None and member.session_id != session_id:
        parent = member.parent
        member = None if parent is None else await store.sessions.get(member.owner, parent.session_id)
    return member is not None


async def list_asked_as(
    store: HostStateStore, owner: str, session: SessionRecord | None, target_request_id: str
) -> list[PendingApproval]:
    """List the approvals of a session and its ancestors with a target request id, oldest first."""
    if session is None:
        return []
    questions = await store.approvals.asked_as(owner, target_request_id)
    return [question for question in questions if await descends_from(store, session, question.session_id)]


async def find_continued_by(store: HostStateStore, run: RunRecord) -> str | None:
    """Return the host-initiated run that continued a run after its approval was decided, if any."""
    later = [question.resumed_by for question in await list_questions(store, run) if question.resumed_by]
    return later[-1] if later else None


async def list_questions(store: HostStateStore, run: RunRecord) -> list[PendingApproval]:
    """List the approvals that a run has requested, including decided ones, oldest first."""
    if run.session_id is None or not requests_in(run.result):
        return []
    asked = await store.approvals.of_session(run.owner, run.session_id)
    return [question for question in asked if question.run_id == run.run_id]
