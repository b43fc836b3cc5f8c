"""The open questions of a task: how a status message shows them, and which answers a message has. Pure."""

import hmac
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import UNSET

from frontdesk.channels.a2a.errors import invalid
from frontdesk.channels.a2a.modes import JSON
from frontdesk.channels.a2a.schema import PartIn, PartOut, format_time
from frontdesk.display.person_names import build_label, list_awaited
from frontdesk.framework.approval_ids import waits_for
from frontdesk.framework.contents import display_call, get_asked_call
from frontdesk.framework.outputs import output_json
from frontdesk.framework.request_forms import build_schema
from frontdesk.framework.workflow_requests import extract_choices, find_choice, question_text
from frontdesk.models.approval import ApprovalAnswer, PendingApproval
from frontdesk.models.base import FrozenStruct
from frontdesk.models.request import ClientOutput
from frontdesk.models.run import RunRecord
from frontdesk.streaming.pieces import PieceAssembler, QuestionPiece

EXTENSION = "urn:frontdesk:a2a:questions:v1"
"""The extension of the data parts with open questions."""
EXTENSION_DESCRIPTION = (
    "Data parts with the open questions of a task. Answer them with data parts on the same task: "
    '{"id": ..., "approved": true} for an approval, {"id": ..., "value": ...} for a question.'
)
_APPROVAL_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["id", "approved"],
}
_SCHEMA = "response_schema"
MAX_REASON_LENGTH = 4096
_IDS = ("id", "approvalId", "approval_id", "questionId", "question_id", "callId", "call_id")
_DECISIONS = ("approved", "approve", "decision", "answer", "value")
_VALUES = ("value", "answer", "output", "response", "result", "approved")
_APPROVING = frozenset({"approve", "approved", "allow", "accept", "ok"})
_REJECTING = frozenset({"reject", "rejected", "deny", "denied", "decline"})
_WORDS = extract_choices(bool)
_PLAIN_TYPES: Mapping[str, type[Any]] = {"bool": bool, "int": int, "float": float, "str": str}


class OpenQuestion(FrozenStruct, frozen=True, kw_only=True):
    """A question that a task waits for."""

    question_id: str
    is_approval: bool
    text: str
    data: Mapping[str, Any]
    """The data part about it."""
    digest: str | None = None
    response_type: Any = None
    """The type of the answer to a question of a workflow, or its name."""
    choices: tuple[str, ...] = ()


def questions_in(run: RunRecord) -> list[QuestionPiece]:
    """Return the questions of the result of a run."""
    if run.result is None:
        return []
    assembler = PieceAssembler(run.run_id)
    assembler.finish(run.result)
    return [piece for piece in assembler.pieces if isinstance(piece, QuestionPiece)]


def open_questions(newest: RunRecord, waiting: Sequence[PendingApproval]) -> list[OpenQuestion]:
    """Return the open questions of a task: approvals of all its runs, and the calls of the newest one."""
    calls = {call.call_id for call in newest.client_calls} if newest.status == "completed" else set[str]()
    asked = [_question(piece) for piece in questions_in(newest) if not piece.is_approval] if calls else []
    known = {question.question_id for question in asked}
    bare = [
        OpenQuestion(question_id=call_id, is_approval=False, text="", data={"id": call_id, "kind": "question"})
        for call_id in sorted(calls - known)
    ]
    return [*map(_approval, waiting), *(one for one in asked if one.question_id in calls), *bare]


def pieces_as_questions(pieces: Sequence[QuestionPiece]) -> list[OpenQuestion]:
    """Return the questions of a result alone, where the records of approvals are not at hand."""
    return [_approval_piece(piece) if piece.is_approval else _question(piece) for piece in pieces]


def _approval(approval: PendingApproval) -> OpenQuestion:
    terms = approval.terms
    people = None if terms is None else [build_label(person) for person in list_awaited(terms)]
    return _build_approval(approval.approval_id, approval.request, people, approval.digest, approval.expires_at)


