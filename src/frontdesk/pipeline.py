"""The request flow, from identification to delivery.

identify -> authorize -> hook -> admit -> open session -> run target -> record -> deliver

The caller is identified and authorized before the hook runs. So an unknown caller triggers no operator code, and
nothing is stored for such a caller. `admit` decides again about fields that the hook has changed. One session runs one
turn at a time. The outcome of a turn is written in one transaction, before the answer is sent.

There are two halves, because a worker does the second half of a background run later. `Pipeline` has the first four
steps, and `AdmittedRuns` the other four, with or without a stream. Between them, `Deferral` decides whether a run goes
to the background. Events of platforms come through `inbox/processor.py`, background runs through
`runs/background/worker.py`.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

from frontdesk.access.gate import Gate, identify
from frontdesk.access.stored_requests import StoredRequests
from frontdesk.approvals.answers import ApprovalAnswers
from frontdesk.delivery.live.replies import LiveRun
from frontdesk.errors import EventBegunError, InvalidRequestError, LinkRequiredError, RequestError
from frontdesk.framework.approval_ids import requests_in
from frontdesk.hooks import call_run_hook, call_stream_hook, show_result
from frontdesk.interfaces.access import Allowed
from frontdesk.interfaces.channel import Channel, SettleAnswers
from frontdesk.interfaces.hooks import StreamTransformHook
from frontdesk.interfaces.target import Target, TargetStream
from frontdesk.interfaces.telemetry import Span
from frontdesk.loggers import runs as log
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller
from frontdesk.models.request import AdmittedRequest, ChannelRequest
from frontdesk.models.result import HostedRunResult, HostedStreamResult
from frontdesk.models.run import RunRecord
from frontdesk.runs.finisher import TOO_LATE, RunFinisher
from frontdesk.runs.starter import Deferral, RunStarter
from frontdesk.sessions.active import ActiveRun, ActiveRuns
from frontdesk.sessions.job import EventLog, Job
from frontdesk.sessions.results import attach_run, build_ended_stream, result_of_updates
from frontdesk.sessions.turn import Turn
from frontdesk.sessions.turns import Turns
from frontdesk.telemetry.spans import NO_SPANS, Spans, classify_outcome, end_with

Result = HostedRunResult[Any]
Stream = HostedStreamResult[Any]
Acknowledge = Callable[[], Awaitable[None]]
"""Tells the sender of an event that it is taken up."""
Confirm = Callable[[], Awaitable[None]]
"""Raises `LostEventError` if an event is another process's by now."""


class Pipeline:
    """Admits requests, and runs or queues them."""

    def __init__(
        self,
        *,
        target: Target,
        channels: Mapping[str, Channel],
        gate: Gate,
        answers: ApprovalAnswers,
        deferral: Deferral,
        starter: RunStarter,
        runs: "AdmittedRuns",
        stored_requests: StoredRequests,
        spans: Spans = NO_SPANS,
    ) -> None:
        self._target, self._channels, self._gate, self._answers = target, channels, gate, answers
        self._deferral, self._starter, self._runs = deferral, starter, runs
        self._stored_requests, self._spans = stored_requests, spans
        # Chosen once, so that a request pays nothing for spans where nobody collects them.
        self._is_traced = spans.collects
        self.admit = self._admit_traced if spans.collects else self._admit

    async def run(
        self, request: ChannelRequest, caller: Caller, protocol_request: Any = None, settle: SettleAnswers | None = None
    ) -> Result:
        admitted = await self.admit(request, caller, protocol_request, settle)
        # Most requests need no deferral, and skip that step.
        return await (self._runs.run(admitted) if self._deferral.runs_inline(admitted) else self.proceed(admitted))

    async def proceed(self, admitted: AdmittedRequest) -> Result:
        """Process an admitted request, here or in the background."""
        queued = None if self._deferral.runs_inline(admitted) else await self._deferral.queue_if_needed(admitted)
        return await self._runs.run(admitted) if queued is None else queued

    async def proceed_stream(self, admitted: AdmittedRequest) -> Stream:
        """Stream the answer to an admitted request. The stream is `queued` and empty if the run goes to the
        background."""
        queued = None if self._deferral.runs_inline(admitted) else await self._deferral.queue_if_needed(admitted)
        return await self._runs.stream(admitted) if queued is None else build_ended_stream(queued)

    async def submit(self, request: ChannelRequest, caller: Caller, *, pushes: bool = False) -> RunRecord:
        """Queue a run started by the operator for a person. It does not count as activity of that person.

        With `pushes`, the answer is sent to the person on the channel of the request.
        """
        # The id of the run: a request of the operator is not stored until its person is linked.
        admitted = await self.admit(request, caller, run_id=self._gate.new_run_id(request.channel))
        return (await self._deferral.queue(admitted.with_push() if pushes else admitted)).run

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
            if run_id is not None or not request.background:
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
        own = span.carry()
        return await end_with(
            span, self._admit(request, caller, protocol_request, settle, run_id=run_id, trace=own, again=again)
        )

    async def _authorize_traced(self, caller: Caller, channel: str, hooked: bool, trace: str | None) -> Allowed:
        span = self._spans.begin("authorize", channel, trace)
        return await end_with(span, self._gate.authorize(caller, channel, hooked=hooked))


