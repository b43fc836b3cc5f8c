"""The commands `/new`, `/sessions`, `/resume`, `/name`, `/cancel` and `/help` of message channels."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import reduce
from typing import Any

from frontdesk.chat.commands import get_scope, parse_locale
from frontdesk.chat.inbound import GREETING
from frontdesk.concurrency.begun import await_begun
from frontdesk.errors import InvalidRequestError, NotFoundError
from frontdesk.interfaces.channel import ChannelCommand, ChannelCommandContext, ChannelContext, CommandHandler
from frontdesk.interfaces.context import CommandState
from frontdesk.markdown.plain_text import one_line
from frontdesk.models.delivery import Cancelled, InboxItem
from frontdesk.models.reply import Reply
from frontdesk.models.request import ChannelRequest, ChannelSession
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import RunRecord
from frontdesk.models.session import MAX_TITLE_LENGTH, SessionSummary

_CODE = 6
"""The number of characters of a session's id that earlier versions have shown, and that still name it."""
_MAX_SEARCHED = 100
"""The number of sessions among which one is found that was listed before."""
_LISTED = "sessions"
"""The key of the session ids that a person was shown last, in their order."""
_NO_TITLE = "-"


def session_commands(context: ChannelContext) -> list[ChannelCommand]:
    """Return the commands for users to manage their own sessions on a channel."""
    commands = _Commands(context)
    handlers = {
        "new": commands.start_anew,
        "sessions": commands.list,
        # It waits for its turn: what was written before it belongs to the conversation that it leaves.
        "resume": commands.resume,
        # The session that it names is there once the turns before it have ended.
        "name": commands.name,
        "cancel": commands.cancel,
    }
    return [
        build_command(context, name, handler, control=name not in ("resume", "name"))
        for name, handler in handlers.items()
    ]


def build_command(
    context: ChannelContext, name: str, handler: CommandHandler, *, control: bool = False
) -> ChannelCommand:
    """Build a built-in command, with descriptions in all languages."""
    description, locales = context.texts.described(f"command.{name}")
    return ChannelCommand(name, description, handler, control=control, locales=locales)