def _approval_piece(piece: QuestionPiece) -> OpenQuestion:
    return _build_approval(piece.question_id, piece.request, waits_for(piece.request), None, None)


def _build_approval(
    approval_id: str, request: Any, people: Sequence[str] | None, digest: str | None, expires_at: float | None
) -> OpenQuestion:
    tool, arguments = get_asked_call(request)
    shown, shown_arguments = display_call(request)
    data: dict[str, Any] = {
        "id": approval_id,
        "kind": "approval",
        "tool": tool,
        "arguments": _parse(arguments),
        "schema": _APPROVAL_SCHEMA,
    }
    if digest is not None:
        data["digest"] = digest
    if expires_at is not None:
        data["expiresAt"] = format_time(expires_at)
    text = f"May the tool {shown} run with these arguments? {shown_arguments}"
    if people is not None:
        data["waitsFor"] = list(people)
        text = f"{text}\nWaiting for: {', '.join(people)}."
    return OpenQuestion(question_id=approval_id, is_approval=True, text=text, data=data, digest=digest)


def _question(piece: QuestionPiece) -> OpenQuestion:
    request = piece.request
    payload = cast("dict[str, Any]", _parse(piece.arguments) or {})
    data = payload.get("data")
    wanted: Any = getattr(request, "response_type", None) or payload.get("response_type")
    choices: list[str] = [choice.label for choice in extract_choices(wanted)] or payload.get("choices") or []
    properties = cast("dict[str, Any]", getattr(request, "additional_properties", None) or {})
    schema: Any = build_schema(wanted)
    schema = schema or properties.get(_SCHEMA) or _plain_schema(wanted)
    shown: dict[str, Any] = {"id": piece.question_id, "kind": "question", "data": data}
    if schema:
        shown["schema"] = schema
    if choices:
        shown["choices"] = choices
    text = question_text(getattr(request, "data", data))
    return OpenQuestion(
        question_id=piece.question_id,
        is_approval=False,
        text=text,
        data=shown,
        response_type=wanted,
        choices=tuple(choices),
    )


def _plain_schema(wanted: Any) -> dict[str, Any]:
    name = wanted if isinstance(wanted, str) else getattr(wanted, "__name__", "")
    kinds = {"str": "string", "bool": "boolean", "int": "integer", "float": "number"}
    return {"type": kinds[name]} if name in kinds else {}


def _parse(arguments: str) -> Any:
    try:
        return msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return arguments


def question_parts(questions: Sequence[OpenQuestion]) -> list[PartOut]:
    """Return a text, and a data part for each question."""
    text = "\n\n".join(question.text for question in questions if question.text) or "An answer is required."
    parts = [PartOut(text=text)]
    for question in questions:
        # Whatever a question holds, its part is JSON.
        data = msgspec.json.decode(output_json(question.data))
        parts.append(PartOut(data=data, media_type=JSON, metadata={"extension": EXTENSION}))
    return parts


class Answers(NamedTuple):
    approvals: tuple[ApprovalAnswer, ...] = ()
    outputs: tuple[ClientOutput, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.approvals or self.outputs)


def find_answers(parts: Sequence[PartIn], questions: Sequence[OpenQuestion]) -> Answers:
    """Return the answers in a message. Without answers it is the next turn of its task."""
    by_id = {question.question_id: question for question in questions}
    given = [answer for part in parts for answer in _answers_in(part, by_id)]
    text = "\n".join(part.text for part in parts if part.text is not None).strip()
    if given:
        return _from_data(given, by_id, text)
    only_text = all(part.text is not None for part in parts)
    return _from_text(text, questions[0]) if only_text and len(questions) == 1 else Answers()