class AdmittedRuns:
    """Runs admitted requests: opens the session, runs the target, records and delivers."""

    def __init__(
        self,
        *,
        target: Target,
        channels: Mapping[str, Channel],
        turns: Turns,
        active: ActiveRuns,
        starter: RunStarter,
        finisher: RunFinisher,
        spans: Spans = NO_SPANS,
    ) -> None:
        self._target, self._channels, self._turns, self._active = target, channels, turns, active
        self._starter, self._finisher, self._spans = starter, finisher, spans
        self.run = self._run_traced if spans.collects else self._run

    async def _run(
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
            is_shown_otherwise = self._channels[admitted.request.channel].response_hook is not None
            return await self._deliver(run, recorded) if is_shown_otherwise else recorded
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

    async def _run_traced(
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
            admitted = admitted.with_trace(span.carry())
            result = await self._run(
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
        stream, shown = await self._target.stream(run.turn), list[Any]()
        try:
            async for _ in self._updates(run, stream, live, shown):
                pass
            result = await stream.final()
        finally:
            await stream.close()
        self._note_shown(run, live, shown, result)
        return result

    async def _deliver(self, run: ActiveRun, recorded: Result) -> Result:
        """Return the result as displayed by the channel. Answers for other destinations are already recorded as
        deliveries."""
        admitted = run.turn.admitted
        channel = self._channels[admitted.request.channel]
        if channel.response_hook is None or recorded.run.status != "completed" or admitted.pushes:
            return recorded
        return await show_result(channel, recorded, admitted.request, admitted.identity)

    async def stream(
        self,
        admitted: AdmittedRequest,
        *,
        waits: bool = False,
        job: Job | None = None,
        live: LiveRun | None = None,
    ) -> Stream:
        """Do the same as `run`, and yield the updates of the target as they arrive."""
        span = self._spans.begin("run", admitted.request.channel, admitted.trace)
        try:
            return await self._open_stream(admitted.with_trace(span.carry()), span, waits, job, live)
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
                return build_ended_stream(failed)
            except RequestError as failure:
                attach_run(failure, run.record)
                raise
            finally:
                self._starter.close(run)
        outcome: list[Result] = []
        streamed = self._stream(run, stream, outcome, live, span)
        return HostedStreamResult(
            run.record, streamed, outcome, lambda: self._abandon(run, stream, streamed, outcome, span)
        )

    async def _stream(
        self, run: ActiveRun, stream: TargetStream, outcome: list[Result], live: LiveRun | None, span: Span
    ) -> AsyncGenerator[Any, None]:
        """Yield the updates of a run, record its end and add its result to `outcome`."""
        shown: list[Any] = []
        updates = self._updates(run, stream, live, shown)
        ended = "failed"
        try:
            try:
                async for update in updates:
                    yield update
                result = await stream.final()
            except BaseException as error:
                ended = classify_outcome(error)
                outcome.append(await self._finisher.fail(run, error))
                return
            finally:
                await updates.aclose()
                await stream.close()
            self._note_shown(run, live, shown, result)
            recorded = await self._finisher.record(run, result)
            if self._hook(run) is not None and recorded.run.status == "completed":
                recorded = recorded.replace(result=result_of_updates(shown, result))
            outcome.append(await self._deliver(run, recorded))
        finally:
            try:
                if live is not None:
                    await live.stop()
            finally:
                span.end(outcome[0].run.status if outcome else ended)
                self._starter.close(run)

    async def _updates(
        self, run: ActiveRun, stream: TargetStream, live: LiveRun | None, shown: list[Any]
    ) -> AsyncGenerator[Any, None]:
        """Yield the updates of a target, as the channel's hook changes them, and the changes of the shared state.

        Pass them on to the event log and the live message of the run. `shown` collects what the hook returns.
        """
        turn, hook = run.turn, self._hook(run)
        events = None if turn.job is None else turn.job.log
        if (changed := await _state_update(turn, events)) is not None:
            yield changed
        async for update in stream:
            if run.cancel_requested:
                log.warning(TOO_LATE, run.record.run_id)
                raise asyncio.CancelledError
            if turn.shared is not None and (changed := await _state_update(turn, events)) is not None:
                yield changed
            if requests_in(update):
                update = await self._finisher.show(turn, update)
            if hook is not None:
                update = await call_stream_hook(hook, update, turn.admitted.request.channel)
                if update is None:
                    continue
                shown.append(update)
            if events is not None:
                await events.add(update)
            if live is not None and live.streams:
                live.show(update)
            yield update
        if (changed := await _state_update(turn, events)) is not None:
            yield changed
        if live is not None:
            live.note_end()

    def _note_shown(self, run: ActiveRun, live: LiveRun | None, shown: list[Any], result: Any) -> None:
        """Keep the result as the live message shows it, if a hook has changed that."""
        turn = run.turn
        if live is not None and live.streams and self._hook(run) is not None:
            turn.outcome.displayed_result = result_of_updates([*turn.earlier, *shown], result)

    def _hook(self, run: ActiveRun) -> StreamTransformHook | None:
        return self._channels[run.turn.admitted.request.channel].stream_transform_hook

    async def _abandon(
        self,
        run: ActiveRun,
        stream: TargetStream,
        streamed: AsyncGenerator[Any, None],
        outcome: list[Result],
        span: Span,
    ) -> None:
        await streamed.aclose()
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


async def _state_update(turn: Turn, events: EventLog | None) -> Any:
    """Return the changes of the shared state since the last update, or None."""
    changed = None if turn.shared is None else turn.shared.take_update()
    if changed is not None and events is not None:
        await events.add(changed)
    return changed
