"""Opens the session of an admitted request, and starts or defers its run."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from agent_framework import Content, Message

from frontdesk.approvals.answers import ApprovalAnswers, build_resume_messages
from frontdesk.concurrency.current import set_turn
from frontdesk.delivery.plan import Planner
from frontdesk.delivery.presence import Presence
from frontdesk.delivery.routing import ORIGINATING
from frontdesk.errors import NotFoundError, RequestError, RunExistsError
from frontdesk.errors.requests import NO_RUN
from frontdesk.framework.approval_ids import with_shown_ids
from frontdesk.framework.client_outputs import as_results, chain_of_calls, require_new_calls, tells_of_calls
from frontdesk.framework.contents import open_calls
from frontdesk.interfaces.target import Target
from frontdesk.models.delivery import InboxItem, Route
from frontdesk.models.request import AdmittedRequest, ConversationScope
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import RunRecord
from frontdesk.sessions.active import ActiveRun, ActiveRuns
from frontdesk.sessions.branches import Branches
from frontdesk.sessions.job import Job
from frontdesk.sessions.record import Recorder, answer_hosting
from frontdesk.sessions.shared_state import begin_state
from frontdesk.sessions.turn import IdempotentRuns, Turn
from frontdesk.sessions.turns import Turns


class Routes:
    """Computes the route of an answer once, so that all its records agree."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    async def of(self, turn: Turn) -> Route:
        """Return the route of a turn's answer, as first computed."""
        if turn.route is None:
            turn.route = await self._planner.route(turn.admitted) if turn.admitted.is_delivered() else ORIGINATING
        return turn.route

    async def answer_hosting(self, turn: Turn) -> Mapping[str, Any]:
        """Return the `hosting` property of an answer, for targets that store it before it is recorded."""
        return answer_hosting(turn.admitted.request.channel, await self.of(turn))

    async def returns(self, admitted: AdmittedRequest) -> bool:
        """Return True if an answer would also go back to the origin of its request.

        The answer itself is routed at its end, because until then people are linked, unlinked, and seen elsewhere.
        """
        return not admitted.targets_elsewhere() or (await self._planner.route(admitted)).originating


