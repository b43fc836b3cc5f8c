"""`/new`, `/sessions`, `/resume` and `/cancel`, as a message channel offers them."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from frontdesk.abc.channel import ChannelCommand, ChannelCommandContext, ChannelContext
from frontdesk.data.request import ChannelRequest
from frontdesk.data.run import RunRecord
from frontdesk.data.session import SessionSummary
from frontdesk.errors import NotFoundError

_CODE = 6
"""How many characters of a session's id are shown."""
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
    desk = _Commands(context)
    return [
        ChannelCommand("new", "Start a new conversation", desk.start_anew),
        ChannelCommand("sessions", "List our conversations", desk.list),
        ChannelCommand("resume", "Go on with an earlier conversation", desk.resume),
        ChannelCommand("cancel", "Stop what I work on in the background", desk.cancel),
    ]


class _Commands:
    def __init__(self, context: ChannelContext) -> None:
        self._context = context

    async def start_anew(self, call: ChannelCommandContext) -> None:
        # Who was never here starts anew in any case.
        with suppress(NotFoundError):
            await self._context.reset_session(call.caller, conversation_id=_group(call.request))
        await call.reply(_ANEW)

    async def list(self, call: ChannelCommandContext) -> None:
        lines = [_line(one) for one in await self._sessions(call)]
        await call.reply("\n".join(lines) or _NONE_YET)

    async def resume(self, call: ChannelCommandContext) -> None:
        said = call.request.input
        code = said.strip().lower() if isinstance(said, str) else ""
        if not code:
            return await call.reply(_WHICH.format("a1b2c3"))
        found = [one for one in await self._sessions(call) if code in (_shown(one), one.session_id)]
        if len(found) != 1:
            return await call.reply(_UNKNOWN)
        place = _group(call.request)
        await self._context.resume_session(call.caller, found[0].session_id, conversation_id=place)
        await call.reply(_BACK.format(found[0].messages))

    async def cancel(self, call: ChannelCommandContext) -> None:
        runs: Sequence[RunRecord] = ()
        with suppress(NotFoundError):
            runs = await self._context.cancel_background_runs(call.caller, conversation_id=_group(call.request))
        await call.reply(_stopped(runs, self._context.channel))

    async def _sessions(self, call: ChannelCommandContext) -> Sequence[SessionSummary]:
        try:
            return await self._context.list_sessions(call.caller, conversation_id=_group(call.request))
        except NotFoundError:
            return ()


def _group(request: ChannelRequest) -> str | None:
    return request.conversation_id if request.group else None


def _stopped(runs: Sequence[RunRecord], here: str) -> str:
    """Say where what was stopped had been asked, and nothing of what was said there."""
    asked = {one.channel for one in runs}
    if not asked:
        return _NOTHING_TO_STOP
    if asked == {here}:
        return _STOPPED
    places = ["here" if one == here else f"on {one}" for one in sorted(asked, key=lambda one: (one != here, one))]
    return _STOPPED_ELSEWHERE.format(" and ".join(places))


def _shown(session: SessionSummary) -> str:
    return session.session_id[-_CODE:].lower()


def _line(session: SessionSummary) -> str:
    at = datetime.fromtimestamp(session.updated_at, UTC)
    here = ", this one" if session.is_current else ""
    return f"{_shown(session)} - {at:%d %B %Y, %H:%M} UTC, {session.messages} messages{here}"
