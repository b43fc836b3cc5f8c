"""`/new`, `/sessions`, `/resume`, `/name` and `/cancel`, as a message channel offers them."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from frontdesk.abc.channel import ChannelCommand, ChannelCommandContext, ChannelContext
from frontdesk.data.delivery import Cancelled
from frontdesk.data.request import ChannelRequest
from frontdesk.data.run import RunRecord
from frontdesk.data.session import SessionSummary
from frontdesk.errors import InvalidRequestError, NotFoundError
from frontdesk.kit.chat.text import one_line

_CODE = 6
"""The number of characters of a session's id that earlier versions have shown, and that still name it."""
_MOST_SEARCHED = 100
"""The number of sessions among which one is found that was listed before."""
_LISTED = "sessions"
"""The key of the session ids that a person was shown last, in their order."""
_NO_TITLE = "-"
_ANEW = "We start anew."
_NONE_YET = "There is no conversation yet."
_WHICH = "Say which one, such as /resume 2. /sessions lists them."
_WHICH_TITLE = "Say the title, such as /name Holiday plans; /name - removes it."
_NAMED = "This conversation is called “{}” now."
_UNNAMED = "This conversation has no title now."
_UNKNOWN = "I don't know that conversation. /sessions lists those that there are."
_STOPPED = "I have stopped."
_STOPPED_ELSEWHERE = "I have stopped what you asked {}."
_DROPPED = "I have dropped my question."
_DROPPED_MANY = "I have dropped my {} questions."
_NOTHING_TO_STOP = "There is nothing to stop."
_BACK = "We go on where we were, after {} messages."


def session_commands(context: ChannelContext) -> list[ChannelCommand]:
    """Return the commands with which people look after their own sessions on a channel."""
    commands = _Commands(context)
    return [
        ChannelCommand("new", "Start a new conversation", commands.start_anew, control=True),
        ChannelCommand("sessions", "List our conversations", commands.list, control=True),
        # It waits for its turn: what was written before it belongs to the conversation that it leaves.
        ChannelCommand("resume", "Go on with an earlier conversation", commands.resume),
        # The session that it names is there once the turns before it have ended.
        ChannelCommand("name", "Give this conversation a title", commands.name),
        ChannelCommand("cancel", "Stop what I work on", commands.cancel, control=True),
    ]


class _Commands:
    def __init__(self, context: ChannelContext) -> None:
        self._context = context

    async def start_anew(self, call: ChannelCommandContext) -> None:
        if call.event is not None:
            await self._context.cancel_turns(call.event, rotate=True, reply=lambda _: _ANEW)
            return
        # A caller who has no session yet starts a new one in any case.
        with suppress(NotFoundError):
            await self._context.reset_session(call.caller, conversation_id=_group(call.request))
        await call.reply(_ANEW)

    async def list(self, call: ChannelCommandContext) -> None:
        sessions = await self._sessions(call)
        if not sessions:
            return await call.reply(_NONE_YET)
        # Kept first: a number means what the person saw, however the list changes until they use it.
        await call.state.set(_LISTED, [session.session_id for session in sessions])
        await call.reply("\n".join(_line(number, session) for number, session in enumerate(sessions, 1)))

    async def resume(self, call: ChannelCommandContext) -> None:
        word = _text(call.request).lower()
        if not word:
            return await call.reply(_WHICH)
        listed = await self._listed(call, word)
        sessions = [
            session
            for session in await self._sessions(call, limit=_MOST_SEARCHED)
            if (session.session_id == listed if listed else word in (_code(session), session.session_id))
        ]
        if len(sessions) != 1:
            return await call.reply(_UNKNOWN)
        place = _group(call.request)
        await self._context.resume_session(call.caller, sessions[0].session_id, conversation_id=place)
        await call.reply(_BACK.format(sessions[0].messages))

    async def _listed(self, call: ChannelCommandContext, word: str) -> str | None:
        """Return the session that stood under a number in the list that the person saw last."""
        shown: Any = await call.state.get(_LISTED) or ()
        return shown[int(word) - 1] if word in map(str, range(1, len(shown) + 1)) else None

    async def name(self, call: ChannelCommandContext) -> None:
        title = one_line(_text(call.request))
        session_id = None if call.session is None else call.session.session_id
        if not title or session_id is None:
            return await call.reply(_NONE_YET if title else _WHICH_TITLE)
        given, place = None if title == _NO_TITLE else title, _group(call.request)
        try:
            await self._context.name_session(call.caller, session_id, given, conversation_id=place)
        except InvalidRequestError as error:
            return await call.reply(error.message)
        await call.reply(_UNNAMED if given is None else _NAMED.format(given))

    async def cancel(self, call: ChannelCommandContext) -> None:
        runs: Sequence[RunRecord] = ()
        with suppress(NotFoundError):
            runs = await self._context.cancel_background_runs(call.caller, conversation_id=_group(call.request))
        here = self._context.channel
        if call.event is None:
            return await call.reply(_stopped(runs, here))
        await self._context.cancel_turns(call.event, reply=lambda found: _stopped(runs, here, found))

    async def _sessions(self, call: ChannelCommandContext, *, limit: int = 20) -> Sequence[SessionSummary]:
        try:
            return await self._context.list_sessions(call.caller, conversation_id=_group(call.request), limit=limit)
        except NotFoundError:
            return ()


def _group(request: ChannelRequest) -> str | None:
    return request.conversation_id if request.group else None


def _stopped(runs: Sequence[RunRecord], here: str, turns: Cancelled | None = None) -> str:
    """Say on which channels the runs that were stopped had been asked for, and nothing of what was said there."""
    asked = {run.channel for run in runs}
    if turns is not None and (turns.running or turns.dropped):
        asked.add(here)
    dropped = "" if turns is None or not turns.questions else _dropped(turns.questions)
    if not asked:
        return dropped or _NOTHING_TO_STOP
    return " ".join(filter(None, (_stopped_at(asked, here), dropped)))


def _dropped(questions: int) -> str:
    return _DROPPED if questions == 1 else _DROPPED_MANY.format(questions)


def _stopped_at(asked: Collection[str], here: str) -> str:
    if asked == {here}:
        return _STOPPED
    places = ["here" if name == here else f"on {name}" for name in sorted(asked, key=lambda name: (name != here, name))]
    return _STOPPED_ELSEWHERE.format(" and ".join(places))


def _text(request: ChannelRequest) -> str:
    return request.input.strip() if isinstance(request.input, str) else ""


def _code(session: SessionSummary) -> str:
    return session.session_id[-_CODE:].lower()


def _line(number: int, session: SessionSummary) -> str:
    at = datetime.fromtimestamp(session.updated_at, UTC)
    words = session.title or session.first_words
    about = f"“{words}”, " if words else ""
    here = ", this one" if session.is_current else ""
    return f"{number} - {about}{at:%d %B %Y, %H:%M} UTC, {session.messages} messages{here}"
