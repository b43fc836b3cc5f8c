"""Renders chains of runs as tasks. Pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import msgspec
from agent_framework import Message
from msgspec import UNSET

from frontdesk.channels.a2a.artifacts import build_artifacts, build_part, refusal_text
from frontdesk.channels.a2a.questions import (
    EXTENSION,
    OpenQuestion,
    open_questions,
    pieces_as_questions,
    question_parts,
    questions_in,
)
from frontdesk.channels.a2a.schema import (
    CANCELED,
    COMPLETED,
    FAILED,
    INPUT_REQUIRED,
    REJECTED,
    ROLE_AGENT,
    ROLE_USER,
    SUBMITTED,
    TERMINAL,
    WORKING,
    AnswerOut,
    ArtifactOut,
    MessageOut,
    PartOut,
    StatusOut,
    StatusUpdateOut,
    TaskOut,
    format_time,
)
from frontdesk.framework.contents import as_messages
from frontdesk.models.run import ChainStatus, RunChain, RunRecord

DETAILS = "a2a"
"""The name in `RunRecord.details` of what the channel knows of the message of a run."""
MAX_HISTORY_LENGTH = 500
_STATES: Mapping[ChainStatus, str] = {
    "running": WORKING,
    "input_required": INPUT_REQUIRED,
    "completed": COMPLETED,
    "failed": FAILED,
    "cancelled": CANCELED,
    "incomplete": FAILED,
}


def get_details(run: RunRecord) -> Mapping[str, Any]:
    found: Any = run.details.get(DETAILS)
    # Checking for a `Mapping` costs more, and each task asks several times.
    return cast("Mapping[str, Any]", found) if type(found) is dict else {}


def get_modes(run: RunRecord) -> Sequence[str]:
    """Return the media types that the client of a run accepts. Empty for all."""
    modes: Any = get_details(run).get("modes")
    return tuple(cast("Sequence[str]", modes)) if isinstance(modes, (list, tuple)) else ()


def get_tenant(run: RunRecord) -> str:
    return str(get_details(run).get("tenant") or "")


def get_context_id(run: RunRecord) -> str:
    """Return the context of a run: its session key, without the tenant."""
    return (run.session_key or run.chain_id).removeprefix(tenant_prefix(get_tenant(run)))


def tenant_prefix(tenant: str) -> str:
    return f"{tenant}." if tenant else ""


def state_of_run(run: RunRecord, status: ChainStatus) -> str:
    """Return the state of a task whose newest run has a status."""
    if status == "queued":
        return SUBMITTED if run.root_run_id is None and run.status == "queued" else WORKING
    if status == "completed" and refusal_text(run.run_id, run.result) is not None:
        return REJECTED
    return _STATES[status]


def get_state(chain: RunChain) -> str:
    return state_of_run(chain.newest, chain.status)


def is_terminal(chain: RunChain) -> bool:
    return get_state(chain) in TERMINAL


class TaskView:
    """What the client sees of a task: its chain, and the runs of the chain."""

    def __init__(self, chain: RunChain, runs: Sequence[RunRecord] = ()) -> None:
        """`runs` are those whose artifacts and messages are shown. Empty for the status alone."""
        self._chain, self._runs = chain, runs
        self._built: dict[str, list[ArtifactOut]] = {}
        self.task_id, self.context_id = chain.root.run_id, get_context_id(chain.root)

    def task(self, *, history_length: int | None = None, artifacts: bool = True) -> TaskOut:
        shown = self._artifacts() if artifacts else []
        history = self._history(history_length)
        return TaskOut(
            id=self.task_id,
            context_id=self.context_id,
            status=self.status(),
            artifacts=shown or UNSET,
            history=history or UNSET,
        )

    def status(self) -> StatusOut:
        chain, newest = self._chain, self._chain.newest
        state = get_state(chain)
        questions = open_questions(newest, chain.waiting) if state == INPUT_REQUIRED else []
        return build_status(newest, state, questions, self.task_id, self.context_id)

    def _artifacts(self) -> list[ArtifactOut]:
        return [artifact for run in self._runs for artifact in self._build(run)]

    def _build(self, run: RunRecord) -> list[ArtifactOut]:
        """Return the artifacts of a run, built once for the artifacts and the history of the task."""
        built = self._built.get(run.run_id)
        if built is None:
            modes = get_modes(run) or get_modes(self._chain.root)
            built = self._built[run.run_id] = build_artifacts(run.run_id, run.result, modes)
        return built

    def _history(self, most: int | None) -> list[MessageOut]:
        limit = MAX_HISTORY_LENGTH if most is None else min(most, MAX_HISTORY_LENGTH)
        if limit == 0:
            return []
        messages: list[MessageOut] = []
        for run in reversed(self._runs):
            messages[:0] = run_messages(run, self._build(run), self.task_id, self.context_id)
            if len(messages) >= limit:
                break
        return messages[-limit:]


def build_status(
    run: RunRecord, state: str, questions: Sequence[OpenQuestion], task_id: str, context_id: str
) -> StatusOut:
    """Return the status of a task whose newest run is given."""
    status = StatusOut(state=state, timestamp=format_time(_get_time(run)))
    parts: list[PartOut] = []
    extensions: list[str] = []
    if state == INPUT_REQUIRED:
        parts, extensions = question_parts(questions), [EXTENSION]
    elif state == FAILED and run.failure is not None:
        parts = [PartOut(text=run.failure.message)]
    elif state == REJECTED:
        parts = [PartOut(text=refusal_text(run.run_id, run.result) or "")]
    if parts:
        status.message = MessageOut(
            message_id=f"status_{run.run_id}",
            context_id=context_id,
            task_id=task_id,
            role=ROLE_AGENT,
            parts=parts,
            extensions=extensions or UNSET,
        )
    return status


def status_of_run(run: RunRecord, status: ChainStatus) -> AnswerOut:
    """Return a status update of a task from its newest run alone."""
    state = state_of_run(run, status)
    task_id, context_id = run.chain_id, get_context_id(run)
    questions = pieces_as_questions(questions_in(run)) if state == INPUT_REQUIRED else []
    shown = build_status(run, state, questions, task_id, context_id)
    return AnswerOut(status_update=StatusUpdateOut(task_id=task_id, context_id=context_id, status=shown))


def _get_time(run: RunRecord) -> float:
    return run.created_at if run.finished_at is None else run.finished_at


def run_messages(run: RunRecord, artifacts: Sequence[ArtifactOut], task_id: str, context_id: str) -> list[MessageOut]:
    """Return the message of a client, and what the target has answered."""
    messages: list[MessageOut] = []
    details = get_details(run)
    parts = _input_parts(run, details)
    if parts:
        message_id = str(details.get("message_id") or f"input_{run.run_id}")
        messages.append(
            MessageOut(message_id=message_id, context_id=context_id, task_id=task_id, role=ROLE_USER, parts=parts)
        )
    for artifact in artifacts:
        messages.append(
            MessageOut(
                message_id=artifact.artifact_id,
                context_id=context_id,
                task_id=task_id,
                role=ROLE_AGENT,
                parts=artifact.parts,
            )
        )
    return messages


def _input_parts(run: RunRecord, details: Mapping[str, Any]) -> list[PartOut]:
    answer: Any = details.get("answer")
    if isinstance(answer, str):
        # The parts of a message that has answered questions.
        return msgspec.json.decode(answer, type=list[PartOut])
    given: Any = run.input
    messages = as_messages(given)
    if messages is None:
        return [] if given is None else [PartOut(data=given)]
    contents = [content for message in messages if message.role == "user" for content in _contents(message)]
    return [part for content in contents if (part := build_part(content)) is not None]


def _contents(message: Message) -> Collection[Any]:
    return message.contents


def short_message(run: RunRecord, result: Any, context_id: str, most: int) -> MessageOut | None:
    """Return the answer as one message if it is a short text, and None otherwise."""
    if run.status != "completed" or run.root_run_id is not None or run.client_calls or questions_in(run):
        return None
    artifacts = build_artifacts(run.run_id, result, get_modes(run))
    if len(artifacts) != 1 or not all(isinstance(part.text, str) for part in artifacts[0].parts):
        return None
    if sum(len(str(part.text)) for part in artifacts[0].parts) > most:
        return None
    return MessageOut(
        message_id=artifacts[0].artifact_id, context_id=context_id, role=ROLE_AGENT, parts=artifacts[0].parts
    )
