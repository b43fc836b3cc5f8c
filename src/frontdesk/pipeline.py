"""The request flow, from identification to delivery.

identify -> authorize -> hook -> admit -> open session -> run target -> record -> deliver

The caller is identified and authorized before the hook runs. So an unknown caller triggers no operator code, and
nothing is stored for such a caller. `admit` decides again about fields that the hook has changed. One session runs one
turn at a time. The outcome of a turn is written in one transaction, before the answer is sent.

The pipeline has two halves, because a worker does the second half of a background run later:

- `admit` has the first four steps, `run_admitted` the other four. `run` does both.
- `proceed_stream` and `stream_admitted` differ in how the target runs: updates are passed on as they arrive.
- `answer` is for events from a platform: no caller is connected, and the answer is recorded as deliveries.
- `Deferral` decides between the halves whether a run goes to the background.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from typing import Any

from frontdesk.access.gate import Gate, identify
from frontdesk.access.stored_requests import StoredRequests, is_stored_request
from frontdesk.approvals.answers import ApprovalAnswers
from frontdesk.delivery.live.replies import LiveReplies, LiveRun
from frontdesk.delivery.push import can_push
from frontdesk.delivery.watchers import RunWatchers
from frontdesk.errors import (
    EventBegunError,
    InvalidRequestError,
    LinkRequiredError,
    LostEventError,
    LostRunError,
    RequestError,
)
from frontdesk.framework.approval_ids import requests_in
from frontdesk.hooks import call_run_hook, call_stream_hook, show_result
from frontdesk.interfaces.access import Allowed
from frontdesk.interfaces.channel import Channel, SettleAnswers
from frontdesk.interfaces.target import Target, TargetStream
from frontdesk.interfaces.telemetry import Span
from frontdesk.loggers import runs as log
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller
from frontdesk.models.request import AdmittedRequest, ChannelRequest
from frontdesk.models.result import HostedRunResult, HostedStreamResult
from frontdesk.models.run import RunFailure, RunRecord
from frontdesk.runs.finisher import TOO_LATE, RunFinisher
from frontdesk.runs.starter import Deferral, RunStarter
from frontdesk.sessions.active import ActiveRun, ActiveRuns
from frontdesk.sessions.job import Job
from frontdesk.sessions.results import attach_run, ended_stream, result_of_updates
from frontdesk.sessions.turns import Turns
from frontdesk.telemetry.spans import NO_SPANS, Spans, classify_outcome

Result = HostedRunResult[Any]
Stream = HostedStreamResult[Any]
Acknowledge = Callable[[], Awaitable[None]]
"""Tells the sender of an event that it is taken up."""
Confirm = Callable[[], Awaitable[None]]
"""Raises `LostEventError` if an event is another process's by now."""


