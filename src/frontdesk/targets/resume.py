"""Plans how a turn of a workflow resumes from the checkpoint of its session."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from hmac import compare_digest
from typing import Any, cast

from agent_framework import AgentExecutor, Content, Message, WorkflowCheckpoint

from frontdesk.approvals.extraction import digest
from frontdesk.chat.i18n.wording import ENGLISH_WORDING
from frontdesk.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    Phrase,
    SessionRequiredError,
    TargetError,
    UnsupportedError,
)
from frontdesk.framework.client_outputs import as_results, take_outputs
from frontdesk.framework.request_forms import FORM, build_form, check
from frontdesk.framework.workflow_requests import (
    CHOICE,
    QUESTION,
    Choice,
    Request,
    approvals_in,
    build_call_id,
    calls_in,
    describe_wanted,
    extract_choices,
    find_choice,
    is_approval,
    short_name,
)
from frontdesk.interfaces.target import AbandonedQuestions, TargetTurn
from frontdesk.loggers import runs as log
from frontdesk.models.approval import PendingApproval
from frontdesk.models.request import AdmittedRequest, ChannelRequest, ClientOutput
from frontdesk.models.session import CheckpointRef, SessionRecord
from frontdesk.targets.checkpoints import Checkpoints, PauseStorage, ReadOnly, RunStorage, answers_in
from frontdesk.targets.typed_input import fit_answer, is_instance

_NOT_OPEN = "This question is no longer open."


def presses_choice(request: ChannelRequest) -> bool:
    return QUESTION in request.attributes


def answer_of_chat(admitted: AdmittedRequest, calls: Sequence[Request]) -> AdmittedRequest:
    """Return a request as the answer to one of the open questions: that of its button, else the first.

    A message that does not fit is rejected, and the question stays open.
    """
    request = admitted.request
    call = _find_pressed(request, calls) if presses_choice(request) else calls[0]
    output = ClientOutput(call_id=build_call_id(call), output=_value(request, call))
    return admitted.with_request(client_outputs=(output,), input=None)


def _find_pressed(request: ChannelRequest, calls: Sequence[Request]) -> Request:
    for call in calls:
        if short_name(build_call_id(call)) == request.attributes[QUESTION]:
            return call
    raise NotFoundError(_NOT_OPEN)


def _value(request: ChannelRequest, call: Request) -> Any:
    wanted: Any = call.response_type
    choices = extract_choices(wanted)
    if FORM in request.attributes:
        return _form_value(request.attributes[FORM], wanted, build_call_id(call))
    if presses_choice(request):
        number = request.attributes.get(CHOICE)
        if not isinstance(number, int) or not 0 <= number < len(choices):
            raise NotFoundError(_NOT_OPEN)
        return choices[number].value
    said = request.input
    if isinstance(said, Message) and is_instance(said, wanted):
        return said
    text = said.text if isinstance(said, Message) else said
    if not isinstance(text, str) or not text.strip():
        raise _no_answer(wanted, choices)
    choice = find_choice(choices, text)
    if choice is not None:
        return choice.value
    try:
        fit_answer(text, wanted, build_call_id(call))
    except InvalidRequestError:
        raise _no_answer(wanted, choices) from None
    return text


def _form_value(values: Any, wanted: Any, name: str) -> Any:
    """Return the values of a form, validated again: the form was only displayed, the type is authoritative."""
    fields = build_form(wanted)
    if not fields or not isinstance(values, Mapping):
        raise NotFoundError(_NOT_OPEN)
    given = dict(cast("Mapping[str, Any]", values))
    problems = check(fields, given)
    if problems:
        raise InvalidRequestError(problems[0].sentence, param="input")
    fit_answer(given, wanted, name)
    return given


def _no_answer(wanted: Any, choices: Sequence[Choice]) -> InvalidRequestError:
    answer = describe_wanted(wanted, [choice.label for choice in choices]) or Phrase("question.text")
    phrase = Phrase("question.first", {"answer": answer})
    return InvalidRequestError(ENGLISH_WORDING.say_phrase(phrase), param="input").set_phrase(
        phrase.key, **phrase.values
    )


_MAY_NOT_PAUSE = "The workflow asked for more information, and it was built so that it can't be paused."
_NOWHERE_TO_WAIT = "The workflow asks for something, and without a session nothing can wait for the answer."
_GIVEN_UP = "The question was given up."
_NOT_SAVED = "The workflow asked for more information, and its pause could not be saved."


class Plan:
    """The start of one run, and the checkpoints that it has saved."""

    def __init__(self, checkpoint: WorkflowCheckpoint | None = None, *, resumes: bool = False) -> None:
        self.checkpoint = checkpoint
        self.resumes = resumes
        """Whether the run resumes in the middle, instead of with a new message."""
        self.responses: dict[str, Any] = {}
        self.approvals: dict[str, str] = {}
        """The requests of the approvals that are answered, by the target's id of the approval."""
        self.earlier: Mapping[str, Any] | None = None
        """The answers of earlier runs, for a workflow that is resumed by a replay."""
        self.storage: RunStorage | PauseStorage | ReadOnly | None = None
        self.pending: Mapping[str, Request] = {}
        """The requests that wait in the last checkpoint, by their ids."""
        self._last: CheckpointRef | None = None

    @property
    def checkpoint_id(self) -> str | None:
        return None if self.checkpoint is None else self.checkpoint.checkpoint_id

    @property
    def keeps(self) -> bool:
        return isinstance(self.storage, (RunStorage, PauseStorage))

    @property
    def failure(self) -> Exception | None:
        return self.storage.failure if isinstance(self.storage, (RunStorage, PauseStorage)) else None

    @property
    def end(self) -> CheckpointRef | None:
        """Return the checkpoint at which the run has ended or paused, if it was saved."""
        return None if self.failure else self._last

    def note_saved(self, checkpoint: WorkflowCheckpoint, ref: CheckpointRef) -> None:
        """Record a saved checkpoint. One with undelivered messages is not an end."""
        self._last = None if any(checkpoint.messages.values()) else ref
        self.pending = dict(checkpoint.pending_request_info_events)

    def answers(self, messages: Sequence[Message], workflow: Any) -> dict[str, Any]:
        """Return the answers with which the run resumes. Approvals come from its messages."""
        approvals: dict[str, Any] = {}
        for message in messages:
            for content in message.contents:
                if content.type == "function_approval_response":
                    request_id = self.approvals[str(content.id)]
                    reason = "" if content.approved or not self._asks_agent(request_id, workflow) else message.text
                    approvals[request_id] = _build_rejection(content, reason) if reason else content
        answers = {**(self.earlier or {}), **self.responses, **approvals}
        if self.earlier is not None and isinstance(self.storage, RunStorage):
            self.storage.answers = answers
        return answers

    def _asks_agent(self, request_id: str, workflow: Any) -> bool:
        """Return True if a request is an agent's. Executors of other kinds take a yes or a no."""
        pending = {} if self.checkpoint is None else self.checkpoint.pending_request_info_events
        executors: Any = getattr(workflow, "executors", None) or {}
        asked = pending.get(request_id)
        return asked is not None and isinstance(executors.get(asked.source_executor_id), AgentExecutor)