class RunStarter:
    def __init__(
        self,
        *,
        target: Target,
        turns: Turns,
        branches: Branches,
        active: ActiveRuns,
        recorder: Recorder,
        answers: ApprovalAnswers,
        idempotent_runs: IdempotentRuns,
        routes: Routes,
        scopes: Mapping[str, ConversationScope | None],
        check_writable: Callable[[], None] | None,
    ) -> None:
        """Begin no stored run while `check_writable` raises."""
        self._target, self._turns, self._branches, self._active = target, turns, branches, active
        self._recorder, self._answers, self._idempotent_runs, self._routes = recorder, answers, idempotent_runs, routes
        self._scopes, self._check_writable = scopes, check_writable
        self._tells_own_history = target.info.history == "own"
        self._reads_history = target.info.history in ("host", "provider")

    async def open(
        self,
        admitted: AdmittedRequest,
        *,
        waits: bool = False,
        job: Job | None = None,
        event: InboxItem | None = None,
        confirm: Callable[[], Awaitable[None]] | None = None,
    ) -> ActiveRun:
        """Wait for the session of a request, without a time limit if `waits`, and begin its run.

        `confirm` is called in between, and raises if another process has taken over the run.
        """
        self._target.check(admitted.request)
        if job is None:
            turn = await self._turns.open(admitted, tracked=self._scopes[admitted.request.channel], waits=waits)
        else:
            turn = await self.open_turn(admitted, waits, job)
        turn.job, turn.event = job, event
        if self._tells_own_history:
            turn.answer_hosting = partial(self._routes.answer_hosting, turn)
        try:
            if confirm is not None:
                await confirm()
            if self._check_writable is not None and (admitted.request.store or event is not None):
                self._check_writable()
            run = await self._begin(turn)
        except BaseException as error:
            if turn.held:
                if isinstance(error, RequestError):
                    await self._idempotent_runs.revoke(turn)
                self._idempotent_runs.let_go(turn)
            self._turns.close(turn)
            raise
        set_turn(turn)
        return run

    async def join_chain(self, admitted: AdmittedRequest) -> AdmittedRequest:
        """Return a request in the chain of the run that it continues, which must belong to its owner."""
        continued = admitted.request.continues
        if continued is None:
            return admitted
        run = self._active.get(admitted.owner, continued)
        record = await self._recorder.find(admitted.owner, continued) if run is None else run.record
        if record is None:
            raise NotFoundError(NO_RUN, param="continues")
        return admitted.with_root_run(record.chain_id)

    def is_recorded(self, admitted: AdmittedRequest) -> Coroutine[Any, Any, bool]:
        return self._recorder.is_known(admitted.owner, admitted.run_id)

    def open_turn(self, admitted: AdmittedRequest, waits: bool, job: Job | None) -> Coroutine[Any, Any, Turn]:
        scope = self._scopes[admitted.request.channel]
        if job is None:
            return self._turns.open(admitted, tracked=scope, waits=waits)
        return self._branches.open(admitted, job, tracked=scope, waits=waits)

    async def open_cancelled(self, admitted: AdmittedRequest, event: InboxItem) -> Turn:
        """Open a turn for a cancelled event, in the session that it belonged to at that time."""
        scope = self._scopes[admitted.request.channel]
        if event.cancelled:
            turn = await self._turns.open_past(admitted, event.cancelled, tracked=scope)
        else:
            turn = await self._turns.open(admitted, tracked=scope, waits=True)
        turn.event = event
        return turn

    async def _begin(self, turn: Turn) -> ActiveRun:
        """Begin the run of a turn. All rejections happen before anything is written or decided."""
        admitted, request, job = turn.admitted, turn.admitted.request, turn.job
        if request.run_id is not None and job is None:
            # Checked only now: until the session was free, another request may have used the id.
            await self._recorder.refuse_known(admitted, request.run_id)
        if turn.record is not None and type(request.input) is not str and tells_of_calls(request.input):
            require_new_calls(request.input, await turn.history())
        elif job is not None or request.approvals or (self._reads_history and not turn.new and turn.has_history()):
            # Read now, so that a history that can't be read, or has no room, fails before anything is written or sent.
            await turn.history()
        if request.client_state is not None or (turn.record is not None and turn.record.shared_state is not None):
            turn.shared = begin_state(request.client_state, turn.record)
        messages = await (self._build_resume_messages(turn) if request.approvals else self._target.prepare(turn))
        if turn.record is not None and turn.record.client_calls and admitted.root_run_id is None:
            turn.admitted = admitted = admitted.with_root_run(chain_of_calls(turn.record.client_calls, messages))
        record = self._recorder.begin(turn, messages)
        if request.approvals:
            record = record.replace(open_calls=await self._open_calls(turn, messages))
        may_meet_another = request.run_id is not None or request.idempotency_key is not None
        if job is not None or request.approvals or (may_meet_another and self._reserves(turn)):
            with self._active.reserve(record):
                await self._write_start(turn, record)
                if request.approvals:
                    caller, event = admitted.caller, turn.event
                    attempt = await self._answers.take(admitted.owner, request.approvals, caller, event)
                    begins_alone = turn.job is None and request.store
                    beginning = self._idempotent_runs.build_beginning(turn, record) if begins_alone else None
                    turn.answering = self._answers.build_attempt(admitted.owner, request.approvals, attempt, beginning)
        return self._active.begin(turn, record)

    def _reserves(self, turn: Turn) -> bool:
        """Return True if the run id is reserved before the run, because two hosts may have the same request."""
        request = turn.admitted.request
        if turn.job is not None or turn.event is not None:
            return False
        is_chosen = request.run_id is not None and request.store and self._recorder.has_other_hosts
        return is_chosen or request.idempotency_key is not None

    async def _build_resume_messages(self, turn: Turn) -> Sequence[Message]:
        """Return the messages beside the input that resume the session: approvals and client function results."""
        answers = turn.admitted.request.approvals
        questions = await self._answers.find_questions(turn.admitted.owner, turn.record, answers, turn.admitted.caller)
        self._answers.require_unchanged(questions, answers)
        turn.admitted = turn.admitted.with_root_run(turn.admitted.root_run_id or questions[0].chain_id)
        return [*await self._target.prepare(turn), *build_resume_messages(questions, answers)]

    async def _open_calls(self, turn: Turn, messages: Sequence[Message]) -> Sequence[Content] | None:
        """Return the calls that the run continues, and questions about them under the displayed ids."""
        questions = [await turn.question(answer.approval_id) for answer in turn.admitted.request.approvals]
        ids = {question.target_id: question.approval_id for question in questions if question is not None}
        return [with_shown_ids(call, ids) for call in open_calls([*await turn.history(), *messages])] or None

    async def _write_start(self, turn: Turn, record: RunRecord) -> None:
        """Record the start of a run if another process must be able to detect that this one died."""
        if self._reserves(turn):
            turn.job, turn.held = await self._idempotent_runs.hold(turn, record), True
            return
        await self._recorder.record_start(turn, record)
        if turn.job is not None:
            turn.job.is_started = True

    async def revoke(self, turn: Turn) -> None:
        """Remove the start record of a run that has done nothing."""
        if turn.held:
            await self._idempotent_runs.revoke(turn)

    def close(self, run: ActiveRun) -> None:
        set_turn(None)
        self._active.end(run)
        if run.turn.held:
            self._idempotent_runs.let_go(run.turn)
        self._turns.close(run.turn)


