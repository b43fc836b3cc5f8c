"""`/new`, `/sessions`, `/resume` and `/cancel`, as a message channel offers them."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from frontdesk.abc.channel import ChannelCommand, ChannelCommandContext, ChannelContext
from frontdesk.data.delivery import Cancelled
from frontdesk.data.request import ChannelRequest
from frontdesk.data.run import RunRecord
from frontdesk.data.session import SessionSummary
from frontdesk.errors import NotFoundError

_CODE = 6
"""The number of characters of a session's id that are shown."""
_ANEW = "We start anew."
_NONE_YET = "There is no conversation yet."
_WHICH = "Say which one, such as /resume {}. /sessions lists them."
_UNKNOWN = "I don't know that conversation. /sessions lists those that there are."
_STOPPED = "I have stopped."
_STOPPED_ELSEWHERE = "I have stopped what you asked {}."
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
        lines = [_line(session) for session in await self._sessions(call)]
        await call.reply("\n".join(lines) or _NONE_YET)

    async def resume(self, call: ChannelCommandContext) -> None:
        text = call.request.input
        code = text.strip().lower() if isinstance(text, str) else ""
        if not code:
            return await call.reply(_WHICH.format("a1b2c3"))
        sessions = [session for session in await self._sessions(call) if code in (_shown(session), session.session_id)]
        if len(sessions) != 1:
            return await call.reply(_UNKNOWN)
        place = _group(call.request)
        await self._context.resume_session(call.caller, sessions[0].session_id, conversation_id=place)
        await call.reply(_BACK.format(sessions[0].messages))

    async def cancel(self, call: ChannelCommandContext) -> None:
        runs: Sequence[RunRecord] = ()
        with suppress(NotFoundError):
            runs = await self._context.cancel_background_runs(call.caller, conversation_id=_group(call.request))
        here = self._context.channel
        if call.event is None:
            return await call.reply(_stopped(runs, here))
        await self._context.cancel_turns(call.event, reply=lambda found: _stopped(runs, here, found))

    async def _sessions(self, call: ChannelCommandContext) -> Sequence[SessionSummary]:
        try:
            return await self._context.list_sessions(call.caller, conversation_id=_group(call.request))
        except NotFoundError:
            return ()


def _group(request: ChannelRequest) -> str | None:
    return request.conversation_id if request.group else None


def _stopped(runs: Sequence[RunRecord], here: str, turns: Cancelled | None = None) -> str:
    """Say on which channels the runs that were stopped had been asked for, and nothing of what was said there."""
    asked = {run.channel for run in runs}
    if turns is not None and (turns.running or turns.dropped):
        asked.add(here)
    if not asked:
        return _NOTHING_TO_STOP
    if asked == {here}:
        return _STOPPED
    places = ["here" if name == here else f"on {name}" for name in sorted(asked, key=lambda name: (name != here, name))]
    return _STOPPED_ELSEWHERE.format(" and ".join(places))


def _shown(session: SessionSummary) -> str:
    return session.session_id[-_CODE:].lower()


def _line(session: SessionSummary) -> str:
    at = datetime.fromtimestamp(session.updated_at, UTC)
    here = ", this one" if session.is_current else ""
    return f"{_shown(session)} - {at:%d %B %Y, %H:%M} UTC, {session.messages} messages{here}"
