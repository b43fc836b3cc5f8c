"""The groups of a `ChannelContext` on the host, one class per subject."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from math import inf
from typing import Any, Literal

from frontdesk.access.links import Links
from frontdesk.approvals.records import Voter
from frontdesk.channel_storage.values import ReplyTokens
from frontdesk.delivery.receipts import DeliveryEnder, DeliverySettler, Settlement
from frontdesk.errors import ConflictError, ForbiddenError, NotFoundError, UnsupportedError
from frontdesk.errors.requests import NO_RUN
from frontdesk.hooks import show_result
from frontdesk.host.context.scope import ScopedCalls
from frontdesk.host.wiring import Components
from frontdesk.interfaces.context import AwaitedReply, ChannelStorage
from frontdesk.interfaces.hooks import Feedback
from frontdesk.interfaces.linker import IdentityLinker, SupportsLinkQuestions, SupportsLinkReturn, SupportsLinkRoutes
from frontdesk.interfaces.target import GivesUpQuestions
from frontdesk.models.approval import ApprovalAnswer, AuditLine, Decision, PendingApproval, WaitingPage
from frontdesk.models.channel_storage import Leadership, SealedToken
from frontdesk.models.conversation import TranscriptPage
from frontdesk.models.delivery import Cancelled, Delivery, InboxItem
from frontdesk.models.file import StoredFile
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.link import LinkChallenge, LinkRecord, LinkStatus, Whoami
from frontdesk.models.reply import Reply
from frontdesk.models.request import ChannelRequest
from frontdesk.models.result import HostedRunResult, HostedStreamResult
from frontdesk.models.run import RunChain, RunFilter, RunPage, RunRecord, RunStatus
from frontdesk.models.session import SessionName, SessionSummary
from frontdesk.models.watcher import RunWatcher
from frontdesk.runs.chains import read_run_cursor, write_run_cursor
from frontdesk.sessions.scope import build_tracked_name
from frontdesk.sessions.session_list import PastSessions, Transcripts, find_continued_by

MAX_RUNS_OF_PAGE = 200
_NO_EVENTS = "Only runs created with `background` and `stream` have stored events."


class HostRuns(ScopedCalls):
    """The `RunsContext` of one channel."""

    async def get(self, caller: Caller, run_id: str) -> RunRecord:
        record = await self._readable(caller, lambda owner: self.find(owner, run_id))
        if record is None:
            raise NotFoundError(NO_RUN)
        return await self.show(record.replace(continued_by=await find_continued_by(self._store, record)), caller)

    async def chain(self, caller: Caller, run_id: str) -> RunChain:
        return await self._show_chain(await self._find_chain(caller, run_id), caller)

    async def list_chain(self, caller: Caller, run_id: str) -> Sequence[RunRecord]:
        runs = await self._parts.chains.list_runs(await self._find_chain(caller, run_id))
        return [await self.show(run, caller) for run in runs]

    async def _find_chain(self, caller: Caller, run_id: str) -> RunChain:
        chain = await self._readable(caller, lambda owner: self._parts.chains.find(owner, run_id))
        if chain is None:
            raise NotFoundError(NO_RUN)
        return chain

    async def _show_chain(self, chain: RunChain, caller: Caller) -> RunChain:
        root = await self.show(chain.root, caller)
        is_alone = chain.newest.run_id == chain.root.run_id
        return chain.replace(root=root, newest=root if is_alone else await self.show(chain.newest, caller))

    async def list(
        self,
        caller: Caller,
        *,
        channel: str | None = None,
        session: str | None = None,
        session_prefix: str | None = None,
        status: RunStatus | None = None,
        since: float | None = None,
        roots_only: bool = False,
        cursor: str | None = None,
        limit: int = 50,
    ) -> RunPage:
        owner = (await self._authorize(caller)).isolation_key
        after = None if cursor is None else read_run_cursor(cursor)
        if owner is None:
            return RunPage()
        where = RunFilter(
            channel=channel,
            session=session,
            session_prefix=session_prefix,
            status=status,
            since=since,
            roots_only=roots_only,
        )
        part = await self._store.runs.page(owner, where, after=after, limit=max(1, min(limit, MAX_RUNS_OF_PAGE)))
        return RunPage(
            runs=tuple([await self.show(run, caller) for run in part.runs]),
            cursor=None if part.after is None else write_run_cursor(part.after),
            total=part.total,
            is_total_exact=part.is_total_exact,
        )

    async def cancel(self, caller: Caller, run_id: str) -> RunRecord:
        owner = await self._owner(caller, NO_RUN)
        record = await self._parts.chains.cancel(owner, run_id, caller.identity)
        if record is None:
            raise NotFoundError(NO_RUN)
        return await self.show(record, caller)

    async def cancel_chain(self, caller: Caller, run_id: str) -> RunChain:
        owner = await self._owner(caller, NO_RUN)
        chain = await self._parts.chains.cancel_chain(owner, run_id, caller.identity)
        if chain is None:
            raise NotFoundError(NO_RUN)
        return await self._show_chain(chain, caller)

    async def delete(self, caller: Caller, run_id: str) -> None:
        record = await self.cancel(caller, run_id)
        async with self._store.transaction() as transaction:
            transaction.delete_run(record.owner, run_id)

    async def follow(self, caller: Caller, run_id: str, *, stored_events_only: bool = False) -> HostedStreamResult[Any]:
        record = await self._find_readable(caller, run_id)
        if stored_events_only and not (record.background and record.stream):
            raise ConflictError(_NO_EVENTS, param="stream", code="no_events")
        return self.follow_record(record, caller)

    async def list_stored_updates(self, caller: Caller, run_id: str) -> Sequence[Any]:
        record = await self._find_readable(caller, run_id)
        if not (record.background and record.stream):
            return ()
        return await self._parts.background.followers.list_stored(record)

    async def follow_chain(
        self, caller: Caller, run_id: str, *, waits: bool = False
    ) -> AsyncGenerator[HostedStreamResult[Any], None]:
        record = await self._find_readable(caller, run_id)
        return self._parts.chains.follow_chain(record, lambda ended: self.show(ended, caller), waits=waits)

    async def _find_readable(self, caller: Caller, run_id: str) -> RunRecord:
        record = await self._readable(caller, lambda owner: self.find(owner, run_id))
        if record is None:
            raise NotFoundError(NO_RUN)
        return record

    async def watch(self, caller: Caller, run_id: str, watcher: RunWatcher, *, includes_ended: bool = False) -> str:
        chain = await self._find_chain(caller, run_id)
        return await self._parts.watchers.add(
            chain, self.channel, caller.identity, watcher, includes_ended=includes_ended
        )

    async def watchers(self, caller: Caller, run_id: str) -> Sequence[RunWatcher]:
        chain = await self._find_chain(caller, run_id)
        return await self._parts.watchers.list(chain.root.owner, chain.root.chain_id)

    async def unwatch(self, caller: Caller, run_id: str, watcher_id: str) -> None:
        chain = await self._find_chain(caller, run_id)
        await self._parts.watchers.remove(chain.root.owner, chain.root.chain_id, watcher_id)

    async def cancel_background(self, caller: Caller, *, conversation_id: str | None = None) -> Sequence[RunRecord]:
        owner = await self._owner(caller)
        if conversation_id is not None:
            conversation_id = await self._parts.aliases.first_name(self.channel, conversation_id)
        cancelled: list[RunRecord] = []
        for job in await self._store.background.of_owner(owner):
            request, run_id = job.admitted.request, job.admitted.run_id
            # A run that is only held, under an idempotency key, has a caller who waits for it.
            if not request.background or not self._in_reach(request, conversation_id):
                continue
            await self._parts.background.cancel(owner, run_id)
            record = await self._store.runs.get(owner, run_id)
            if record is not None:
                cancelled.append(record)
        return cancelled

    def _in_reach(self, request: ChannelRequest, group: str | None) -> bool:
        """Return True if a caller may cancel a request here: any own one in a direct chat, in a group only its own."""
        here = request.channel == self.channel and request.group and request.conversation_id == group
        return group is None or here

    async def find(self, owner: str, run_id: str) -> RunRecord | None:
        """Return an active or stored run of an owner."""
        return await self._parts.chains.find_run(owner, run_id)

    async def show(self, record: RunRecord, caller: Caller) -> RunRecord:
        """Apply the response hook of this channel to a run, so that hidden content stays hidden on later reads."""
        channel = self._parts.channels.get(self.channel)
        if channel is None or channel.response_hook is None or record.result is None:
            return record
        request = ChannelRequest(
            channel=self.channel,
            input=record.input,
            identity=caller.identity,
            run_id=record.run_id,
            stream=record.stream,
            background=record.background,
            metadata=record.metadata,
            attributes=record.details,
        )
        recorded = HostedRunResult(result=record.result, run=record)
        return record.replace(result=(await show_result(channel, recorded, request, caller.identity)).result)

    def follow_record(self, record: RunRecord, caller: Caller) -> HostedStreamResult[Any]:
        """Stream the updates of a run that was looked up before."""
        return self._parts.chains.follow(record, lambda ended: self.show(ended, caller))


class HostApprovals(ScopedCalls):
    """The `ApprovalsContext` of one channel."""

    async def pending(self, caller: Caller) -> Sequence[PendingApproval]:
        return await self._store.approvals.pending(await self._owner(caller))

    async def waiting(self, caller: Caller, *, after: str | None = None, limit: int = 100) -> WaitingPage:
        if caller.anonymous:
            await self._authorize(caller)
            return WaitingPage()
        return await self._parts.votes.list_waiting(await self._voter(caller), after, limit)

    async def get(self, caller: Caller, approval_id: str) -> PendingApproval:
        approval, _ = await self._parts.decisions.look(await self._voter(caller), approval_id)
        if approval is None:
            raise NotFoundError("Approval not found.")
        return await self._parts.names.with_decider(approval)

    async def decide(
        self,
        caller: Caller,
        approval_id: str,
        approved: bool,
        *,
        digest: str | None = None,
        reason: str | None = None,
    ) -> Decision:
        voter, decisions = await self._voter(caller), self._parts.decisions
        answer = ApprovalAnswer(approval_id=approval_id, approved=approved, reason=reason)
        if not voter.key:
            # An approver who was never here before gets a key with the first vote; nobody else does.
            question, seat = await decisions.look(voter, approval_id)
            if question is None or seat is None or caller.anonymous:
                return Decision(outcome="not_yours")
            voter = voter.replace(key=await self._parts.gate.issue(caller.identity) or "")
            if not voter.key:
                return Decision(outcome="not_yours")
        new_run_id, wake = self._parts.gate.new_run_id, self._parts.events.intake.wake
        decision = await decisions.decide(voter, answer, digest, new_run_id, wake)
        return await self._parts.names.of_decision(decision)

    async def may_decide(self, caller: Caller, approval_id: str) -> bool:
        _, seat = await self._parts.decisions.look(await self._voter(caller), approval_id)
        return seat is not None

    async def vote(self, caller: Caller, approval_id: str, approved: bool) -> Decision | None:
        # All others are answered behind the gate, where a hook can say who the caller is.
        if await self._store.approvals.find(approval_id) is None:
            return None
        return await self.decide(caller, approval_id, approved)

    async def build_request(self, caller: Caller, answers: Sequence[ApprovalAnswer]) -> ChannelRequest:
        hooked = self._parts.channels[self.channel].run_hook is not None
        await self._parts.gate.authorize(caller, self.channel, hooked=hooked)
        return ChannelRequest(channel=self.channel, operation="approval", approvals=tuple(answers))

    async def _voter(self, caller: Caller) -> Voter:
        """Return a caller as a voter, with its verified claims."""
        allowed = await self._authorize(caller)
        key, claims = allowed.isolation_key or "", allowed.verified_claims
        return Voter(identity=caller.identity, key=key, claims=claims, caller=caller)


_NO_LINKER = "This host has no identity linker."


class HostLinks(ScopedCalls):
    """The `LinksContext` of one channel."""

    def __init__(self, channel: str, parts: Components) -> None:
        super().__init__(channel, parts)
        self.principal_channel = parts.principals.home_of_channel

    async def begin(self, caller: Caller, *, return_to: str | None = None) -> LinkChallenge:
        linker, _ = await self._linker(caller)
        if return_to is not None and isinstance(linker, SupportsLinkReturn):
            return await linker.begin_from(caller.identity, return_to)
        return await linker.begin(caller.identity)

    async def complete(self, caller: Caller, proof: str) -> LinkRecord | LinkChallenge | None:
        return await (await self._linker(caller))[0].complete(caller.identity, proof)

    async def unlink(self, caller: Caller) -> bool:
        linker, _ = await self._linker(caller)
        linked = await linker.resolve(caller.identity) is not None
        if linked:
            await linker.unlink(caller.identity)
        return linked

    async def whoami(self, caller: Caller) -> Whoami:
        return await (await self._linker(caller))[1].whoami(caller.identity)

    async def status(self, caller: Caller) -> LinkStatus | None:
        if self._parts.links is None or self._parts.linker is None:
            await self._not_denied(caller)
            return None
        linker, links = await self._linker(caller)
        return LinkStatus(
            account=await links.whoami(caller.identity),
            name=await links.find_verified_name(caller.identity),
            way="sign_in" if isinstance(linker, SupportsLinkRoutes) else "code",
            question=await linker.find_question(caller.identity) if isinstance(linker, SupportsLinkQuestions) else None,
        )

    async def home(self, caller: Caller, *, fresh: bool = False) -> ChannelIdentity:
        links = self._parts.links
        return caller.identity if links is None else await links.get_home(caller.identity, fresh=fresh)

    async def _linker(self, caller: Caller) -> tuple[IdentityLinker, Links]:
        await self._not_denied(caller)
        if self._parts.links is None or self._parts.linker is None:
            raise UnsupportedError(_NO_LINKER)
        return self._parts.linker, self._parts.links


class HostSessions(ScopedCalls):
    """The `SessionsContext` of one channel."""

    async def reset(self, caller: Caller, *, conversation_id: str | None = None) -> str:
        return await self._parts.turns.rotate(await self.find_name(caller, conversation_id))

    async def list(
        self, caller: Caller, *, conversation_id: str | None = None, limit: int = 20
    ) -> Sequence[SessionSummary]:
        name = await self.find_name(caller, conversation_id)
        return await PastSessions(self._store).list(name, limit=limit)

    async def resume(self, caller: Caller, session_id: str, *, conversation_id: str | None = None) -> None:
        name = await self.find_name(caller, conversation_id)
        await PastSessions(self._store).resume(name, session_id)

    async def rename(
        self, caller: Caller, session_id: str, title: str | None, *, conversation_id: str | None = None
    ) -> None:
        name = await self.find_name(caller, conversation_id)
        await PastSessions(self._store).retitle(name, session_id, title)

    async def track(self, caller: Caller, key: str) -> None:
        owner = await self._owner(caller)
        record = await self._store.sessions.find(SessionName(owner=owner, kind="named", value=key))
        if record is None:
            raise NotFoundError("Session not found.", param="session_id")
        name = await self.name_for(owner, None)
        async with self._store.transaction() as transaction:
            transaction.name_session(name, record.session_id)

    async def transcript(
        self, caller: Caller, *, key: str | None = None, before: int | None = None, limit: int = 50
    ) -> TranscriptPage:
        owner = await self._owner(caller)
        named = None if key is None else SessionName(owner=owner, kind="named", value=key)
        name = named or await self.name_for(owner, None)
        return await Transcripts(self._store).page(name, before=before, limit=limit)

    async def find_name(self, caller: Caller, conversation_id: str | None) -> SessionName:
        """Return the session name of a direct chat, or of a group if one is given."""
        return await self.name_for(await self._owner(caller), conversation_id)

    async def name_for(self, owner: str, conversation_id: str | None) -> SessionName:
        """Like `find_name`, for an owner that was admitted."""
        if conversation_id is not None:
            conversation_id = await self._parts.aliases.first_name(self.channel, conversation_id)
        return build_tracked_name(
            self._parts.channels[self.channel].conversation_scope,
            owner=owner,
            channel=self.channel,
            conversation_id=conversation_id,
            group=conversation_id is not None,
        )


MAX_WAIT_SECONDS = 120.0
"""The limit of `accept_and_wait`. The conversation gets no other message during the wait."""


MAX_FEEDBACK_LENGTH = 2_000
FEEDBACK_SECONDS = 30 * 86_400.0
"""The seconds for which the feedback of a person on a run is known, so that repeated events add nothing."""


def _saw(row: Delivery, caller: Caller, conversation_id: str | None) -> bool:
    """Return True if a delivery was sent to the caller, or to the group in which the caller is."""
    if row.kind == "group":
        return conversation_id is not None and row.conversation_id == conversation_id
    return row.identity.key == caller.identity.key


class HostEvents(ScopedCalls):
    """The `EventsContext` of one channel."""

    def __init__(self, channel: str, parts: Components, sessions: HostSessions) -> None:
        super().__init__(channel, parts)
        self._sessions = sessions

    async def authorize(self, caller: Caller) -> None:
        self._parts.events.intake.take_rate(self.channel, caller)
        await self._authorize(caller)

    async def accept(self, item: InboxItem) -> bool:
        return await self._parts.events.intake.accept(item)

    def accept_and_wait(self, item: InboxItem, seconds: float) -> AbstractAsyncContextManager[AwaitedReply]:
        if not 0 < seconds <= MAX_WAIT_SECONDS:
            raise ValueError(f"seconds must be above 0 and at most {MAX_WAIT_SECONDS:g}, got {seconds!r}")
        return self._parts.events.intake.accept_and_wait(item, seconds)

    async def reply(self, item: InboxItem, reply: Reply | str, *, number: int = 0) -> None:
        await self._parts.events.intake.reply(item, reply, number)

    async def cancel_turns(
        self, item: InboxItem, *, rotate: bool = False, reply: Callable[[Cancelled], Reply | str] | None = None
    ) -> Cancelled:
        await self._authorize(item.caller)
        channel = self._parts.channels[self.channel]
        anyone = channel.cancel_by == "anyone" and channel.conversation_scope == "per_conversation"
        name = questions = None
        waits = isinstance(self._parts.target, GivesUpQuestions)
        if rotate or waits:
            # Who was never here starts anew in any case, and was asked nothing.
            with suppress(NotFoundError):
                place = item.request.conversation_id if item.request.group else None
                name = await self._sessions.find_name(item.caller, place)
        if waits and name is not None and not rotate:
            find = partial(self._store.sessions.find, name)
            questions = self._parts.open_questions(find, item.caller.identity).abandon
        name = name if rotate else None
        cancel = self._parts.events.cancellations.cancel_turns
        return await cancel(item, anyone=anyone, rotate=name, reply=reply, questions=questions)

    async def is_finished(self, item: InboxItem) -> bool:
        known = await self._store.inbox.find(self.channel, item.event_id)
        return known is None or known.is_done

    def seal_reply_token(self, item: InboxItem, token: str, *, expires_at: float) -> InboxItem:
        return self._tokens().seal(item, token, expires_at)

    def open_reply_token(self, token: SealedToken | None) -> str | None:
        return self._tokens().open(token)

    def _tokens(self) -> ReplyTokens:
        return ReplyTokens(self.channel, self._parts.storages.sealer, self._parts.clock)

    async def add_feedback(
        self,
        caller: Caller,
        *,
        receipt: str,
        value: Literal["up", "down"],
        reason: str = "",
        conversation_id: str | None = None,
        at: float | None = None,
    ) -> Feedback | None:
        parts = self._parts
        parts.events.intake.take_rate(self.channel, caller)
        by = (await self._authorize(caller)).isolation_key or ""
        row = await self._store.outbox.by_receipt(self.channel, receipt)
        if conversation_id is not None:
            conversation_id = await parts.aliases.first_name(self.channel, conversation_id)
        if row is None or not row.run_id or not _saw(row, caller, conversation_id):
            return None
        known = parts.storages.of(self.channel, "feedback", holds_tokens=False)
        feedback = Feedback(
            run_id=row.run_id,
            identity=caller.identity,
            value=value,
            reason=reason[:MAX_FEEDBACK_LENGTH],
            channel=self.channel,
            at=parts.clock.now() if at is None else at,
        )
        key = f"{row.run_id}:{caller.identity.native_id}"
        before, content = await known.get(key), {"value": value, "reason": feedback.reason}
        if before is not None and before.value == content:
            return None
        version = None if before is None else before.version
        expires_at = parts.clock.now() + FEEDBACK_SECONDS
        if await known.compare_and_set(key, version, content, expires_at=expires_at) is None:
            # The same event, at another replica.
            return None
        line = AuditLine(at=feedback.at, owner=row.owner, subject=row.run_id, action="feedback", by=by, reason=value)
        async with self._store.transaction() as transaction:
            transaction.add_audit(line)
        return feedback

    async def settle_delivery(
        self,
        *,
        receipt: str | None = None,
        key: str | None = None,
        status: Settlement,
        reason: str | None = None,
        at: float | None = None,
    ) -> bool:
        settling = DeliverySettler(self._store, self._parts.clock)
        return await settling.settle(self.channel, receipt, key, status, reason, at)

    async def end_deliveries(
        self, place: str, *, reason: str, before: float | None = None, also: Callable[[str], bool] | None = None
    ) -> int:
        parts = self._parts
        ending = DeliveryEnder(self._store, parts.clock, parts.aliases, parts.outbox, self.channel)
        return await ending.end(place, reason, inf if before is None else before, also)

    async def alias_conversation(self, old: str, new: str) -> None:
        await self._parts.aliases.move(self.channel, old, new)


class HostStorage(ScopedCalls):
    """The `StorageContext` of one channel."""

    def values(self, name: str, *, holds_tokens: bool = True) -> ChannelStorage:
        return self._parts.storages.of(self.channel, name, holds_tokens=holds_tokens)

    def leadership(self, name: str) -> AbstractAsyncContextManager[Leadership]:
        return self._parts.leaders.lead(self.channel, name)

    async def put_file(self, caller: Caller, data: bytes, *, media_type: str, name: str = "") -> StoredFile:
        await self._authorize(caller)
        owner = await self._parts.gate.issue(caller.identity)
        if not owner:
            raise ForbiddenError
        visitor = await self._parts.visitors.includes(caller)
        return await self._store.files.put(owner, data, media_type=media_type, name=name, visitor=visitor)

    async def get_file(self, caller: Caller, file_id: str) -> tuple[StoredFile, bytes]:
        kept = await self._readable(caller, lambda owner: self._store.files.get(owner, file_id))
        if kept is None:
            raise NotFoundError("File not found.")
        return kept

    async def put_reference(self, caller: Caller, reference: Mapping[str, Any]) -> None:
        if not reference:
            return await self._parts.contacts.forget(caller.identity)
        await self._not_denied(caller)
        identity = caller.identity
        owner = await self._parts.gate.issue(identity)
        if not owner:
            raise ForbiddenError
        await self._parts.contacts.keep(identity, owner, reference)

    async def get_reference(self, identity: ChannelIdentity) -> Mapping[str, Any]:
        if identity.channel != self.channel:
            return {}
        return (await self._store.identities.reach(identity)).reference
