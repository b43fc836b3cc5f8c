"""The whole path of a request, top to bottom.

    identify -> authorize -> hook -> admit -> open session -> run target -> record -> deliver

A stranger reaches no operator code and nothing is stored for them, so the caller is identified and authorized before
the hook runs. Fields that the hook changed are decided about again at `admit`. One session runs one turn at a time. The
outcome of a turn is written in one transaction, before the answer is sent.

The pipeline has two halves, because a worker does the second half of a background run later:

- `admit` has the first four steps, `run_admitted` the other four; `run` does both.
- `proceed_stream` and `stream_admitted` differ in how the target runs: its updates are handed on as they come.
- `answer` is for an event of a platform: no caller waits on a wire, and the answer is recorded as deliveries.
- `Deferral` decides between the halves whether a run goes to the background.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from typing import Any

from frontdesk.abc.channel import Channel, SettleAnswers
from frontdesk.abc.target import Target, TargetStream
from frontdesk.abc.telemetry import Span
from frontdesk.access.gate import Gate, identify
from frontdesk.approvals.answers import ApprovalAnswers
from frontdesk.data.delivery import InboxItem
from frontdesk.data.identity import Caller
from frontdesk.data.request import AdmittedRequest, ChannelRequest
from frontdesk.data.result import HostedRunResult, HostedStreamResult
from frontdesk.data.run import RunFailure, RunRecord
from frontdesk.delivery.live.replies import LiveReplies, LiveReply
from frontdesk.delivery.push import can_push
from frontdesk.errors import InvalidRequestError, LostEventError, LostRunError, RequestError
from frontdesk.kit.framework.approval_ids import requests_in
from frontdesk.kit.hooks import call_run_hook, call_stream_hook, show_result
from frontdesk.kit.telemetry import NO_SPANS, Spans, outcome_of
from frontdesk.loggers import runs as log
from frontdesk.runs.deferral import Deferral
from frontdesk.runs.finisher import TOO_LATE, RunFinisher
from frontdesk.runs.starter import RunStarter
from frontdesk.sessions.active import ActiveRun, ActiveRuns
from frontdesk.sessions.endings import attach_run, ended_stream, result_of_updates
from frontdesk.sessions.job import Job
from frontdesk.sessions.turns import Turns

Result = HostedRunResult[Any]
Stream = HostedStreamResult[Any]
Acknowledge = Callable[[], Awaitable[None]]
"""Tells the sender of an event that it is taken up."""


class Pipeline:
    """Takes a request from the door to its answer."""

    def __init__(
        self,
        *,
        target: Target,
        channels: Mapping[str, Channel],
        gate: Gate,
        answers: ApprovalAnswers,
        turns: Turns,
        active: ActiveRuns,
        deferral: Deferral,
        starter: RunStarter,
        finisher: RunFinisher,
        live: LiveReplies,
        spans: Spans = NO_SPANS,
    ) -> None:
        self.live, self._spans = live, spans
        self._target, self._channels, self._gate, self._answers = target, channels, gate, answers
        self._turns, self._active = turns, active
        self._deferral, self._starter, self._finisher = deferral, starter, finisher

    async def run(
        self, request: ChannelRequest, caller: Caller, protocol_request: Any = None, settle: SettleAnswers | None = None
    ) -> Result:
        """Answer a request; `queued`, without a result, if it goes to the background."""
        return await self.proceed(await self.admit(request, caller, protocol_request, settle))

    async def admit(
        self,
        request: ChannelRequest,
        caller: Caller,
        protocol_request: Any = None,
        settle: SettleAnswers | None = None,
        *,
        run_id: str | None = None,
        trace: str | None = None,
    ) -> AdmittedRequest:
        """Take a request from its door through the gate: identify, authorize, hook, admit."""
        span = self._spans.begin("request", request.channel, trace)
        try:
            claimed = hooked = identify(request, caller)
            hook, carried = self._channels[claimed.channel].run_hook, span.carry()
            authorizing = self._spans.begin("authorize", claimed.channel, carried)
            try:
                allowed = await self._gate.authorize(caller, claimed.channel, hooked=hook is not None)
            except BaseException as error:
                authorizing.end(outcome_of(error))
                raise
            authorizing.end("ok")
            if hook is not None:
                native = self._target.native
                hooked = await call_run_hook(hook, claimed, target=native, protocol_request=protocol_request)
            admitted = await self._gate.admit(hooked, caller, claimed, allowed, run_id=run_id, trace=carried)
            # The answered questions are looked up after admission, among those of the request's owner.
            if admitted.request.approvals:
                admitted = await self._answers.find(admitted, settle)
        except BaseException as error:
            span.end(outcome_of(error))
            raise
        span.end("ok")
        return admitted

    async def run_admitted(
        self,
        admitted: AdmittedRequest,
        *,
        waits: bool = False,
        job: Job | None = None,
        event: InboxItem | None = None,
        live: LiveReply | None = None,
        acknowledge: Acknowledge | None = None,
    ) -> Result:
        """Take a request from the gate to its answer: open session, run target, record, deliver."""
        span = self._spans.begin("run", admitted.request.channel, admitted.trace)
        try:
            run = await self._starter.open(admitted.traced(span.carry()), waits=waits, job=job, event=event)
            result = await self._run_opened(run, live, acknowledge)
        except BaseException as error:
            span.end(outcome_of(error))
            raise
        span.end(result.run.status)
        return result

    async def _run_opened(
        self, run: ActiveRun, live: LiveReply | None, acknowledge: Acknowledge | None = None
    ) -> Result:
        """Run the target in its session, record what it says, and deliver that."""
        try:
            try:
                if acknowledge is not None:
                    await acknowledge()
                result = await (self._target.run(run.turn) if live is None else self._run_live(run, live))
            except InvalidRequestError:
                # A request that the target refuses is not recorded.
                await self._starter.revoke(run.turn)
                raise
            except BaseException as error:
                return await self._finisher.fail(run, error)
            recorded = await self._finisher.record(run, result)
            return await self._deliver(run, recorded) if self._is_shown_otherwise(run) else recorded
        except RequestError as error:
            attach_run(error, run.record)
            raise
        finally:
            if live is not None:
                await live.stop()
            self._starter.close(run)

    async def _run_live(self, run: ActiveRun, live: LiveReply) -> Any:
        """Run the target, and show what it does meanwhile."""
        run.turn.live = live
        live.start()
        if not live.streams:
            return await self._target.run(run.turn)
        stream = await self._target.stream(run.turn)
        try:
            async for update in stream:
                if run.cancel_requested:
                    log.warning(TOO_LATE, run.record.run_id)
                    raise asyncio.CancelledError
                if requests_in(update):
                    update = await self._finisher.show(run.turn, update)
                await live.add(update)
            result = await stream.final()
        finally:
            await stream.close()
        if live.hook is not None:
            run.turn.shown = result_of_updates(live.shown, result)
        return result

    def _is_shown_otherwise(self, run: ActiveRun) -> bool:
        """Tell whether a result may be shown otherwise than it was recorded, which only a hook does."""
        return self._channels[run.turn.admitted.request.channel].response_hook is not None

    async def _deliver(self, run: ActiveRun, recorded: Result) -> Result:
        """Return the result as the channel shows it; answers to other places were recorded as deliveries."""
        admitted = run.turn.admitted
        if recorded.run.status != "completed" or admitted.pushes:
            return recorded
        channel = self._channels[admitted.request.channel]
        return await show_result(channel, recorded, admitted.request, admitted.identity)

    def proceed(self, admitted: AdmittedRequest) -> Coroutine[Any, Any, Result]:
        """Answer an admitted request, here or in the background."""
        # Most requests need no deferral, and skip that step.
        return self.run_admitted(admitted) if self._deferral.runs_inline(admitted) else self._received(admitted)

    async def _received(self, admitted: AdmittedRequest) -> Result:
        queued = await self._deferral.queue_if_needed(admitted)
        return await self.run_admitted(admitted) if queued is None else queued

    async def proceed_stream(self, admitted: AdmittedRequest) -> Stream:
        """Answer an admitted request in pieces; `queued`, without any, if it goes to the background."""
        queued = None if self._deferral.runs_inline(admitted) else await self._deferral.queue_if_needed(admitted)
        return await self.stream_admitted(admitted) if queued is None else ended_stream(queued)

    async def answer(
        self,
        event: InboxItem,
        request: ChannelRequest,
        settle: SettleAnswers | None = None,
        acknowledge: Acknowledge | None = None,
    ) -> Result:
        """Answer an event of a platform: the answer is sent as a delivery, and recording it finishes the event.

        `acknowledge` is called once the event is taken up, and not if it is refused.
        """
        resumes = event.kind == "resume"
        shown = None if resumes else event.protocol_request
        admitted = await self.admit(request, event.caller, shown, settle, run_id=event.run_id, trace=event.trace)
        if not resumes or can_push(self._channels[request.channel]):
            admitted = admitted.pushing()
        queued = await self._deferral.queue_event_if_needed(admitted, event)
        if queued is not None:
            if acknowledge is not None:
                await acknowledge()
            return queued
        live = await self.live.of(admitted, event)
        try:
            return await self.run_admitted(admitted, waits=True, event=event, live=live, acknowledge=acknowledge)
        finally:
            if live is not None:
                await live.stop_typing()

    async def record_cancelled(self, event: InboxItem) -> None:
        """Record an event that was cancelled before its answer: its question stays, and the target is not asked."""
        admitted = await self.admit(event.request, event.caller, event.payload, run_id=event.run_id)
        turn = await self._starter.open_cancelled(admitted.with_request(background=False), event)
        try:
            turn.live = await self.live.left(event, admitted.owner)
            await self._finisher.cancel(turn)
        finally:
            self._turns.close(turn)

    async def live_of(self, admitted: AdmittedRequest, job: Job) -> LiveReply | None:
        """Return how the answer of a background run is shown while it is written, with what it has said before."""
        try:
            live = await self.live.of_run(admitted, job.run)
        except LostEventError as error:
            raise LostRunError from error
        if live is not None and live.streams:
            for update in job.earlier:
                live.show(update)
        return live

    async def submit(self, request: ChannelRequest, caller: Caller, *, pushes: bool = False) -> RunRecord:
        """Queue a run of the operator's own for a person; it does not count as their presence.

        With `pushes` the answer is sent to the person on the channel of the request.
        """
        admitted = await self.admit(request, caller)
        return (await self._deferral.queue(admitted.pushing() if pushes else admitted)).run

    async def fail_admitted(self, admitted: AdmittedRequest, job: Job, failure: RunFailure) -> None:
        """End a background run that can't go on."""
        turn = await self._starter.open_turn(admitted, True, job)
        try:
            turn.live = await self.live.left_by(job.run)
            await self._finisher.give_up(turn, job, failure)
        finally:
            self._turns.close(turn)

    async def stream_admitted(
        self,
        admitted: AdmittedRequest,
        *,
        waits: bool = False,
        job: Job | None = None,
        live: LiveReply | None = None,
    ) -> Stream:
        """Do the same as `run_admitted`, with the updates of the target as they come."""
        span = self._spans.begin("run", admitted.request.channel, admitted.trace)
        try:
            return await self._open_stream(admitted.traced(span.carry()), span, waits, job, live)
        except BaseException as error:
            span.end(outcome_of(error))
            raise

    async def _open_stream(
        self, admitted: AdmittedRequest, span: Span, waits: bool, job: Job | None, live: LiveReply | None
    ) -> Stream:
        run = await self._starter.open(admitted, waits=waits, job=job)
        run.turn.live = live
        try:
            if self._channels[admitted.request.channel].tells_sessions:
                await self._turns.announce(run.turn)
            stream = await self._target.stream(run.turn)
        except InvalidRequestError:
            await self._starter.revoke(run.turn)
            self._starter.close(run)
            raise
        except BaseException as error:
            try:
                failed = await self._finisher.fail(run, error)
                span.end(failed.run.status)
                return ended_stream(failed)
            except RequestError as failure:
                attach_run(failure, run.record)
                raise
            finally:
                self._starter.close(run)
        outcome: list[Result] = []
        updates = self._updates(run, stream, outcome, live, span)
        return HostedStreamResult(
            run.record, updates, outcome, lambda: self._abandon(run, stream, updates, outcome, span)
        )

    async def _updates(
        self, run: ActiveRun, stream: TargetStream, outcome: list[Result], live: LiveReply | None, span: Span
    ) -> AsyncGenerator[Any, None]:
        admitted, job, shows = run.turn.admitted, run.turn.job, live is not None and live.streams
        hook = self._channels[admitted.request.channel].stream_transform_hook
        shown: list[Any] = []
        ended = "failed"
        try:
            try:
                async for update in stream:
                    if run.cancel_requested:
                        log.warning(TOO_LATE, run.record.run_id)
                        raise asyncio.CancelledError
                    if requests_in(update):
                        update = await self._finisher.show(run.turn, update)
                    if hook is not None:
                        update = await call_stream_hook(hook, update, admitted.request.channel)
                        if update is None:
                            continue
                        shown.append(update)
                    if job is not None and job.log is not None:
                        await job.log.add(update)
                    if live is not None and shows:
                        live.show(update)
                    yield update
                result = await stream.final()
            except BaseException as error:
                ended = outcome_of(error)
                outcome.append(await self._finisher.fail(run, error))
                return
            finally:
                await stream.close()
            if hook is not None and shows:
                run.turn.shown = result_of_updates([*(() if job is None else job.earlier), *shown], result)
            recorded = await self._finisher.record(run, result)
            if hook is not None and recorded.run.status == "completed":
                recorded = recorded.replace(result=result_of_updates(shown, result))
            outcome.append(await self._deliver(run, recorded) if self._is_shown_otherwise(run) else recorded)
        finally:
            if live is not None:
                await live.stop()
            span.end(outcome[0].run.status if outcome else ended)
            self._starter.close(run)

    async def _abandon(
        self,
        run: ActiveRun,
        stream: TargetStream,
        updates: AsyncGenerator[Any, None],
        outcome: list[Result],
        span: Span,
    ) -> None:
        await updates.aclose()
        if self._active.get(run.record.owner, run.record.run_id) is run:
            # The generator was never started, so its own cleanup has not run.
            await stream.close()
            try:
                outcome.append(await self._finisher.fail(run, asyncio.CancelledError()))
            except asyncio.CancelledError:
                pass
            finally:
                span.end("cancelled")
                self._starter.close(run)