def _build_rejection(answer: Content, reason: str) -> Content:
    """Return a rejection as the call's result. The framework's own rejection has no field for a reason."""
    call = answer.function_call
    return Content.from_function_result(
        call_id=str((answer if call is None else call).call_id),
        result=f"Error: Tool call invocation was rejected by user: {reason}",
    )


class Resumption:
    def __init__(
        self, checkpoints: Checkpoints, signature: Callable[[], str | None], *, replays: bool, anew: bool = False
    ) -> None:
        """Compare workflow versions by `signature`. `replays` means that it is resumed by a replay.

        `anew` means that its session is restored from its history. Then only a pause is kept and restored.
        """
        self._checkpoints = checkpoints
        self._signature = signature
        self._replays = replays
        self._anew = anew

    async def plan(self, turn: TargetTurn) -> Plan:
        """Plan how the turn resumes. Reject answers that do not fit, and use up no approval."""
        request, record = turn.admitted.request, turn.record
        if self._anew and request.checkpoint_id is not None:
            raise InvalidRequestError("This target does not support checkpoints.", param="checkpoint_id")
        if record is None:
            if request.checkpoint_id is not None:
                raise InvalidRequestError(
                    "`checkpoint_id` requires the session of the checkpoint.", param="checkpoint_id"
                )
            take_outputs((), request.client_outputs)
            return Plan()
        checkpoint = await self._checkpoint(turn, record)
        if turn.admitted.pushes:
            request = _hear_answer(turn, checkpoint)
        if request.client_outputs or request.approvals:
            questions = [await turn.question(answer.approval_id) for answer in request.approvals]
            plan = _plan_answers(turn, checkpoint, questions)
            _require_same_calls(checkpoint, questions)
        elif checkpoint is not None and request.checkpoint_id is not None and request.input is None:
            plan = self._plan_continuation(checkpoint)
        else:
            plan = Plan(await self._before_message(turn, record, checkpoint))
        if self._replays and plan.checkpoint is not None:
            plan.earlier = answers_in(plan.checkpoint)
        if request.store:

            def note(saved: WorkflowCheckpoint, ref: CheckpointRef) -> None:
                turn.checkpoint = ref
                plan.note_saved(saved, ref)

            storage = self._checkpoints.open(record.session_id, note, plan.checkpoint, turn.reached)
            plan.storage = storage
            if self._anew:
                at_rest = record.checkpoint is None or (checkpoint is not None and not _list_waiting(checkpoint))
                plan.storage = PauseStorage(storage, always=not at_rest)
        elif plan.checkpoint is not None:
            plan.storage = ReadOnly(plan.checkpoint)
        return plan

    async def give_up(self, record: SessionRecord) -> AbandonedQuestions | None:
        ref = record.checkpoint
        checkpoint = None if ref is None else await self._checkpoints.find(ref)
        if checkpoint is None or checkpoint.graph_signature_hash != self._signature():
            return None
        calls = calls_in(_list_waiting(checkpoint))
        if not calls:
            return None
        left = {name: asked for name, asked in checkpoint.pending_request_info_events.items() if is_approval(asked)}
        results = as_results([ClientOutput(call_id=build_call_id(call), output=_GIVEN_UP) for call in calls])
        if not left and (self._replays or self._anew):
            # The next message starts anew in any case.
            return AbandonedQuestions(questions=len(calls), checkpoint=None, messages=results)
        # The executors keep what they remember, and hear of no answer.
        without = replace(
            checkpoint, checkpoint_id=f"{checkpoint.checkpoint_id}-given-up", pending_request_info_events=left
        )
        saved = await self._checkpoints.keep(record.session_id, without)
        return AbandonedQuestions(questions=len(calls), checkpoint=saved, messages=results)

    async def _checkpoint(self, turn: TargetTurn, record: SessionRecord) -> WorkflowCheckpoint | None:
        request, ref = turn.admitted.request, record.checkpoint
        named = request.checkpoint_id
        if named is not None and (ref is None or ref.checkpoint_id != named):
            ref = CheckpointRef(session_id=record.session_id, checkpoint_id=named)
        if ref is None:
            return None
        checkpoint = await self._checkpoints.find(ref)
        if checkpoint is not None and checkpoint.graph_signature_hash == self._signature():
            if named is not None and _holds_approval(checkpoint):
                raise _once("The approval at this checkpoint was already used. It can be used only once.")
            return checkpoint
        if named is not None and checkpoint is None:
            raise NotFoundError("Checkpoint not found.", param="checkpoint_id")
        why = "is gone" if checkpoint is None else "was saved by another version of the workflow"
        if named is not None or request.client_outputs or request.approvals:
            raise ConflictError(f"The checkpoint of this session {why}.", code="checkpoint_lost")
        run_id = turn.admitted.run_id
        log.warning(
            "checkpoint restored nothing, starting anew: checkpoint_id=%s reason=%s run_id=%s",
            ref.checkpoint_id,
            why,
            run_id,
        )
        return None

    def _plan_continuation(self, checkpoint: WorkflowCheckpoint) -> Plan:
        if not self._replays and not checkpoint.messages and not checkpoint.pending_request_info_events:
            raise InvalidRequestError(
                "The run of this checkpoint has ended. Send a message to continue.", param="checkpoint_id"
            )
        return Plan(checkpoint, resumes=True)

    async def _before_message(
        self, turn: TargetTurn, record: SessionRecord, checkpoint: WorkflowCheckpoint | None
    ) -> WorkflowCheckpoint | None:
        if checkpoint is None:
            return None
        if any(checkpoint.messages.values()):
            raise InvalidRequestError(
                "The run of this checkpoint has not ended. Continue it without a message.", param="checkpoint_id"
            )
        waiting = _list_waiting(checkpoint)
        open_requests = [name for request in waiting if (name := await _open_name(turn, record, request))]
        if open_requests:
            names = ", ".join(open_requests)
            error = ConflictError(f"The session waits for an answer to {names}.", code="answer_needed", param="input")
            raise error.set_phrase("error.answer_needed", names=names)
        if waiting:
            log.warning(
                "approval already used by a run that did not end, starting anew: session_id=%s run_id=%s",
                record.session_id,
                turn.admitted.run_id,
            )
            return None
        return None if self._replays or self._anew else checkpoint


