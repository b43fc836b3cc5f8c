"""The API of the host for one channel."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import CoroutineType
from typing import Any, TypeVar

from frontdesk.approvals.http_votes import HttpVote
from frontdesk.channel_storage.values import HostCommandState
from frontdesk.chat.commands import get_scope, list_names, list_offered, out_of_scope, parse_locale
from frontdesk.errors import KeyReusedError, RunExistsError
from frontdesk.hooks import call_command
from frontdesk.host.context.groups import HostApprovals, HostEvents, HostLinks, HostRuns, HostSessions, HostStorage
from frontdesk.host.context.scope import ScopedCalls
from frontdesk.host.conversations.context import HostConversations
from frontdesk.host.wiring import Components
from frontdesk.http.idempotency import HEADER
from frontdesk.interfaces.channel import (
    AllowsOrigin,
    ChannelCommand,
    ChannelCommandContext,
    ChannelContext,
    SettleAnswers,
)
from frontdesk.interfaces.context import CommandScope
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.identity import Caller
from frontdesk.models.request import AdmittedRequest, ChannelRequest, ChannelSession
from frontdesk.models.result import HostedRunResult, HostedStreamResult
from frontdesk.models.run import RunRecord
from frontdesk.sessions.results import build_replayed_stream

T = TypeVar("T")

POLL_INTERVAL_SECONDS = 0.01


class HostCommands(ScopedCalls):
    """The commands of one channel, those of linking included."""

    def __init__(self, channel: str, parts: Components, sessions: HostSessions) -> None:
        super().__init__(channel, parts)
        self._sessions = sessions
        self._commands: dict[str, ChannelCommand] = {}
        self._by_name: dict[str, ChannelCommand] = {}
        """The commands by all of their names, in every language."""
        self._before_link: set[str] = set()

    def add(self, commands: Sequence[ChannelCommand], *, before_link: bool = False) -> None:
        """Add commands of this channel. Link commands can be used before an account is linked."""
        for command in commands:
            self._commands[command.name] = command
            self._by_name.update(dict.fromkeys(list_names(command), command))
        if before_link:
            self._before_link.update(command.name for command in commands)

    def list(self, *, scope: CommandScope | None = None, locale: str | None = None) -> Sequence[ChannelCommand]:
        return list_offered(self._commands.values(), scope, locale)

    def find(self, name: str) -> ChannelCommand | None:
        return self._by_name.get(name)

    async def run(self, name: str, context: ChannelCommandContext) -> bool:
        command = self.find(name)
        owner = None
        if command is not None and command.name in self._before_link:
            await self._not_denied(context.caller)
        else:
            owner = (await self._authorize(context.caller)).isolation_key
        if command is None:
            return False
        refusal = out_of_scope(command, get_scope(context.request))
        if refusal is not None:
            locale = parse_locale(context.request, context.caller.identity)
            await context.reply(self._parts.texts.say(refusal, locale, name=name))
            return True
        await self._equip(context, owner)
        await call_command(command, context)
        return True

    async def _equip(self, context: ChannelCommandContext, owner: str | None) -> None:
        """Give a command its state and the tracked session."""
        request, parts = context.request, self._parts
        group = request.conversation_id if request.group else None
        native_id = context.caller.identity.native_id
        context.state = HostCommandState(parts.storages, parts.aliases, self.channel, native_id, group)
        tracks = parts.channels[self.channel].session_family == "host_tracked"
        if tracks and context.session is None and owner is not None:
            record = await self._store.sessions.find(await self._sessions.name_for(owner, group))
            context.session = None if record is None else ChannelSession(session_id=record.session_id)


class HostContext(ChannelContext):
    """The `ChannelContext` of one channel. Its groups are built once."""

    def __init__(
        self,
        channel: str,
        target: TargetInfo,
        parts: Components,
        *,
        anonymous_allowed: bool,
        adopts_ids: bool = False,
        allows_origin: AllowsOrigin | None = None,
    ) -> None:
        self.channel, self.target, self.texts = channel, target, parts.texts
        self.anonymous_allowed = anonymous_allowed
        self.adopts_ids = adopts_ids
        self.allows_origin = allows_origin
        self.public_url = parts.public_url
        self.shares_store = parts.store.lease_seconds is not None
        self._parts = parts
        runs, sessions = HostRuns(channel, parts), HostSessions(channel, parts)
        self._runs, self._commands = runs, HostCommands(channel, parts, sessions)
        self.runs, self.sessions = runs, sessions
        self.approvals = HostApprovals(channel, parts)
        self.links = HostLinks(channel, parts)
        self.events = HostEvents(channel, parts, sessions)
        self.storage = HostStorage(channel, parts)
        self.conversations = HostConversations(channel, parts)

    async def allow(self, caller: Caller) -> None:
        await self._parts.gate.authorize(caller, self.channel)

    def run(
        self,
        request: ChannelRequest,
        caller: Caller,
        *,
        protocol_request: Any = None,
        settle: SettleAnswers | None = None,
    ) -> "CoroutineType[Any, Any, HostedRunResult[Any]]":
        if request.approvals:
            return self._run_answers(request, caller, protocol_request, settle)
        if request.idempotency_key is not None:
            return self._run_once(request, caller, protocol_request, settle)
        return self._parts.pipeline.run(request, caller, protocol_request, settle)

    async def _run_answers(
        self, request: ChannelRequest, caller: Caller, protocol_request: Any, settle: SettleAnswers | None
    ) -> HostedRunResult[Any]:
        """Record the answers to other people's questions, or resume the run that has asked."""
        vote = await self._parts.votes.admit(request, caller)
        if vote is not None:
            return await self._vote(vote, caller)
        if request.idempotency_key is not None:
            return await self._run_once(request, caller, protocol_request, settle)
        return await self._parts.pipeline.run(request, caller, protocol_request, settle)

    async def _vote(self, vote: HttpVote, caller: Caller) -> HostedRunResult[Any]:
        if vote.admitted.request.idempotency_key is None:
            return await self._parts.votes.record(vote)
        outcome = await self._once(vote.admitted, lambda _: self._parts.votes.record(vote))
        return outcome if isinstance(outcome, HostedRunResult) else HostedRunResult(result=outcome.result, run=outcome)

    async def _run_once(
        self, request: ChannelRequest, caller: Caller, protocol_request: Any, settle: SettleAnswers | None
    ) -> HostedRunResult[Any]:
        """Run the target, or return the result of an earlier request with the same idempotency key."""
        pipeline = self._parts.pipeline
        outcome = await self._once(await pipeline.admit(request, caller, protocol_request, settle), pipeline.proceed)
        if isinstance(outcome, HostedRunResult):
            return outcome
        ended = outcome if outcome.background else await self._parts.background.followers.wait_for_end(outcome)
        shown = await self._runs.show(ended, caller)
        return HostedRunResult(result=shown.result, run=shown)

    async def _once(
        self, admitted: AdmittedRequest, proceed: Callable[[AdmittedRequest], Awaitable[T]]
    ) -> T | RunRecord:
        """Process a request, or return the run of an earlier one with its key. Reject a different request with the
        key."""
        while True:
            run = await self._runs.find(admitted.owner, admitted.run_id)
            if run is not None and run.request_hash != admitted.request.request_hash:
                raise KeyReusedError(param=HEADER)
            if run is not None:
                return run
            try:
                return await proceed(admitted)
            except RunExistsError:
                # Another request at the same time is being written, or refused.
                await asyncio.sleep(POLL_INTERVAL_SECONDS)

    async def stream(
        self,
        request: ChannelRequest,
        caller: Caller,
        *,
        protocol_request: Any = None,
        settle: SettleAnswers | None = None,
    ) -> HostedStreamResult[Any]:
        pipeline = self._parts.pipeline
        if request.approvals and (vote := await self._parts.votes.admit(request, caller)) is not None:
            return build_replayed_stream(await self._vote(vote, caller))
        admitted = await pipeline.admit(request, caller, protocol_request, settle)
        if request.idempotency_key is not None:
            return await self._stream_once(admitted, caller)
        return self._live(await pipeline.proceed_stream(admitted), caller)

    async def _stream_once(self, admitted: AdmittedRequest, caller: Caller) -> HostedStreamResult[Any]:
        outcome = await self._once(admitted, self._parts.pipeline.proceed_stream)
        if isinstance(outcome, HostedStreamResult):
            return self._live(outcome, caller)
        if outcome.background and outcome.stream:
            return self._runs.follow_record(outcome, caller)
        return self._parts.background.followers.replay(outcome, lambda ended: self._runs.show(ended, caller))

    def _live(self, stream: HostedStreamResult[Any], caller: Caller) -> HostedStreamResult[Any]:
        if stream.run.status == "queued" and stream.run.stream:
            return self._runs.follow_record(stream.run, caller)
        return stream

    async def submit(self, request: ChannelRequest, caller: Caller, *, protocol_request: Any = None) -> RunRecord:
        hosted = await self.run(request.replace(background=True), caller, protocol_request=protocol_request)
        return hosted.run

    def new_id(self, prefix: str) -> str:
        return self._parts.ids.new(prefix)

    def now(self) -> float:
        return self._parts.clock.now()

    def add_commands(self, commands: Sequence[ChannelCommand], *, before_link: bool = False) -> None:
        """Add commands of this channel. Link commands can be used before an account is linked."""
        self._commands.add(commands, before_link=before_link)

    def commands(self, *, scope: CommandScope | None = None, locale: str | None = None) -> Sequence[ChannelCommand]:
        return self._commands.list(scope=scope, locale=locale)

    def find_command(self, name: str) -> ChannelCommand | None:
        return self._commands.find(name)

    async def run_command(self, name: str, context: ChannelCommandContext) -> bool:
        return await self._commands.run(name, context)
