"""Pieces of an answer that belong to no protocol, for channels that render them as events of their own."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
from agent_framework import Content

from frontdesk.framework.contents import (
    as_json,
    call_arguments,
    call_outcome,
    get_asked_call,
    is_reasoning_text,
    is_refusal,
)
from frontdesk.framework.types import is_response
from frontdesk.framework.workflow_requests import (
    REQUEST_INFO,
    approvals_in,
    build_call_id,
    calls_in,
    extract_requests,
    is_request,
    parse_payload,
)
from frontdesk.models.conversation import answer_message_id
from frontdesk.streaming.assembler import Call, StreamAssembler, text_delta


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an answer. Every piece names the message that it belongs to."""

    message_id: str
    """The id of the message: the same in the stream and in the transcript."""


class TextPiece(Piece, frozen=True, kw_only=True):
    text: str
    is_refusal: bool = False
    annotations: Sequence[Mapping[str, Any]] = ()
    """Citations, as the framework has them."""


class ReasoningPiece(Piece, frozen=True, kw_only=True):
    text: str
    is_full: bool = False
    """Whether it is the reasoning itself and not a summary."""


class MediaPiece(Piece, frozen=True, kw_only=True):
    content: Content
    """A picture or a file: data, an address, or the id of a hosted file."""


class ConsentPiece(Piece, frozen=True, kw_only=True):
    link: str
    """The address at which the user gives a tool access."""


class CallPiece(Piece, frozen=True, kw_only=True):
    """A new call. Its arguments follow. Each call is announced once."""

    call_id: str
    name: str
    is_client: bool = False
    """Whether the client executes it."""


class ArgumentsPiece(Piece, frozen=True, kw_only=True):
    call_id: str
    delta: str
    """More of the JSON of the arguments."""


class CallEndPiece(Piece, frozen=True, kw_only=True):
    """The arguments of a call are complete."""

    call_id: str
    arguments: str


class ResultPiece(Piece, frozen=True, kw_only=True):
    call_id: str
    output: str
    is_error: bool = False


class QuestionPiece(Piece, frozen=True, kw_only=True):
    """A question that the run waits for. It comes after the run and the question are stored."""

    question_id: str
    """The id of an approval, or the call id of a workflow's request."""
    call_id: str
    name: str
    arguments: str
    is_approval: bool
    """Whether it is answered as an approval. The request of a workflow is answered as the output of a client call."""
    request: Any
    """The framework's own object: a content, or an event of a workflow."""


class MessageEndPiece(Piece, frozen=True, kw_only=True):
    """Nothing more of the message follows, except the ends of its calls."""


class StatePiece(Piece, frozen=True, kw_only=True):
    """A change of the state shared with the client. `message_id` is empty."""

    snapshot: Any = msgspec.UNSET
    """The whole state, if it is set."""
    delta: Sequence[Mapping[str, Any]] = ()
    """Otherwise operations of JSON Patch (RFC 6902)."""