class _Commands:
    def __init__(self, context: ChannelContext) -> None:
        self._context = context

    async def start_anew(self, call: ChannelCommandContext) -> None:
        if call.event is not None:
            await self._context.events.cancel_turns(
                call.event, rotate=True, reply=lambda _: self._say(call, "sessions.anew")
            )
            return
        # A caller who has no session yet starts a new one in any case.
        with suppress(NotFoundError):
            await self._context.sessions.reset(call.caller, conversation_id=_group(call.request))
        await call.reply(self._say(call, "sessions.anew"))

    async def list(self, call: ChannelCommandContext) -> None:
        sessions = await self._sessions(call)
        if not sessions:
            return await call.reply(self._say(call, "sessions.none"))
        # Kept first: a number means what the person saw, however the list changes until they use it.
        await call.state.set(_LISTED, [session.session_id for session in sessions])
        await call.reply("\n".join(self._line(call, number, session) for number, session in enumerate(sessions, 1)))

    async def resume(self, call: ChannelCommandContext) -> None:
        word = _text(call.request).lower()
        if not word:
            return await call.reply(self._say(call, "sessions.which"))
        listed = await self._find_listed(call, word)
        sessions = [
            session
            for session in await self._sessions(call, limit=_MAX_SEARCHED)
            if (session.session_id == listed if listed else word in (_code(session), session.session_id))
        ]
        if len(sessions) != 1:
            return await call.reply(self._say(call, "sessions.unknown"))
        place = _group(call.request)
        await self._context.sessions.resume(call.caller, sessions[0].session_id, conversation_id=place)
        await call.reply(self._say(call, "sessions.back", messages=sessions[0].messages))

    async def _find_listed(self, call: ChannelCommandContext, word: str) -> str | None:
        """Return the session with this number in the last list shown to the user."""
        shown: Any = await call.state.get(_LISTED) or ()
        return shown[int(word) - 1] if word in map(str, range(1, len(shown) + 1)) else None

    async def name(self, call: ChannelCommandContext) -> None:
        title = one_line(_text(call.request))
        session_id = None if call.session is None else call.session.session_id
        if not title or session_id is None:
            return await call.reply(self._say(call, "sessions.none" if title else "sessions.which_title"))
        given, place = None if title == _NO_TITLE else title, _group(call.request)
        try:
            await self._context.sessions.rename(call.caller, session_id, given, conversation_id=place)
        except InvalidRequestError:
            return await call.reply(self._say(call, "sessions.long_title", most=MAX_TITLE_LENGTH))
        if given is None:
            return await call.reply(self._say(call, "sessions.unnamed"))
        await call.reply(self._say(call, "sessions.named", title=given))

    async def cancel(self, call: ChannelCommandContext) -> None:
        runs: Sequence[RunRecord] = ()
        with suppress(NotFoundError):
            runs = await self._context.runs.cancel_background(call.caller, conversation_id=_group(call.request))
        if call.event is None:
            return await call.reply(self._describe_stopped(call, runs))
        await self._context.events.cancel_turns(
            call.event, reply=lambda found: self._describe_stopped(call, runs, found)
        )

    async def _sessions(self, call: ChannelCommandContext, *, limit: int = 20) -> Sequence[SessionSummary]:
        try:
            return await self._context.sessions.list(call.caller, conversation_id=_group(call.request), limit=limit)
        except NotFoundError:
            return ()

    def _describe_stopped(
        self, call: ChannelCommandContext, runs: Sequence[RunRecord], turns: Cancelled | None = None
    ) -> str:
        """List the channels on which the stopped runs were requested, without any content of those conversations."""
        asked = {run.channel for run in runs}
        if turns is not None and (turns.running or turns.dropped):
            asked.add(self._context.channel)
        questions = 0 if turns is None else turns.questions
        parts = [self._name_stopped(call, asked)] if asked else []
        if questions:
            dropped = "cancel.dropped" if questions == 1 else "cancel.dropped_many"
            parts.append(self._say(call, dropped, questions=questions))
        return " ".join(parts) or self._say(call, "cancel.nothing")

    def _name_stopped(self, call: ChannelCommandContext, asked: Collection[str]) -> str:
        here = self._context.channel
        if asked == {here}:
            return self._say(call, "cancel.stopped")
        names = sorted(asked, key=lambda name: (name != here, name))
        places = [self._say(call, "cancel.here" if name == here else "cancel.on", channel=name) for name in names]
        joined = reduce(lambda first, second: self._say(call, "cancel.and", first=first, second=second), places)
        return self._say(call, "cancel.stopped_elsewhere", places=joined)

    def _line(self, call: ChannelCommandContext, number: int, session: SessionSummary) -> str:
        at = datetime.fromtimestamp(session.updated_at, UTC).strftime("%Y-%m-%d %H:%M")
        words = session.title or session.first_words
        key = "sessions.line_about" if words else "sessions.line"
        line = self._say(call, key, number=number, words=words, at=at, messages=session.messages)
        return self._say(call, "sessions.line_current", line=line) if session.is_current else line

    def _say(self, call: ChannelCommandContext, key: str, **values: Any) -> str:
        return self._context.texts.say(key, parse_locale(call.request, call.caller.identity), **values)


def _group(request: ChannelRequest) -> str | None:
    return request.conversation_id if request.group else None


def _text(request: ChannelRequest) -> str:
    return request.input.strip() if isinstance(request.input, str) else ""


def _code(session: SessionSummary) -> str:
    return session.session_id[-_CODE:].lower()


class CommandCall:
    """One call of a command. `args` is the text after the command name."""

    def __init__(
        self, item: InboxItem, context: ChannelContext, reply: Callable[[Reply | str], Awaitable[None]]
    ) -> None:
        self.request: ChannelRequest = item.request
        self.caller = item.caller
        self.session: ChannelSession | None = item.request.session
        self.state: CommandState
        self.raw_event: Any = item.request.attributes.get("event")
        self.event: InboxItem | None = item
        self.name: str = item.request.attributes["command"]
        self.args: str = item.request.input
        self._context = context
        self._reply = reply

    async def reply(self, reply: Reply | str, /) -> None:
        """Reply to the command after the work that it has started is done."""
        await await_begun()
        await self._reply(reply)

    async def run(self, request: ChannelRequest) -> HostedRunResult[Any]:
        return await self._context.run(request, self.caller, protocol_request=self.raw_event)


def help_command(context: ChannelContext) -> ChannelCommand:
    """Return the command that lists the commands available in the conversation."""

    async def explain(call: ChannelCommandContext) -> None:
        locale = parse_locale(call.request, call.caller.identity)
        commands = context.commands(scope=get_scope(call.request), locale=locale)
        shown = [command for command in commands if command.expose_in_ui]
        listed = "\n".join(f"/{command.name} - {command.description}" for command in shown)
        greeted = GREETING in call.request.attributes
        await call.reply(f"{context.texts.say('greeting.group', locale)}\n\n{listed}" if greeted else listed)

    return build_command(context, "help", explain, control=True)


def usual_commands(context: ChannelContext) -> list[ChannelCommand]:
    return [*session_commands(context), help_command(context)]