def _hear_answer(turn: TargetTurn, checkpoint: WorkflowCheckpoint | None) -> ChannelRequest:
    """Interpret a chat message as the answer to an open question. Return the changed request."""
    request = turn.admitted.request
    calls = [] if checkpoint is None else calls_in(_list_waiting(checkpoint))
    if request.client_outputs or request.approvals or not (calls or presses_choice(request)):
        return request
    turn.admitted = answer_of_chat(turn.admitted, calls)
    return turn.admitted.request


def _list_waiting(checkpoint: WorkflowCheckpoint) -> list[Request]:
    return list(checkpoint.pending_request_info_events.values())


def _plan_answers(
    turn: TargetTurn, checkpoint: WorkflowCheckpoint | None, questions: Sequence[PendingApproval | None]
) -> Plan:
    request = turn.admitted.request
    waiting = [] if checkpoint is None else _list_waiting(checkpoint)
    calls = {build_call_id(call): call for call in calls_in(waiting)}
    left = take_outputs(calls, request.client_outputs)
    if request.input not in (None, []):
        raise InvalidRequestError("A waiting workflow accepts answers only. Send the message later.", param="input")
    plan = Plan(checkpoint, resumes=True)
    plan.responses = {
        str(calls[output.call_id].request_id): _fit(calls[output.call_id], output) for output in request.client_outputs
    }
    asked = {str(question.data.id): question for question in waiting if is_approval(question)}
    plan.approvals = {target_id: str(question.request_id) for target_id, question in asked.items()}
    answered = [None if question is None else asked.get(question.target_id) for question in questions]
    if None in answered:
        raise _once("The session has no such pending approval.")
    # An executor resumes when all its answers are there. If the answer to a call came last, it could be sent again in
    # another branch, and the approval would count there too.
    executors = {question.source_executor_id for question in answered if question is not None}
    first = sorted(call_id for call_id in left if calls[call_id].source_executor_id in executors)
    if first:
        error = InvalidRequestError(f"Answer {first[0]} before the approval.", param="input")
        raise error.set_phrase("error.answer_needed_before", name=first[0])
    return plan