Enqueue = Callable[[AdmittedRequest, str | None, InboxItem | None, float | None], Awaitable[RunRecord]]
"""Writes a run to the queue, with the id of a new session, the event that it answers, and when its caller was seen."""


class Deferral:
    def __init__(
        self,
        *,
        turns: Turns,
        branches: Branches,
        active: ActiveRuns,
        answers: ApprovalAnswers,
        presence: Presence,
        routes: Routes,
        enqueue: Enqueue,
        scopes: Mapping[str, ConversationScope | None],
        check_writable: Callable[[], None] | None,
    ) -> None:
        """Queue no run while `check_writable` raises."""
        self._turns, self._branches, self._active, self._answers = turns, branches, active, answers
        self._presence, self._routes, self._enqueue, self._scopes = presence, routes, enqueue, scopes
        self._check_writable = check_writable

    def runs_inline(self, admitted: AdmittedRequest) -> bool:
        """Return True if a request is answered in its own response without recording presence, as most are."""
        request = admitted.request
        is_returned = request.response_target.kind == "originating"
        return is_returned and not (self._presence.matters or request.background)

    async def queue_if_needed(self, admitted: AdmittedRequest) -> HostedRunResult[Any] | None:
        """Record a person's presence, and queue their run if it goes to the background."""
        if admitted.request.background:
            return await self.queue(admitted, seen_at=admitted.admitted_at)
        await self._presence.see(admitted, admitted.admitted_at)
        if await self._routes.returns(admitted):
            return None
        # The caller does not wait for the answer.
        return await self._check_and_enqueue(_detach(admitted))

    async def queue_event_if_needed(self, admitted: AdmittedRequest, event: InboxItem) -> HostedRunResult[Any] | None:
        """Do the same for a platform event, with its arrival time."""
        if admitted.request.background:
            # An event that goes on after a decision says nothing of where the person is.
            return await self.queue(admitted, event, seen_at=None if event.kind == "resume" else event.received_at)
        await self._presence.see(admitted, event.received_at)
        return None

    async def queue(
        self, admitted: AdmittedRequest, event: InboxItem | None = None, *, seen_at: float | None = None
    ) -> HostedRunResult[Any]:
        """Queue a run. Reject it now if it could not run later. Its caller was last seen at `seen_at`."""
        if admitted.request.stream and not await self._routes.returns(admitted):
            admitted = _detach(admitted)
        return await self._check_and_enqueue(admitted, event, seen_at)

    async def _check_and_enqueue(
        self, admitted: AdmittedRequest, event: InboxItem | None = None, seen_at: float | None = None
    ) -> HostedRunResult[Any]:
        if self._active.get(admitted.owner, admitted.run_id) is not None:
            raise RunExistsError
        scope = self._scopes[admitted.request.channel]
        self._turns.check(admitted, scope)
        self._branches.check(admitted, scope)
        await self._turns.check_previous(admitted)
        if self._check_writable is not None:
            self._check_writable()
        admitted = await self._join_chain(admitted, event)
        record = await self._enqueue(admitted, self._turns.new_id(admitted, scope), event, seen_at)
        return HostedRunResult(result=None, run=record)

    async def _join_chain(self, admitted: AdmittedRequest, event: InboxItem | None) -> AdmittedRequest:
        """Return a request in the chain of what it answers. Reject answers that cannot take effect."""
        request = admitted.request
        if not request.approvals:
            scope = self._scopes[request.channel]
            calls = await self._turns.open_calls(admitted, scope) if request.client_outputs else ()
            return admitted.with_root_run(
                admitted.root_run_id or chain_of_calls(calls, as_results(request.client_outputs))
            )
        if event is not None and event.kind == "resume":
            # The decision is recorded, and only this event acts on it.
            return admitted.with_root_run(await self._answers.find_chain(admitted.owner, request.approvals))
        return admitted.with_root_run((await self._answers.check(admitted))[0].chain_id)


def _detach(admitted: AdmittedRequest) -> AdmittedRequest:
    return admitted.with_request(background=True, stream=False)
