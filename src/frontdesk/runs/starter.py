"""Opens the session of an admitted request, and begins its run there."""

from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from agent_framework import Content, Message

from frontdesk.abc.target import Target
from frontdesk.approvals.answers import ApprovalAnswers, resumed
from frontdesk.data.delivery import InboxItem
from frontdesk.data.request import AdmittedRequest, ConversationScope
from frontdesk.data.run import RunRecord
from frontdesk.errors import RequestError
from frontdesk.kit.aio.current import set_turn
from frontdesk.kit.framework.approval_ids import with_shown_ids
from frontdesk.kit.framework.client_outputs import need_new_calls, tells_of_calls
from frontdesk.kit.framework.contents import open_calls
from frontdesk.runs.routes import Routes
from frontdesk.sessions.active import ActiveRun, ActiveRuns
from frontdesk.sessions.branches import Branches
from frontdesk.sessions.idempotent_runs import IdempotentRuns
from frontdesk.sessions.job import Job
from frontdesk.sessions.record import Recorder
from frontdesk.sessions.turn import Turn
from frontdesk.sessions.turns import Turns


class RunStarter:
    """Begins runs in their sessions, and releases the sessions at their end."""

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
    ) -> None:
        self._target, self._turns, self._branches, self._active = target, turns, branches, active
        self._recorder, self._answers, self._idempotent_runs, self._routes = recorder, answers, idempotent_runs, routes
        self._scopes = scopes
        self._tells_own_history = target.info.history == "own"

    async def open(
        self,
        admitted: AdmittedRequest,
        *,
        waits: bool = False,
        job: Job | None = None,
        event: InboxItem | None = None,
    ) -> ActiveRun:
        """Wait for the session of a request, without a limit if `waits`, and begin its run."""
        self._target.check(admitted.request)
        turn = await self.open_turn(admitted, waits, job)
        turn.job, turn.event = job, event
        if self._tells_own_history:
            turn.answer_hosting = partial(self._routes.answer_hosting, turn)
        try:
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

    def open_turn(self, admitted: AdmittedRequest, waits: bool, job: Job | None) -> Coroutine[Any, Any, Turn]:
        """Wait for the session of a request, and open a turn in it."""
        scope = self._scopes[admitted.request.channel]
        if job is None:
            return self._turns.open(admitted, tracked=scope, waits=waits)
        return self._branches.open(admitted, job, tracked=scope, waits=waits)

    async def open_cancelled(self, admitted: AdmittedRequest, event: InboxItem) -> Turn:
        """Open a turn for an event that was cancelled, in the session that it belonged to by then."""
        scope = self._scopes[admitted.request.channel]
        if event.cancelled:
            turn = await self._turns.open_past(admitted, event.cancelled, tracked=scope)
        else:
            turn = await self._turns.open(admitted, tracked=scope, waits=True)
        turn.event = event
        return turn

    async def _begin(self, turn: Turn) -> ActiveRun:
        """Begin the run of a turn; whatever can be refused is refused before anything is written or decided."""
        admitted, request, job = turn.admitted, turn.admitted.request, turn.job
        if request.run_id is not None and job is None:
            # Checked only now: until the session was free, another request may have used the id.
            await self._recorder.refuse_known(admitted, request.run_id)
        if turn.record is not None and tells_of_calls(request.input):
            need_new_calls(request.input, await turn.history())
        elif job is not None or request.approvals:
            # Read now, so that a history that can't be read fails before anything is written.
            await turn.history()
        messages = await (self._resuming_messages(turn) if request.approvals else self._target.prepare(turn))
        record = self._recorder.begin(turn, messages)
        if request.approvals:
            record = record.replace(open_calls=await self._open_calls(turn, messages))
        if job is not None or request.approvals or request.idempotency_key is not None:
            with self._active.reserved(record):
                await self._write_start(turn, record)
                if request.approvals:
                    caller, event = admitted.caller, turn.event
                    attempt = await self._answers.take(admitted.owner, request.approvals, caller, event)
                    turn.answer(request.approvals, attempt)
        return self._active.begin(turn, record)

    async def _resuming_messages(self, turn: Turn) -> Sequence[Message]:
        """Return the messages that resume the session beside the input: approvals, and results of client functions."""
        answers = turn.admitted.request.approvals
        questions = await self._answers.asked(turn.admitted.owner, turn.record, answers, turn.admitted.caller)
        self._answers.need_unchanged(questions, answers)
        return [*await self._target.prepare(turn), *resumed(questions, answers)]

    async def _open_calls(self, turn: Turn, messages: Sequence[Message]) -> Sequence[Content] | None:
        """Return the calls that the run goes on with, and questions about them under the ids that were shown."""
        questions = [await turn.question(answer.approval_id) for answer in turn.admitted.request.approvals]
        ids = {question.target_id: question.approval_id for question in questions if question is not None}
        return [with_shown_ids(call, ids) for call in open_calls([*await turn.history(), *messages])] or None

    async def _write_start(self, turn: Turn, record: RunRecord) -> None:
        """Record that a run begins, where another process must know if this one ends."""
        if turn.job is None and turn.admitted.request.idempotency_key is not None:
            turn.job, turn.held = await self._idempotent_runs.hold(turn, record), True
            return
        await self._recorder.started(turn, record)
        if turn.job is not None:
            turn.job.is_started = True

    async def revoke(self, turn: Turn) -> None:
        """Take back the record of a beginning for a run that has done nothing."""
        if turn.held:
            await self._idempotent_runs.revoke(turn)

    def close(self, run: ActiveRun) -> None:
        """End a run in this process, and release its session."""
        set_turn(None)
        self._active.end(run)
        if run.turn.held:
            self._idempotent_runs.let_go(run.turn)
        self._turns.close(run.turn)