class Pipeline:
    """Processes a request from admission to its answer."""

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
        watchers: RunWatchers,
        stored_requests: StoredRequests | None = None,
        spans: Spans = NO_SPANS,
    ) -> None:
        self.live, self.watchers, self._spans = live, watchers, spans
        self._target, self._channels, self._gate, self._answers = target, channels, gate, answers
        self._turns, self._active = turns, active
        self._deferral, self._starter, self._finisher = deferral, starter, finisher
        self._stored_requests = stored_requests
        # Chosen once, so that a request pays nothing for spans where nobody collects them.
        self._is_traced = spans.collects
        self.admit = self._admit_traced if self._is_traced else self._admit
        self.run_admitted = self._run_admitted_traced if self._is_traced else self._run_admitted

    async def run(
        self, request: ChannelRequest, caller: Caller, protocol_request: Any = None, settle: SettleAnswers | None = None
    ) -> Result:
        return await self.proceed(await self.admit(request, caller, protocol_request, settle))

    async def _admit(
        self,
        request: ChannelRequest,
        caller: Caller,
        protocol_request: Any = None,
        settle: SettleAnswers | None = None,
        *,
        run_id: str | None = None,
        trace: str | None = None,
        again: bool = False,
    ) -> AdmittedRequest:
        """Take a request through the gate: identify, authorize, apply the run hook, admit.

        With `again`, raise `EventBegunError` if an earlier attempt at the event may have started a tool.
        """
        claimed = hooked = identify(request, caller)
        hook = self._channels[claimed.channel].run_hook
        try:
            if self._is_traced:
                allowed = await self._authorize_traced(caller, claimed.channel, hook is not None, trace)
            else:
                trace = None
                allowed = await self._gate.authorize(caller, claimed.channel, hooked=hook is not None)
        except LinkRequiredError:
            # An event is stored when it is refused, and has the id of its run already.
            if self._stored_requests is None or run_id is not None or not request.background:
                raise
            raise await self._stored_requests.keep(request, caller, protocol_request) from None
        if hook is not None:
            native = self._target.native
            hooked = await call_run_hook(hook, claimed, target=native, protocol_request=protocol_request)
        admitted = await self._gate.admit(hooked, caller, claimed, allowed, run_id=run_id, trace=trace)
        # The answered questions are looked up after admission, among those of the request's owner.
        if admitted.request.approvals:
            if again and await self._starter.is_recorded(admitted):
                raise EventBegunError
            admitted = await self._answers.find(admitted, settle)
        if admitted.request.continues is not None:
            admitted = await self._starter.join_chain(admitted)
        return admitted

    async def _admit_traced(
        self,
        request: ChannelRequest,
        caller: Caller,
        protocol_request: Any = None,
        settle: SettleAnswers | None = None,
        *,
        run_id: str | None = None,
        trace: str | None = None,
        again: bool = False,
    ) -> AdmittedRequest:
        span = self._spans.begin("request", request.channel, trace)
        try:
            admitted = await self._admit(
                request, caller, protocol_request, settle, run_id=run_id, trace=span.carry(), again=again
            )
        except BaseException as error:
            span.end(classify_outcome(error))
            raise
        span.end("ok")
        return admitted

    async def _authorize_traced(self, caller: Caller, channel: str, hooked: bool, trace: str | None) -> Allowed:
        span = self._spans.begin("authorize", channel, trace)
        try:
            allowed = await self._gate.authorize(caller, channel, hooked=hooked)
        except BaseException as error:
            span.end(classify_outcome(error))
            raise
        span.end("ok")
        return allowed

    async def _run_admitted(
        self,
        admitted: AdmittedRequest,
        *,
        waits: bool = False,
        job: Job | None = None,
        event: InboxItem | None = None,
        live: LiveRun | None = None,
        acknowledge: Acknowledge | None = None,
        confirm: Confirm | None = None,
    ) -> Result:
        """Process an admitted request: open the session, run the target, record, deliver."""
        run = await self._starter.open(admitted, waits=waits, job=job, event=event, confirm=confirm)
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
            try:
                if live is not None:
                    await live.stop()
            finally:
                # Whoever lost the event cancels again and again: the session is released in any case.
                self._starter.close(run)

    async def _run_admitted_traced(
        self,
        admitted: AdmittedRequest,
        *,
        waits: bool = False,
        job: Job | None = None,
        event: InboxItem | None = None,
        live: LiveRun | None = None,
        acknowledge: Acknowledge | None = None,
        confirm: Confirm | None = None,
    ) -> Result:
        span = self._spans.begin("run", admitted.request.channel, admitted.trace)
        try:
            admitted = admitted.traced(span.carry())
            result = await self._run_admitted(
                admitted, waits=waits, job=job, event=event, live=live, acknowledge=acknowledge, confirm=confirm
            )
        except BaseException as error:
            span.end(classify_outcome(error))
            raise
        span.end(result.run.status)
        return result

    async def _run_live(self, run: ActiveRun, live: LiveRun) -> Any:
        """Run the target and update the live message meanwhile."""
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
            live.note_end()
            result = await stream.final()
        finally:
            await stream.close()
        if live.hook is not None:
            run.turn.displayed_result = result_of_updates(live.shown, result)
        return result

    def _is_shown_otherwise(self, run: ActiveRun) -> bool:
        return self._channels[run.turn.admitted.request.channel].response_hook is not None

    async def _deliver(self, run: ActiveRun, recorded: Result) -> Result:
        """Return the result as displayed by the channel. Answers for other destinations are already recorded as
        deliveries."""
        admitted = run.turn.admitted
        if recorded.run.status != "completed" or admitted.pushes:
            return recorded
        channel = self._channels[admitted.request.channel]
        return await show_result(channel, recorded, admitted.request, admitted.identity)

    def proceed(self, admitted: AdmittedRequest) -> Coroutine[Any, Any, Result]:
        """Process an admitted request, here or in the background."""
        # Most requests need no deferral, and skip that step.
        return self.run_admitted(admitted) if self._deferral.runs_inline(admitted) else self._received(admitted)

    async def _received(self, admitted: AdmittedRequest) -> Result:
        queued = await self._deferral.queue_if_needed(admitted)
        return await self.run_admitted(admitted) if queued is None else queued

    async def proceed_stream(self, admitted: AdmittedRequest) -> Stream:
        """Stream the answer to an admitted request. The stream is `queued` and empty if the run goes to the
        background."""
        queued = None if self._deferral.runs_inline(admitted) else await self._deferral.queue_if_needed(admitted)
        return await self.stream_admitted(admitted) if queued is None else ended_stream(queued)

    async def answer(
        self,
        event: InboxItem,
        request: ChannelRequest,
        settle: SettleAnswers | None = None,
        acknowledge: Acknowledge | None = None,
        confirm: Confirm | None = None,
    ) -> Result:
        """Answer a platform event. The answer is sent as a delivery, and recording it finishes the event.

        `acknowledge` is called when processing starts, and not if the event is refused. `confirm` is called before
        that, when the session is free.
        """
        resumes = event.kind == "resume"
        shown = None if resumes else event.protocol_request
        again = event.kind == "turn" and event.fence > 1
        admitted = await self.admit(
            request, event.caller, shown, settle, run_id=event.run_id, trace=event.trace, again=again
        )
        if not (resumes or is_stored_request(event)) or can_push(self._channels[request.channel]):
            admitted = admitted.pushing()
        queued = await self._deferral.queue_event_if_needed(admitted, event)
        if queued is not None:
            if acknowledge is not None:
                await acknowledge()
            return queued
        live = await self.live.of(admitted, event)
        try:
            return await self.run_admitted(
                admitted, waits=True, event=event, live=live, acknowledge=acknowledge, confirm=confirm
            )
        finally:
            if live is not None:
                await live.stop_typing()

    async def record_cancelled(self, event: InboxItem) -> None:
        """Record an event that was cancelled before its answer. Its message is kept and the target is not called."""
        admitted = await self.admit(event.request, event.caller, event.payload, run_id=event.run_id)
        turn = await self._starter.open_cancelled(admitted.with_request(background=False), event)
        try:
            turn.live = await self.live.left(event, admitted.owner)
            await self._finisher.cancel(turn)
        finally:
            self._turns.close(turn)

    async def find_live(self, admitted: AdmittedRequest, job: Job) -> LiveRun | None:
        """Return the live message of a background run, including the text that it displayed before."""
        try:
            live = await self.live.of_run(admitted, job.run)
        except LostEventError as error:
            raise LostRunError from error
        if live is not None and live.streams:
            for update in job.earlier:
                live.show(update)
        return live

    async def submit(self, request: ChannelRequest, caller: Caller, *, pushes: bool = False) -> RunRecord:
        """Queue a run started by the operator for a person. It does not count as activity of that person.

        With `pushes`, the answer is sent to the person on the channel of the request.
        """
        # The id of the run: a request of the operator is not stored until its person is linked.
        admitted = await self.admit(request, caller, run_id=self._gate.new_run_id(request.channel))
        return (await self._deferral.queue(admitted.pushing() if pushes else admitted)).run

    async def fail_admitted(self, admitted: AdmittedRequest, job: Job, failure: RunFailure) -> None:
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
        live: LiveRun | None = None,
    ) -> Stream:
        """Do the same as `run_admitted`, and yield the updates of the target as they arrive."""
        span = self._spans.begin("run", admitted.request.channel, admitted.trace)
        try:
            return await self._open_stream(admitted.traced(span.carry()), span, waits, job, live)
        except BaseException as error:
            span.end(classify_outcome(error))
            raise

    async def _open_stream(
        self, admitted: AdmittedRequest, span: Span, waits: bool, job: Job | None, live: LiveRun | None
    ) -> Stream:
        run = await self._starter.open(admitted, waits=waits, job=job)
        run.turn.live = live
        try:
            if self._channels[admitted.request.channel].announces_sessions:
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
        self, run: ActiveRun, stream: TargetStream, outcome: list[Result], live: LiveRun | None, span: Span
    ) -> AsyncGenerator[Any, None]:
        admitted, job, shows = run.turn.admitted, run.turn.job, live is not None and live.streams
        hook = self._channels[admitted.request.channel].stream_transform_hook
        shown: list[Any] = []
        ended = "failed"
        try:
            try:
                if (changed := await _state_update(run)) is not None:
                    yield changed
                async for update in stream:
                    if run.cancel_requested:
                        log.warning(TOO_LATE, run.record.run_id)
                        raise asyncio.CancelledError
                    if run.turn.shared is not None and (changed := await _state_update(run)) is not None:
                        yield changed
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
                if (changed := await _state_update(run)) is not None:
                    yield changed
                if live is not None:
                    live.note_end()
                result = await stream.final()
            except BaseException as error:
                ended = classify_outcome(error)
                outcome.append(await self._finisher.fail(run, error))
                return
            finally:
                await stream.close()
            if hook is not None and shows:
                run.turn.displayed_result = result_of_updates([*(() if job is None else job.earlier), *shown], result)
            recorded = await self._finisher.record(run, result)
            if hook is not None and recorded.run.status == "completed":
                recorded = recorded.replace(result=result_of_updates(shown, result))
            outcome.append(await self._deliver(run, recorded) if self._is_shown_otherwise(run) else recorded)
        finally:
            try:
                if live is not None:
                    await live.stop()
            finally:
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


async def _state_update(run: ActiveRun) -> Any:
    """Return the changes of the run to the shared state since the last update, or None."""
    shared, job = run.turn.shared, run.turn.job
    changed = None if shared is None else shared.take_update()
    if changed is not None and job is not None and job.log is not None:
        await job.log.add(changed)
    return changed