class PieceAssembler(StreamAssembler):
    """Turns the updates of a run into pieces. `add` and `message` take what the run yields, `finish` ends it.

    Each of them appends to `pieces`. Call `take` after each for the new ones.
    """

    def __init__(self, run_id: str, client_tools: Container[str] = (), announced: Iterable[str] = ()) -> None:
        """`announced` are the ids of calls of earlier runs, which are not announced again when they still wait."""
        super().__init__(client_tools)
        self.pieces: list[Piece] = []
        self._run_id = run_id
        self._place = -1
        self._is_counted = False
        self._open_message: str | None = None
        """The id of the message that a piece has named and that has not ended."""
        self._said: list[str] = []
        self._declined: list[str] = []
        self._thought: list[str] = []
        self._known_fragments: set[str] = set()
        self._announced: set[str] = set(announced)
        self._unended: dict[int, Call] = {}

    def take(self) -> list[Piece]:
        """Return the pieces since the last call."""
        pieces, self.pieces = self.pieces, []
        return pieces

    @property
    def message_id(self) -> str:
        """The id of the present message."""
        return answer_message_id(self._run_id, max(self._place, 0))

    def _begin(self, role: str) -> None:
        super()._begin(role)
        self._is_counted = False

    def _feed(self, contents: Sequence[Content]) -> None:
        if self._is_counted and len(contents) == 1 and contents[0].type == "text":
            # Most updates of a stream: more text of the message that is counted.
            return super()._feed(contents)
        # The framework leaves out messages without contents, so that they have no position in the transcript.
        count = sum([self._counts(content) for content in contents])
        if count and not self._is_counted:
            self._end_message()
            self._is_counted = True
            self._place += 1
        super()._feed(contents)

    def _counts(self, content: Content) -> bool:
        if content.type == "function_call" and content.id is not None:
            # The framework joins fragments with one id, across messages too.
            if content.id in self._known_fragments:
                return False
            self._known_fragments.add(content.id)
        return content.type != "usage"

    def _add(self, piece: Piece) -> None:
        self._open_message = piece.message_id
        self.pieces.append(piece)

    def _end_message(self) -> None:
        self._end_calls()
        self._said, self._declined, self._thought = [], [], []
        if self._open_message is not None:
            self.pieces.append(MessageEndPiece(message_id=self._open_message))
            self._open_message = None

    def on_text(self, content: Content) -> None:
        is_refused = bool(content.additional_properties) and is_refusal(content.additional_properties)
        text = text_delta(self._declined if is_refused else self._said, content.text or "", content)
        if text or content.annotations:
            annotations: Any = content.annotations or ()
            self._add(TextPiece(message_id=self.message_id, text=text, is_refusal=is_refused, annotations=annotations))

    def on_error(self, message: str) -> None:
        self._add(TextPiece(message_id=self.message_id, text=message, is_refusal=True))

    def on_reasoning(self, content: Content) -> None:
        text = text_delta(self._thought, content.text or "", content)
        if text:
            self._add(ReasoningPiece(message_id=self.message_id, text=text, is_full=is_reasoning_text(content)))

    def on_media(self, content: Content) -> None:
        self._add(MediaPiece(message_id=self.message_id, content=content))

    def on_images(self, content: Content) -> None:
        outputs: Any = content.outputs
        for output in cast("list[Any]", outputs) if isinstance(outputs, list) else [outputs]:
            if isinstance(output, Content):
                self.on_media(output)

    def on_consent(self, link: str) -> None:
        if link:
            self._add(ConsentPiece(message_id=self.message_id, link=link))

    def on_call(self, call: Call) -> None:
        content = call.content
        call_id = content.call_id or f"{self._run_id}_call_{call.number}"
        if content.user_input_request and call_id in self._announced:
            # The framework announces a call once more when it pauses for it.
            return
        name = content.name or content.tool_name or content.type.removesuffix("_tool_call")
        self._announced.add(call_id)
        self._unended[id(call)] = call
        call.item = call_id
        self._add(CallPiece(message_id=self.message_id, call_id=call_id, name=name, is_client=call.is_client))

    def on_arguments(self, call: Call, delta: str) -> None:
        if id(call) in self._unended:
            self._add(ArgumentsPiece(message_id=self.message_id, call_id=call.item, delta=delta))

    def _end_calls(self) -> None:
        unended, self._unended = self._unended, {}
        for call in unended.values():
            self._end_call(call)

    def _end_call(self, call: Call) -> None:
        arguments = "".join(call.pieces)
        if not arguments:
            arguments = call_arguments(call.content) or "{}"
            self._add(ArgumentsPiece(message_id=self.message_id, call_id=call.item, delta=arguments))
        self._add(CallEndPiece(message_id=self.message_id, call_id=call.item, arguments=arguments))

    def on_result(self, call: Call | None, content: Content) -> None:
        if call is not None and self._unended.pop(id(call), None) is not None:
            self._end_call(call)
        call_id = content.call_id if call is None else call.item or content.call_id
        self._add(
            ResultPiece(
                message_id=self.message_id,
                call_id=call_id or "",
                output=call_outcome(content),
                is_error=bool(content.exception),
            )
        )

    def on_question(self, content: Content) -> None:
        call = content.function_call
        if call is None or not call.call_id or call.call_id in self._announced:
            return
        # A target may ask about a call without announcing it.
        name, arguments = get_asked_call(content)
        self._announced.add(call.call_id)
        self._add(CallPiece(message_id=self.message_id, call_id=call.call_id, name=name))
        self._add(ArgumentsPiece(message_id=self.message_id, call_id=call.call_id, delta=arguments))
        self._add(CallEndPiece(message_id=self.message_id, call_id=call.call_id, arguments=arguments))

    def on_state(self, snapshot: Any, delta: Sequence[Mapping[str, Any]]) -> None:
        self.pieces.append(StatePiece(message_id="", snapshot=snapshot, delta=delta))

    def finish(self, result: Any = None) -> None:
        """End the message and the calls that are open, and add the questions of a recorded result."""
        self._end_message()
        requests = () if is_response(result) else extract_requests(result)
        approvals = result.user_input_requests if is_response(result) else approvals_in(requests)
        for content in approvals:
            if content.type == "function_approval_request" and content.function_call is not None:
                name, arguments = get_asked_call(content)
                call_id = content.function_call.call_id or ""
                self._ask(str(content.id), call_id, name, arguments, content, is_approval=True)
            elif is_request(content):
                call_id = str(content.call_id)
                self._ask(call_id, call_id, REQUEST_INFO, call_arguments(content), content)
        for request in calls_in(requests):
            call_id = build_call_id(request)
            self._ask(call_id, call_id, REQUEST_INFO, as_json(parse_payload(request)), request)

    def _ask(
        self, question_id: str, call_id: str, name: str, arguments: str, request: Any, *, is_approval: bool = False
    ) -> None:
        self.pieces.append(
            QuestionPiece(
                message_id=self.message_id,
                question_id=question_id,
                call_id=call_id,
                name=name,
                arguments=arguments,
                is_approval=is_approval,
                request=request,
            )
        )