def _require_same_calls(checkpoint: WorkflowCheckpoint | None, questions: Sequence[PendingApproval | None]) -> None:
    """Reject an approval if its pending call in the checkpoint is not the one that was shown."""
    waiting = approvals_in([] if checkpoint is None else checkpoint.pending_request_info_events.values())
    requests = {str(content.id): content for content in waiting}
    for question in questions:
        if question is None or not compare_digest(question.digest, digest(requests[question.target_id])):
            raise _once("The session has no such pending approval.")


def require_pause(resumption: Resumption | None, plan: Plan, waiting: Collection[str]) -> None:
    """Raise if a result waits for answers and its pause was not saved."""
    if resumption is None:
        raise UnsupportedError(_MAY_NOT_PAUSE)
    if not plan.keeps:
        raise SessionRequiredError(_NOWHERE_TO_WAIT)
    if plan.end is None or not plan.pending.keys() >= set(waiting):
        # The framework only logs it, and goes on.
        log.error("failed to save the paused workflow", exc_info=plan.failure)
        raise TargetError(_NOT_SAVED) from plan.failure


def _once(message: str) -> ConflictError:
    return ConflictError(message, code="approval_answered")


def _holds_approval(checkpoint: WorkflowCheckpoint) -> bool:
    undelivered = (message.data for messages in checkpoint.messages.values() for message in messages)
    given = (*undelivered, *answers_in(checkpoint).values())
    return any(isinstance(value, Content) and value.type == "function_approval_response" for value in given)


def _fit(call: Request, given: ClientOutput) -> Any:
    data: Any = call.data
    if call.response_type is Content and isinstance(data, Content) and data.type == "function_call":
        # An agent in the workflow has called a function of the client.
        return Content.from_function_result(str(data.call_id), result=given.output)
    return fit_answer(given.output, call.response_type, given.call_id)


async def _open_name(turn: TargetTurn, record: SessionRecord, request: Request) -> str | None:
    """Return the id under which a request can be answered, if it still can. Approvals can until their tool begins."""
    if not is_approval(request):
        return build_call_id(request)
    target_id = str(request.data.id)
    question = await turn.question_asked_as(target_id)
    if question is None:
        # In a group the approval may belong to another person.
        return target_id if record.owner != turn.admitted.owner else None
    return question.approval_id if question.waits else None
