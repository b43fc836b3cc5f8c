"""Ends runs. Writes the outcome in one transaction, before the answer is sent."""

import asyncio
from collections.abc import Sequence
from typing import Any

from agent_framework import MiddlewareFailure

from frontdesk.access.gate import Gate
from frontdesk.approvals.answers import ApprovalAnswers, build_answered_error
from frontdesk.approvals.extraction import build_taken_error, questions
from frontdesk.approvals.requester import ApprovalRequester
from frontdesk.concurrency.current import cancelled_run
from frontdesk.delivery.live.replies import LiveReplies
from frontdesk.delivery.outbox import OutboxSender
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.routing import ORIGINATING
from frontdesk.errors import (
    ApprovalExistsError,
    ApprovalIdError,
    CodecError,
    FrontdeskError,
    IdentityChangedError,
    InternalError,
    LostAnswerError,
    LostRunError,
    NobodyToAskError,
    NotStorableError,
    RequestError,
    SessionRequiredError,
    SessionTooLargeError,
    StaleTurnError,
    StoreError,
    StoreUnavailableError,
    TargetError,
    UnlinkedError,
)
from frontdesk.loggers import runs as log
from frontdesk.models.approval import PendingApproval
from frontdesk.models.delivery import Delivery, InboxItem, Route
from frontdesk.models.request import AdmittedRequest
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import RunFailure, RunRecord, RunStatus
from frontdesk.runs.starter import Routes, RunStarter
from frontdesk.sessions.active import ActiveRun
from frontdesk.sessions.branches import Branches
from frontdesk.sessions.job import Job
from frontdesk.sessions.record import CANCELLED, INTERRUPTION, Recorder
from frontdesk.sessions.results import is_redone, is_refusal
from frontdesk.sessions.turn import Turn
from frontdesk.sessions.turns import Turns

Result = HostedRunResult[Any]

TOO_LATE = "run %s went on after it was cancelled, and its output after that was dropped"
_MAX_TRIES = 8
_NOWHERE_TO_WAIT = "A tool requires approval, which is not possible without a session."


