"""Renders the updates of a run as AG-UI events. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from agent_framework import AgentResponseUpdate, Content

from frontdesk.channels.agui.interrupts import Questions, list_interrupts
from frontdesk.channels.agui.schema import Interrupt
from frontdesk.channels.agui.thread import SEPARATOR
from frontdesk.errors import RequestError
from frontdesk.framework.contents import file_name
from frontdesk.framework.types import is_event
from frontdesk.framework.workflow_requests import REQUEST_INFO
from frontdesk.models.run import RunFailure, RunRecord
from frontdesk.openai.bodies import answers, encode, sum_usage
from frontdesk.streaming.pieces import (
    ArgumentsPiece,
    CallEndPiece,
    CallPiece,
    ConsentPiece,
    MediaPiece,
    MessageEndPiece,
    Piece,
    PieceAssembler,
    QuestionPiece,
    ReasoningPiece,
    ResultPiece,
    StatePiece,
    TextPiece,
)

TOOLS = "tools"
"""The name under which a run stores the names of its frontend tools in `RunRecord.details`."""
_STEP_STARTED = "executor_invoked"
_STEP_ENDED = frozenset({"executor_completed", "executor_failed"})
_USAGE = (
    ("inputTokens", "input_token_count"),
    ("outputTokens", "output_token_count"),
    ("totalTokens", "total_token_count"),
)


def event(kind: str, **fields: Any) -> bytes:
    return b"data: %b\n\n" % encode({"type": kind, **fields})


class _Deltas:
    """Encodes the fragments of one message. The result equals full encoding, for a fraction of the cost."""

    __slots__ = ("_before", "message_id")

    def __init__(self, kind: str, message_id: str) -> None:
        self.message_id = message_id
        self._before = b'data: {"type":"%b","messageId":%b,"delta":' % (kind.encode(), encode(message_id))

    def event(self, text: str) -> bytes:
        return b"%b%b}\n\n" % (self._before, encode(text))


class PieceRenderer:
    """Renders the pieces of runs as events. Every opened message, call and step is closed once."""

    def __init__(self) -> None:
        self.questions: list[QuestionPiece] = []
        self._text: _Deltas | None = None
        self._reasoning: _Deltas | None = None
        self._message_id = ""
        self._thoughts = self._media = 0
        self._steps: dict[str, int] = {}
        self._client_calls: list[str] = []

    def render(self, pieces: Sequence[Piece]) -> list[bytes]:
        events: list[bytes] = []
        for piece in pieces:
            if type(piece) is TextPiece:
                self._add_text(events, piece)
            elif isinstance(piece, QuestionPiece):
                self.questions.append(piece)
            else:
                self._add_other(events, piece)
        return events

    def _add_text(self, events: list[bytes], piece: TextPiece) -> None:
        deltas = self._text
        if deltas is None or deltas.message_id != piece.message_id:
            self._begin_message(events, piece.message_id)
            deltas = self._text = _Deltas("TEXT_MESSAGE_CONTENT", piece.message_id)
            events.append(event("TEXT_MESSAGE_START", messageId=piece.message_id, role="assistant"))
        if self._reasoning is not None:
            self._end_reasoning(events)
        if piece.text:
            events.append(deltas.event(piece.text))
        if piece.annotations:
            value = {"messageId": piece.message_id, "annotations": piece.annotations}
            events.append(event("CUSTOM", name="citations", value=value))

    def _add_other(self, events: list[bytes], piece: Piece) -> None:
        if isinstance(piece, ArgumentsPiece):
            events.append(event("TOOL_CALL_ARGS", toolCallId=piece.call_id, delta=piece.delta))
        elif isinstance(piece, ReasoningPiece):
            self._add_reasoning(events, piece)
        elif isinstance(piece, CallPiece):
            self._begin_message(events, piece.message_id)
            self._end_reasoning(events)
            if piece.is_client:
                self._client_calls.append(piece.call_id)
            fields = {"toolCallId": piece.call_id, "toolCallName": piece.name, "parentMessageId": piece.message_id}
            events.append(event("TOOL_CALL_START", **fields))
        elif isinstance(piece, CallEndPiece):
            events.append(event("TOOL_CALL_END", toolCallId=piece.call_id))
        elif isinstance(piece, ResultPiece):
            result_id = f"{piece.message_id}{SEPARATOR}{piece.call_id}"
            fields = {"messageId": result_id, "toolCallId": piece.call_id, "content": piece.output, "role": "tool"}
            events.append(event("TOOL_CALL_RESULT", **fields))
        elif isinstance(piece, StatePiece):
            events.append(_render_state(piece))
        elif isinstance(piece, MessageEndPiece):
            self.end_message(events)
        elif isinstance(piece, MediaPiece):
            self._begin_message(events, piece.message_id)
            self._add_activity(events, "file", show_file(piece.content))
        elif isinstance(piece, ConsentPiece):
            self._begin_message(events, piece.message_id)
            self._add_activity(events, "consent", {"url": piece.link})

    def _begin_message(self, events: list[bytes], message_id: str) -> None:
        if message_id != self._message_id:
            self.end_message(events)
            self._message_id, self._thoughts, self._media = message_id, 0, 0

    def _add_reasoning(self, events: list[bytes], piece: ReasoningPiece) -> None:
        self._begin_message(events, piece.message_id)
        if self._reasoning is None:
            shown_id = build_reasoning_id(piece.message_id, self._thoughts)
            self._thoughts += 1
            self._reasoning = _Deltas("REASONING_MESSAGE_CONTENT", shown_id)
            events.append(event("REASONING_START", messageId=shown_id))
            events.append(event("REASONING_MESSAGE_START", messageId=shown_id, role="reasoning"))
        events.append(self._reasoning.event(piece.text))

    def _add_activity(self, events: list[bytes], kind: str, content: Mapping[str, Any]) -> None:
        shown_id = f"{self._message_id}{SEPARATOR}m{self._media}"
        self._media += 1
        events.append(event("ACTIVITY_SNAPSHOT", messageId=shown_id, activityType=kind, content=content))

    def _end_reasoning(self, events: list[bytes]) -> None:
        if self._reasoning is not None:
            shown_id, self._reasoning = self._reasoning.message_id, None
            events.append(event("REASONING_MESSAGE_END", messageId=shown_id))
            events.append(event("REASONING_END", messageId=shown_id))

    def end_message(self, events: list[bytes]) -> None:
        """Close the open text and reasoning."""
        self._end_reasoning(events)
        if self._text is not None:
            events.append(event("TEXT_MESSAGE_END", messageId=self._text.message_id))
            self._text = None

    def step(self, kind: str, name: str) -> list[bytes]:
        """Return the event of an executor. One that several messages reach at once is one step."""
        running = self._steps.get(name, 0)
        if kind == _STEP_STARTED:
            self._steps[name] = running + 1
            return [] if running else [event("STEP_STARTED", stepName=name)]
        if not running:
            return []
        if running > 1:
            self._steps[name] = running - 1
            return []
        del self._steps[name]
        return [event("STEP_FINISHED", stepName=name)]

    def end_steps(self) -> list[bytes]:
        ended, self._steps = [event("STEP_FINISHED", stepName=name) for name in self._steps], {}
        return ended

    @property
    def client_calls(self) -> Sequence[str]:
        """The calls that the client executes."""
        return self._client_calls


def build_reasoning_id(message_id: str, number: int) -> str:
    return f"{message_id}{SEPARATOR}r{number}"


def _render_state(piece: StatePiece) -> bytes:
    if piece.snapshot is not msgspec.UNSET:
        return event("STATE_SNAPSHOT", snapshot=piece.snapshot)
    return event("STATE_DELTA", delta=piece.delta)


def show_file(content: Content) -> dict[str, Any]:
    """Return the content of the activity message of a file."""
    name = file_name(content)
    shown = {"url": content.uri or "", "mimeType": content.media_type or "application/octet-stream"}
    return {**shown, "name": name} if name else shown


class Script:
    """Converts the updates of a run into the events of one AG-UI run."""

    def __init__(
        self,
        run: RunRecord,
        *,
        thread_id: str,
        run_id: str | None = None,
        is_current: bool = True,
        opening: Sequence[bytes] = (),
    ) -> None:
        """`run_id` is the id under which the client knows the run. Clients before 1.0 are not `is_current`.

        `opening` are the events after the first one.
        """
        self.run_id = run_id or run.run_id
        self._thread_id, self._is_current, self._opening = thread_id, is_current, opening
        self._renderer = PieceRenderer()
        self._ended: Sequence[bytes] | None = None
        self._questions = Questions()
        self.follow(run)

    def follow(self, run: RunRecord) -> None:
        """Continue with the updates of another run of the same chain."""
        self.run = run
        tools: Sequence[str] = run.details.get(TOOLS) or ()
        open_calls: Sequence[Content] = run.open_calls or ()
        announced = [str((call.function_call or call).call_id) for call in open_calls]
        self._assembler = PieceAssembler(run.run_id, frozenset(tools), announced)
        self._renderer.questions, self._ended = [], None

    def begin(self) -> Sequence[bytes]:
        first = event("RUN_STARTED", threadId=self._thread_id, runId=self.run_id)
        return (b"".join((first, *self._opening)),)

    def update(self, update: Any) -> Sequence[bytes]:
        steps: Sequence[bytes] = ()
        if isinstance(update, AgentResponseUpdate):
            self._assembler.update(update)
        else:
            if is_event(update) and (update.type == _STEP_STARTED or update.type in _STEP_ENDED):
                steps = self._renderer.step(update.type, str(update.executor_id))
            self._assembler.add(update)
        events = self._renderer.render(self._assembler.take())
        if steps:
            events = [*steps, *events]
        return events if len(events) <= 1 else (b"".join(events),)

    def finish(self, result: Any) -> Sequence[bytes]:
        """Return the events that end all messages of a run. Its questions are known afterwards."""
        if self._ended is None:
            self._assembler.finish(result)
            events = self._renderer.render(self._assembler.take())
            self._renderer.end_message(events)
            self._ended = [*events, *self._renderer.end_steps()]
        return self._ended

    @property
    def approval_ids(self) -> list[str]:
        """The approvals that the run waits for, after `finish`."""
        return [question.question_id for question in self._renderer.questions if question.is_approval]

    def set_questions(self, questions: Questions) -> None:
        """Set the stored approvals that the run waits for."""
        self._questions = questions

    @property
    def interrupts(self) -> list[Interrupt]:
        """The open questions of the run and of the runs that it continues, after `finish`."""
        return list_interrupts(self._renderer.questions, self._questions)

    def end(self, run: RunRecord, result: Any) -> Sequence[bytes]:
        return (b"".join((*self.finish(result), self._last(run, result))),)

    def _last(self, run: RunRecord, result: Any) -> bytes:
        if run.status == "failed" or (run.status != "completed" and not self._is_current):
            failure = run.failure or RunFailure(code="cancelled", message="The run was cancelled.")
            return event("RUN_ERROR", message=failure.message, code=failure.code)
        fields: dict[str, Any] = {"threadId": self._thread_id, "runId": self.run_id}
        interrupts = self.interrupts
        if run.status != "completed":
            fields["outcome"] = {"type": "cancelled"}
        elif interrupts:
            fields["outcome"] = {"type": "interrupt", "interrupts": interrupts}
        elif self._is_current:
            open_calls = {call.call_id for call in run.client_calls if call.name != REQUEST_INFO}
            pending = [call_id for call_id in self._renderer.client_calls if call_id in open_calls]
            fields["outcome"] = {"type": "success", **({"pendingToolCallIds": pending} if pending else {})}
        if self._is_current and (usage := _usage(result)):
            fields["usage"] = [usage]
        return event("RUN_FINISHED", **fields)

    def fail(self, run: RunRecord, error: RequestError) -> Sequence[bytes]:
        events = self.finish(None)
        return (b"".join((*events, event("RUN_ERROR", message=error.message, code=error.code))),)


def _usage(result: Any) -> dict[str, int]:
    usage = sum_usage(answers(result)) or {}
    return {name: int(usage[key]) for name, key in _USAGE if usage.get(key) is not None}