def _answers_in(part: PartIn, questions: Mapping[str, OpenQuestion]) -> Iterator[Mapping[str, Any]]:
    if part.data is UNSET:
        return
    data: Any = part.data
    if isinstance(data, dict):
        listed: Any = cast("dict[str, Any]", data).get("answers")
        data = cast("list[Any]", listed) if isinstance(listed, list) else [cast("Any", data)]
    for one in cast("list[Any]", data) if isinstance(data, list) else ():
        if not isinstance(one, dict):
            continue
        answer = cast("dict[str, Any]", one)
        named = _id_in(answer)
        if named in questions:
            yield answer
        elif named is not None and any(name in answer for name in _DECISIONS[:2]):
            raise invalid(f"No open question of this task has the id {named[:64]!r}.", "message.parts")


def _id_in(answer: Mapping[str, Any]) -> str | None:
    return next((answer[name] for name in _IDS if isinstance(answer.get(name), str)), None)


def _from_data(given: Sequence[Mapping[str, Any]], questions: Mapping[str, OpenQuestion], text: str) -> Answers:
    approvals: dict[str, ApprovalAnswer] = {}
    outputs: dict[str, ClientOutput] = {}
    for answer in given:
        question = questions[_id_in(answer) or ""]
        name = question.question_id
        if name in approvals or name in outputs:
            raise invalid(f"The question {name} is answered twice.", "message.parts")
        if question.is_approval:
            reason = answer.get("reason") or text or None
            approvals[name] = _read_approval(question, answer, reason)
        else:
            outputs[name] = ClientOutput(call_id=name, output=_read_value(answer))
    return Answers(tuple(approvals.values()), tuple(outputs.values()))


def _read_approval(question: OpenQuestion, answer: Mapping[str, Any], reason: Any) -> ApprovalAnswer:
    digest, expected = answer.get("digest"), (question.digest or "").encode()
    if digest is not None and not (isinstance(digest, str) and hmac.compare_digest(digest.encode(), expected)):
        raise invalid("The digest is not that of the open question. Read the task again.", "message.parts")
    if reason is not None and (not isinstance(reason, str) or len(reason) > MAX_REASON_LENGTH):
        raise invalid(f"reason must be a string of at most {MAX_REASON_LENGTH} characters.", "message.parts")
    for name in _DECISIONS:
        if name in answer:
            decided = answer[name]
            said = _decision(decided) if isinstance(decided, str) else decided
            if isinstance(said, bool):
                return ApprovalAnswer(approval_id=question.question_id, approved=said, reason=reason)
    raise invalid("An answer to an approval must have approved: true or false.", "message.parts")


def _read_value(answer: Mapping[str, Any]) -> Any:
    for name in _VALUES:
        if name in answer:
            return answer[name]
    raise invalid("An answer to a question must have a value.", "message.parts")


def _decision(text: str) -> bool | None:
    word = text.strip().strip(".!").casefold()
    if word in _APPROVING or word in _REJECTING:
        return word in _APPROVING
    choice = find_choice(_WORDS, word)
    return None if choice is None else choice.value


def _from_text(text: str, question: OpenQuestion) -> Answers:
    """Return the answer of a text to the only open question, if it is one."""
    if question.is_approval:
        decided = _decision(text)
        if decided is None:
            return Answers()
        return Answers(approvals=(ApprovalAnswer(approval_id=question.question_id, approved=decided),))
    value = _fit(text, question)
    return Answers() if value is UNSET else Answers(outputs=(ClientOutput(call_id=question.question_id, output=value),))


def _fit(text: str, question: OpenQuestion) -> Any:
    """Return the value that a text is for the type of a question, or UNSET."""
    wanted: Any = question.response_type
    wanted = _PLAIN_TYPES.get(wanted, wanted) if isinstance(wanted, str) else wanted
    choices = extract_choices(wanted)
    if choices:
        choice = find_choice(choices, text)
        return UNSET if choice is None else choice.value
    if question.choices:
        return next((label for label in question.choices if label.casefold() == text.casefold()), UNSET)
    if wanted is str or wanted is Any or wanted in ("Any", "object"):
        return text if text else UNSET
    if wanted in (int, float):
        try:
            return wanted(text) if len(text) <= 64 else UNSET
        except ValueError:
            return UNSET
    return UNSET