class RunFinisher:
    def __init__(
        self,
        *,
        gate: Gate,
        starter: RunStarter,
        turns: Turns,
        branches: Branches,
        recorder: Recorder,
        answers: ApprovalAnswers,
        planner: Planner,
        outbox: OutboxSender,
        routes: Routes,
        asking: ApprovalRequester,
        live: LiveReplies,
    ) -> None:
        self._gate, self._starter, self._turns, self._branches, self._live = gate, starter, turns, branches, live
        self._recorder, self._answers, self._planner, self._outbox = recorder, answers, planner, outbox
        self._routes, self._asking = routes, asking

    async def record(self, run: ActiveRun, result: Any) -> Result:
        """Write the outcome of a run. Omit the result if the run was cancelled."""
        if run.cancel_requested:
            # It completed although it was cancelled; its output after that must not count.
            log.warning(TOO_LATE, run.record.run_id)
            return await self.fail(run, asyncio.CancelledError())
        turn = run.turn
        if turn.answering is not None and turn.answering.failure is not None:
            # The target has gone on without the tool that could not begin.
            return await self.fail(run, turn.answering.failure)
        if turn.parent_session is not None:
            try:
                await self._branches.rejoin(turn)
            except asyncio.CancelledError as error:
                return await self.fail(run, error)
        run.cancellable = False
        try:
            admitted = turn.admitted
            asked = questions(result, admitted, run.record.session_id)
            if asked or turn.approval_ids or admitted.is_delivered():
                record, result = await self._complete(run, result, asked)
            else:
                record = await self._recorder.record_completed(turn, run.record, result, ORIGINATING)
        except (ApprovalIdError, NobodyToAskError, UnlinkedError) as error:
            log.error("approval request cannot be recorded: run_id=%s: %s", run.record.run_id, error)
            return await self.fail(run, error)
        except (LostAnswerError, SessionRequiredError, SessionTooLargeError) as error:
            return await self.fail(run, error)
        except CodecError as error:
            log.error("result cannot be stored: run_id=%s: %s", run.record.run_id, error)
            return await self.fail(run, NotStorableError())
        except StaleTurnError:
            raise
        except StoreError as error:
            log.error("failed to write the end of the run: run_id=%s", run.record.run_id, exc_info=error)
            return await self._fail_unwritten(run, error)
        if rows := turn.outcome.list_deliveries():
            await self._outbox.wake(rows)
        return HostedRunResult(result=result if record.status == "completed" else None, run=record)

    async def show(self, turn: Turn, value: Any) -> Any:
        """Return an update or a result with the host's ids for its questions."""
        turn.approval_ids = turn.approval_ids or {}
        return await self._answers.show(turn.admitted.owner, turn.record, turn.approval_ids, value)

    async def _complete(self, run: ActiveRun, result: Any, asked: Sequence[PendingApproval]) -> tuple[RunRecord, Any]:
        """Write the end of a run with questions or deliveries. Return its record and the recorded result."""
        turn, admitted = run.turn, run.turn.admitted
        if asked and (run.record.session_id is None or not admitted.request.store):
            raise SessionRequiredError(_NOWHERE_TO_WAIT)
        if asked or turn.approval_ids:
            result = await self.show(turn, result)
        new, shared = await self._asking.bind(turn, asked, result) if asked else ((), ())
        route = ORIGINATING
        if admitted.is_delivered():
            route = await self._routes.of(turn)
            ended = run.record.replace(status="completed")
            rows = await self._planner.rows(
                admitted, result, ended, route, turn.messages, turn.outcome.displayed_result, shared
            )
            turn.outcome.deliveries = rows if turn.event is None else self._planner.for_event(rows, turn.event)
        if asked:
            turn.outcome.approval_deliveries = await self._asking.rows(new)
            return await self._record_questions(run, result, route, new), result
        return await self._recorder.record_completed(turn, run.record, result, route), result

    async def _record_questions(
        self, run: ActiveRun, result: Any, route: Route, new: Sequence[PendingApproval]
    ) -> RunRecord:
        """Record a result with questions, if the requester still has the owner's key."""
        turn = run.turn
        for _ in range(_MAX_TRIES):
            turn.outcome.requester = await self._gate.requester(turn.admitted)
            try:
                return await self._recorder.record_completed(turn, run.record, result, route, new)
            except ApprovalExistsError:
                raise build_taken_error(new[0]) from None
            except IdentityChangedError:
                # A member of the family was linked or unlinked; check again whether it was the requester.
                continue
        raise UnlinkedError

    async def fail(self, run: ActiveRun, error: BaseException) -> Result:
        """Record a failed or cancelled run, and raise its error.

        Return instead if it was cancelled on request, or because the host stops.
        """
        run.cancellable = False
        error = _reason(error)
        await self._raise_unless_ended(run, error)
        cancelled = _is_cancellation(error)
        record = await self._write_failure(run, error, cancelled)
        if cancelled and (run.cancel_requested or run.stopped):
            await run.uncancel()
            return HostedRunResult(result=None, run=record)
        if isinstance(error, Exception):
            shown = error if isinstance(error, RequestError) else TargetError()
            if not is_refusal(shown):
                shown.run = record
            raise shown from (None if shown is error else error)
        cancelled_run.set(record)
        raise error

    async def _fail_unwritten(self, run: ActiveRun, error: StoreError) -> Result:
        """Record the failure of a run whose end was rejected, so that its event ends and the sender is notified."""
        failure = InternalError()
        try:
            return await self.fail(run, failure)
        except StoreError:
            raise failure from error

    async def _raise_unless_ended(self, run: ActiveRun, error: BaseException) -> None:
        """Raise the error if it does not end the run, because another worker restarts or continues it."""
        turn = run.turn
        if turn.unreadable is not None:
            # The target was not called: a process that can read the history may begin the turn.
            await self._starter.revoke(turn)
            raise turn.unreadable
        if turn.answering is not None:
            await asyncio.shield(turn.answering.give_back())
        if isinstance(error, LostRunError) or (isinstance(error, StoreUnavailableError) and is_redone(turn)):
            raise error
        if run.interrupted or (_is_cancellation(error) and turn.event is not None and not run.cancel_requested):
            raise error

    async def _write_failure(self, run: ActiveRun, error: BaseException, cancelled: bool) -> RunRecord:
        stopped = cancelled and run.stopped
        if cancelled:
            failure = INTERRUPTION if stopped else CANCELLED
        elif isinstance(error, RequestError):
            failure = RunFailure(code=error.code, message=error.message)
        else:
            log.error("run failed: run_id=%s", run.record.run_id, exc_info=error)
            failure = RunFailure(code=TargetError.code, message=TargetError.__doc__ or "")
        turn = run.turn
        reason = error if isinstance(error, RequestError) else failure.message
        notice = () if cancelled and not stopped else await self._failure_notice(turn.admitted, run.record, reason)
        if turn.event is not None:
            notice = self._planner.for_event(notice, turn.event)
        status = "cancelled" if cancelled and not stopped else "failed"
        record = await asyncio.shield(self._write_end(turn, run.record, status, failure, notice))
        await self._wake(turn)
        return record

    async def _wake(self, turn: Turn) -> None:
        if rows := turn.outcome.list_deliveries():
            await self._outbox.wake(rows)

    async def cancel(self, admitted: AdmittedRequest, event: InboxItem) -> None:
        """Write the end of a run whose event was cancelled before it began.

        Its input stays in the history, the target is not called, and no notice is sent.
        """
        turn = await self._starter.open_cancelled(admitted.with_request(background=False), event)
        try:
            turn.live = await self._live.take_over_event(event, admitted.owner)
            await self._recorder.record_end(turn, self._recorder.begin(turn), "cancelled", CANCELLED)
            await self._wake(turn)
        finally:
            self._turns.close(turn)

    async def give_up(self, admitted: AdmittedRequest, job: Job, failure: RunFailure) -> None:
        """Write the end of a background run that cannot continue. Its input stays in the history, as failed."""
        turn = await self._starter.open_turn(admitted, True, job)
        try:
            turn.live = await self._live.take_over_run(job.run)
            turn.job = job
            run = self._recorder.begin(turn)
            notice = await self._failure_notice(turn.admitted, run, failure.message)
            await self._write_end(turn, run, "failed", failure, notice)
            await self._wake(turn)
        finally:
            self._turns.close(turn)

    async def _write_end(
        self, turn: Turn, run: RunRecord, status: RunStatus, failure: RunFailure, notice: Sequence[Delivery]
    ) -> RunRecord:
        await self._branches.rejoin(turn)
        return await self._recorder.record_end(turn, run, status, failure, notice)

    async def _failure_notice(
        self, admitted: AdmittedRequest, run: RunRecord, reason: RequestError | str
    ) -> Sequence[Delivery]:
        """Return the failure notice, or nothing if a caller waits for the error response."""
        if not admitted.pushes:
            return ()
        return await self._planner.failure_notice(
            admitted.request, admitted.caller.identity, reason, owner=admitted.owner, run_id=run.run_id
        )


def _is_cancellation(error: BaseException) -> bool:
    return isinstance(error, (asyncio.CancelledError, GeneratorExit))


def _reason(error: BaseException) -> BaseException:
    if isinstance(error, MiddlewareFailure) and isinstance(error.__cause__, FrontdeskError):
        error = error.__cause__
    return build_answered_error() if isinstance(error, LostAnswerError) else error
