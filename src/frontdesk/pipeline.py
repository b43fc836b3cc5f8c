"""The whole way of a request, top to bottom.

    identify -> authorize -> hook -> admit -> open session -> run target -> record -> deliver

A stranger reaches no operator code and leaves nothing behind, so the caller is identified and authorized before the
hook runs. What the hook changed is decided about again at `admit`. One session runs one turn at a time. What a turn
leaves behind is written in one transaction, before anybody gets the answer.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from agent_framework import Message, MiddlewareFailure

from frontdesk.abc.channel import Channel, SettleAnswers
from frontdesk.abc.hooks import ChannelResponseContext, ResponseHook
from frontdesk.abc.target import Target, TargetStream
from frontdesk.access.gate import Gate, as_claimed
from frontdesk.approvals.answers import Answers, answered, resumed
from frontdesk.approvals.pending import questions, taken
from frontdesk.data.approval import PendingApproval
from frontdesk.data.delivery import Delivery, InboxItem, Route
from frontdesk.data.identity import Caller
from frontdesk.data.request import AdmittedRequest, ChannelRequest, ConversationScope
from frontdesk.data.result import HostedRunResult, HostedStreamResult
from frontdesk.data.run import RunFailure, RunRecord, RunStatus
from frontdesk.delivery.outbox import Outbox
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.presence import Presence
from frontdesk.delivery.routing import ORIGINATING
from frontdesk.errors import (
    ApprovalExistsError,
    ApprovalIdError,
    CodecError,
    FrontdeskError,
    IdentityChangedError,
    InternalError,
    InvalidRequestError,
    LostAnswerError,
    LostRunError,
    NotStorableError,
    RequestError,
    RunExistsError,
    SessionRequiredError,
    SessionTooLargeError,
    StaleTurnError,
    StoreError,
    StoreUnavailableError,
    TargetError,
    UnlinkedError,
)
from frontdesk.kit.aio.current import cancelled_run, current_turn
from frontdesk.kit.framework.client_outputs import need_new_calls, tells_of_calls
from frontdesk.kit.framework.contents import open_calls
from frontdesk.kit.hooks import call_response_hook, call_run_hook, call_stream_hook
from frontdesk.loggers import runs as log
from frontdesk.sessions.active import ActiveRun, ActiveRuns
from frontdesk.sessions.branches import Branches
from frontdesk.sessions.endings import ended_stream, is_redone, is_refusal, joined, tell_of_run
from frontdesk.sessions.holds import Holds
from frontdesk.sessions.job import Job
from frontdesk.sessions.record import CANCELLED, Recorder, answer_hosting
from frontdesk.sessions.turn import Turn
from frontdesk.sessions.turns import Turns

Result = HostedRunResult[Any]
Defer = Callable[[AdmittedRequest, str | None, InboxItem | None, float | None], Awaitable[RunRecord]]

_TRIES = 8
_NOWHERE_TO_WAIT = "A tool needs a human's word, and without a session nothing can wait for it."
_TOO_LATE = "run %s went on after it was cancelled, and what it said then was dropped"


class Pipeline:
    """Takes a request from the door to its answer."""

    def __init__(
        self,
        *,
        target: Target,
        channels: Mapping[str, Channel],
        gate: Gate,
        turns: Turns,
        branches: Branches,
        active: ActiveRuns,
        recorder: Recorder,
        answers: Answers,
        planner: Planner,
        outbox: Outbox,
        presence: Presence,
        defer: Defer,
        holds: Holds,
    ) -> None:
        self._target, self._channels, self._gate = target, channels, gate
        self._turns, self._branches, self._active = turns, branches, active
        self._recorder, self._answers, self._presence = recorder, answers, presence
        self._planner, self._outbox, self._defer = planner, outbox, defer
        self._tells_own_history = target.info.history == "own"
        self._holds = holds
        self._scopes: dict[str, ConversationScope | None] = {
            name: one.conversation_scope if one.session_family == "host_tracked" else None
            for name, one in channels.items()
        }

    async def run(
        self, request: ChannelRequest, caller: Caller, protocol_request: Any = None, settle: SettleAnswers | None = None
    ) -> Result:
        """One question, one answer; `queued`, without a result, if it goes to the background."""
        return await self.proceed(await self.admit(request, caller, protocol_request, settle))

    async def submit(self, request: ChannelRequest, caller: Caller) -> RunRecord:
        """Queue a run of the operator's own for somebody, who is not seen anywhere by that."""
        return (await self._defer_run(await self.admit(request, caller))).run

    async def proceed(self, admitted: AdmittedRequest) -> Result:
        """The same for a request that was admitted already."""
        queued = None if self._stays(admitted) else await self._received(admitted)
        return await self.run_admitted(admitted) if queued is None else queued

    async def answer(self, event: InboxItem, request: ChannelRequest, settle: SettleAnswers | None = None) -> Result:
        """Answers an event that a platform sent: the answer goes out as a delivery, and the event is done with it."""
        admitted = (await self.admit(request, event.caller, event.payload, settle)).replace(pushes=True)
        if admitted.request.background:
            return await self._defer_run(admitted, event, seen_at=event.received_at)
        await self._presence.see(admitted, event.received_at)
        return await self.run_admitted(admitted, patient=True, event=event)

    async def run_admitted(
        self,
        admitted: AdmittedRequest,
        *,
        patient: bool = False,
        job: Job | None = None,
        event: InboxItem | None = None,
    ) -> Result:
        """The part of the way that lies behind the gate."""
        run = await self._open(admitted, patient, job, event)
        try:
            try:
                result = await self._target.run(run.turn)
            except InvalidRequestError:
                # What the target can't take leaves nothing behind.
                await self._revoke(run.turn)
                raise
            except BaseException as error:
                return await self._fail(run, error)
            return await self._conclude(run, result)
        except RequestError as error:
            tell_of_run(error, run.record)
            raise
        finally:
            self._close(run)

    async def proceed_stream(self, admitted: AdmittedRequest) -> HostedStreamResult[Any]:
        """Give the answer to an admitted request in pieces; `queued`, without any, if it goes to the background."""
        queued = None if self._stays(admitted) else await self._received(admitted)
        return await self.stream_admitted(admitted) if queued is None else ended_stream(queued)

    async def stream_admitted(
        self, admitted: AdmittedRequest, *, patient: bool = False, job: Job | None = None
    ) -> HostedStreamResult[Any]:
        """The part of the way that lies behind the gate."""
        run = await self._open(admitted, patient, job)
        try:
            if self._channels[admitted.request.channel].tells_sessions:
                await self._turns.announce(run.turn)
            stream = await self._target.stream(run.turn)
        except InvalidRequestError:
            await self._revoke(run.turn)
            self._close(run)
            raise
        except BaseException as error:
            try:
                return ended_stream(await self._fail(run, error))
            except RequestError as told:
                tell_of_run(told, run.record)
                raise
            finally:
                self._close(run)
        outcome: list[Result] = []
        updates = self._updates(run, stream, outcome)
        return HostedStreamResult(run.record, updates, outcome, lambda: self._abandon(run, stream, updates))

    async def _updates(self, run: ActiveRun, stream: TargetStream, outcome: list[Result]) -> AsyncGenerator[Any, None]:
        admitted, job = run.turn.admitted, run.turn.job
        hook = self._channels[admitted.request.channel].stream_transform_hook
        shown: list[Any] = []
        try:
            try:
                async for update in stream:
                    if run.cancel_requested:
                        log.warning(_TOO_LATE, run.record.run_id)
                        raise asyncio.CancelledError
                    if hook is not None:
                        update = await call_stream_hook(hook, update, admitted.request.channel)
                        if update is None:
                            continue
                        shown.append(update)
                    if job is not None and job.log is not None:
                        await job.log.add(update)
                    yield update
                result = await stream.final()
            except BaseException as error:
                outcome.append(await self._fail(run, error))
                return
            finally:
                await stream.close()
            outcome.append(await self._conclude(run, result, shown if hook is not None else None))
        finally:
            self._close(run)

    async def _abandon(self, run: ActiveRun, stream: TargetStream, updates: AsyncGenerator[Any, None]) -> None:
        await updates.aclose()
        if self._active.get(run.record.owner, run.record.run_id) is run:
            # Nobody ever asked for the first update, so the generator had nothing to clean up.
            await stream.close()
            try:
                await self._fail(run, asyncio.CancelledError())
            except asyncio.CancelledError:
                pass
            finally:
                self._close(run)

    async def admit(
        self, request: ChannelRequest, caller: Caller, protocol_request: Any = None, settle: SettleAnswers | None = None
    ) -> AdmittedRequest:
        """From the door through the gate; which questions are answered is looked up behind it, for their owner."""
        wire = hooked = as_claimed(request, caller)
        hook = self._channels[wire.channel].run_hook
        allowed = await self._gate.let_in(caller, wire.channel, hooked=hook is not None)
        if hook is not None:
            hooked = await call_run_hook(hook, wire, target=self._target.native, protocol_request=protocol_request)
        admitted = await self._gate.admit(hooked, caller, wire, allowed)
        return await self._answers.find(admitted, settle) if admitted.request.approvals else admitted

    def _stays(self, admitted: AdmittedRequest) -> bool:
        """Tell whether an answer goes back on its wire, and nobody asks where its caller is, as with most requests."""
        return not (self._presence.matters or admitted.request.background or admitted.targets_elsewhere)

    async def _received(self, admitted: AdmittedRequest) -> Result | None:
        """Note where a person is; hand their run to the background if it goes there."""
        if admitted.request.background:
            return await self._defer_run(admitted, seen_at=admitted.admitted_at)
        await self._presence.see(admitted, admitted.admitted_at)
        # If nothing of the answer goes back to where the request came from, nobody waits for it there.
        return None if await self._returns(admitted) else await self._defer_run(admitted)

    async def _returns(self, admitted: AdmittedRequest) -> bool:
        """Tell whether anything of the answer goes back to where the request came from, as things are now."""
        return not admitted.targets_elsewhere or (await self._planner.route(admitted)).originating

    async def _defer_run(
        self, admitted: AdmittedRequest, event: InboxItem | None = None, *, seen_at: float | None = None
    ) -> Result:
        """Hands a run to the background, unless it can be known now that it can't run; who asked was seen `seen_at`."""
        request = admitted.request
        if not request.background or (request.stream and not await self._returns(admitted)):
            # Nobody listens where the request came from.
            admitted = admitted.replace(request=request.replace(background=True, stream=False))
        if self._active.get(admitted.owner, admitted.run_id) is not None:
            raise RunExistsError
        scope = self._scopes[admitted.request.channel]
        self._turns.check(admitted, scope)
        self._branches.check(admitted, scope)
        await self._turns.check_previous(admitted)
        record = await self._defer(admitted, self._turns.new_id(admitted, scope), event, seen_at)
        return HostedRunResult(result=None, run=record)

    async def fail_admitted(self, admitted: AdmittedRequest, job: Job, failure: RunFailure) -> None:
        """Ends a background run that can't go on: its question stays, and says how it ended."""
        scope = self._scopes[admitted.request.channel]
        turn = await self._branches.open(admitted, job, tracked=scope, patient=True)
        turn.job = job
        try:
            run = self._recorder.begin(turn)
            await self._branches.rejoin(turn)
            await self._recorder.ended(turn, run, "failed", failure, await self._failure_notice(admitted, run, failure))
            await self._outbox.wake(turn.deliveries)
        finally:
            self._turns.close(turn)

    async def _open(
        self, admitted: AdmittedRequest, patient: bool, job: Job | None = None, event: InboxItem | None = None
    ) -> ActiveRun:
        request = admitted.request
        self._target.check(request)
        tracked = self._scopes[request.channel]
        if job is None:
            turn = await self._turns.open(admitted, tracked=tracked, patient=patient)
        else:
            turn = await self._branches.open(admitted, job, tracked=tracked, patient=patient)
        turn.job, turn.event = job, event
        if self._tells_own_history:
            turn.answer_hosting = partial(self._answer_hosting, turn)
        try:
            if request.run_id is not None and job is None:
                # Asked only now: until the session was free, another request may have used the id.
                await self._recorder.refuse_known(admitted, request.run_id)
            if turn.record is not None and tells_of_calls(request.input):
                need_new_calls(request.input, await turn.history())
            elif job is not None or request.approvals:
                # Whether it can be read is known before anything is written for the turn.
                await turn.history()
            told = await (self._answered(turn) if request.approvals else self._target.prepare(turn))
            record = self._recorder.begin(turn, told)
            if request.approvals:
                record = record.replace(open_calls=open_calls([*await turn.history(), *told]) or None)
            if job is not None or request.approvals or request.idempotency_key is not None:
                with self._active.reserved(record):
                    await self._start(turn, record)
                    if request.approvals:
                        # Last: whatever can be refused is refused before anything is decided.
                        attempt = await self._answers.take(admitted.owner, request.approvals)
                        turn.answer(request.approvals, attempt)
            run = self._active.begin(turn, record)
        except BaseException as error:
            if turn.held:
                if isinstance(error, RequestError):
                    await self._holds.revoke(turn)
                self._holds.let_go(turn)
            self._turns.close(turn)
            raise
        current_turn.set(turn)
        return run

    async def _start(self, turn: Turn, record: RunRecord) -> None:
        """Writes that a run begins, where that must be known if this process ends."""
        if turn.job is None and turn.admitted.request.idempotency_key is not None:
            turn.job, turn.held = await self._holds.hold(turn, record), True
        else:
            await self._recorder.started(turn, record)

    async def _revoke(self, turn: Turn) -> None:
        if turn.held:
            await self._holds.revoke(turn)

    async def _answered(self, turn: Turn) -> Sequence[Message]:
        """What takes the session further beside the input: a human's answers, and results of the client's functions."""
        given = turn.admitted.request.approvals
        asked = await self._answers.asked(turn.admitted.owner, turn.record, given)
        return [*await self._target.prepare(turn), *resumed(asked, given)]

    def _close(self, run: ActiveRun) -> None:
        current_turn.set(None)
        self._active.end(run)
        if run.turn.held:
            self._holds.let_go(run.turn)
        self._turns.close(run.turn)

    async def _conclude(self, run: ActiveRun, result: Any, shown: list[Any] | None = None) -> Result:
        """Records what a run came to, and shows it as the channel's hook wants it; `shown` are updates that it saw."""
        if run.cancel_requested:
            # It ended although it was cancelled; what it did after that must not count.
            log.warning(_TOO_LATE, run.record.run_id)
            return await self._fail(run, asyncio.CancelledError())
        if run.turn.answering is not None and run.turn.answering.failure is not None:
            # The target has gone on without the tool that it was not allowed to begin.
            return await self._fail(run, run.turn.answering.failure)
        turn, admitted = run.turn, run.turn.admitted
        try:
            await self._branches.rejoin(turn)
        except asyncio.CancelledError as error:
            return await self._fail(run, error)
        run.cancellable = False
        try:
            asked = questions(result, admitted, run.record.session_id)
            if asked and (run.record.session_id is None or not admitted.request.store):
                return await self._fail(run, SessionRequiredError(_NOWHERE_TO_WAIT))
            way = await self._planned(run, result) if admitted.pushes or admitted.targets_elsewhere else ORIGINATING
            if asked:
                record = await self._asked(run, result, way, asked)
            else:
                record = await self._recorder.completed(turn, run.record, result, way)
        except (ApprovalIdError, UnlinkedError) as error:
            log.error("what run %s asks for can't be approved: %s", run.record.run_id, error)
            return await self._fail(run, error)
        except LostAnswerError as error:
            return await self._fail(run, error)
        except CodecError as error:
            log.error("what run %s left behind can't be stored: %s", run.record.run_id, error)
            return await self._fail(run, NotStorableError())
        except SessionTooLargeError as error:
            return await self._fail(run, error)
        except StaleTurnError:
            raise
        except StoreError as error:
            log.error("the end of run %s could not be written", run.record.run_id, exc_info=error)
            raise InternalError from error
        if turn.deliveries:
            await self._outbox.wake(turn.deliveries)
        if record.status != "completed":
            return HostedRunResult(result=None, run=record)
        hosted = HostedRunResult(result=result if shown is None else joined(shown, result), run=record)
        hook = self._channels[admitted.request.channel].response_hook
        # What goes out as a delivery has been through the hook.
        return hosted if hook is None or admitted.pushes else await self._deliver(hosted, admitted, hook)

    async def _asked(self, run: ActiveRun, result: Any, way: Route, asked: Sequence[PendingApproval]) -> RunRecord:
        """Record a result that asks a human, if those who could answer are still the same."""
        turn = run.turn
        new = await self._answers.new(turn.record, asked, may_repeat=self._target.info.checkpoints)
        for _ in range(_TRIES):
            turn.requester = await self._gate.requester(turn.admitted)
            try:
                return await self._recorder.completed(turn, run.record, result, way, new)
            except ApprovalExistsError:
                raise taken(new[0]) from None
            except IdentityChangedError:
                # Somebody of the family came or went; whether the requester did is looked at again.
                continue
        raise UnlinkedError

    async def _planned(self, run: ActiveRun, result: Any) -> Route:
        """The way of an answer that goes elsewhere, with what is sent there."""
        turn, admitted = run.turn, run.turn.admitted
        way = turn.way or await self._planner.route(admitted)
        ended = run.record.replace(status="completed")
        turn.deliveries = await self._planner.rows(admitted, result, ended, way, turn.messages)
        return way

    async def _answer_hosting(self, turn: Turn) -> Mapping[str, Any]:
        """What an answer says of its way, for those who keep it before it is recorded; all then say the same."""
        if turn.way is None:
            elsewhere = turn.admitted.pushes or turn.admitted.targets_elsewhere
            turn.way = await self._planner.route(turn.admitted) if elsewhere else ORIGINATING
        return answer_hosting(turn.admitted.request.channel, turn.way)

    async def _fail(self, run: ActiveRun, error: BaseException) -> Result:
        """Records a run that failed or was cancelled; returns only if it was cancelled on request."""
        run.cancellable = False
        error = _reason(error)
        cancelled = isinstance(error, (asyncio.CancelledError, GeneratorExit))
        if run.turn.unreadable is not None:
            # Nothing was asked of the target: a process that can read the history may begin the turn.
            await self._revoke(run.turn)
            raise run.turn.unreadable
        if run.turn.answering is not None:
            await asyncio.shield(run.turn.answering.settle())
        if isinstance(error, LostRunError) or (isinstance(error, StoreUnavailableError) and is_redone(run.turn)):
            raise error
        if run.interrupted or (cancelled and run.turn.event is not None and not run.cancel_requested):
            # Somebody else decides how it goes on; an event is answered by the next process.
            raise error
        if cancelled:
            failure = CANCELLED
        elif isinstance(error, RequestError):
            failure = RunFailure(code=error.code, message=error.message)
        else:
            log.error("run %s failed", run.record.run_id, exc_info=error)
            failure = RunFailure(code=TargetError.code, message=TargetError.__doc__ or "")
        status = "cancelled" if cancelled else "failed"
        failure_notice = () if cancelled else await self._failure_notice(run.turn.admitted, run.record, failure)
        record = await asyncio.shield(self._ended(run, status, failure, failure_notice))
        if run.turn.deliveries:
            await self._outbox.wake(run.turn.deliveries)
        if cancelled and run.cancel_requested:
            await run.uncancel()
            return HostedRunResult(result=None, run=record)
        if isinstance(error, Exception):
            shown = error if isinstance(error, RequestError) else TargetError()
            if not is_refusal(shown):
                shown.run = record
            raise shown from (None if shown is error else error)
        cancelled_run.set(record)
        raise error

    async def _ended(
        self, run: ActiveRun, status: RunStatus, failure: RunFailure, failure_notice: Sequence[Delivery]
    ) -> RunRecord:
        """Record how a run ended that did not complete, in its session."""
        await self._branches.rejoin(run.turn)
        return await self._recorder.ended(run.turn, run.record, status, failure, failure_notice)

    async def _failure_notice(
        self, admitted: AdmittedRequest, run: RunRecord, failure: RunFailure
    ) -> Sequence[Delivery]:
        """What is sent where nobody waits on a wire for an error."""
        if not admitted.pushes:
            return ()
        return await self._planner.failure_notice(
            admitted.request, admitted.caller.identity, failure.message, owner=admitted.owner, run_id=run.run_id
        )

    async def _deliver(self, hosted: Result, admitted: AdmittedRequest, hook: ResponseHook) -> Result:
        name = admitted.request.channel
        context = ChannelResponseContext(
            request=admitted.request, channel_name=name, destination_identity=admitted.identity, originating=True
        )
        return await call_response_hook(hook, hosted, context)


def _reason(error: BaseException) -> BaseException:
    """Return why a run has failed, in words for its caller if it is known."""
    if isinstance(error, MiddlewareFailure) and isinstance(error.__cause__, FrontdeskError):
        error = error.__cause__
    return answered() if isinstance(error, LostAnswerError) else error
