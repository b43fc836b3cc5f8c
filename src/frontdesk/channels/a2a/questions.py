"""The open questions of a task: approvals and questions of workflows, as parts of a status message. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from frontdesk.channels.a2a.modes import JSON
from frontdesk.channels.a2a.schema import PartOut
from frontdesk.channels.a2a.times import format_time
from frontdesk.display.person_names import build_label, waited_for
from frontdesk.framework.approval_ids import waits_for
from frontdesk.framework.contents import asked_for, display_call
from frontdesk.framework.outputs import output_json
from frontdesk.framework.request_forms import build_schema
from frontdesk.framework.workflow_requests import extract_choices, question_text
from frontdesk.models.approval import PendingApproval
from frontdesk.models.base import FrozenStruct
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
    people = None if terms is None else [build_label(person) for person in waited_for(terms)]
    return _build_approval(approval.approval_id, approval.request, people, approval.digest, approval.expires_at)


def _approval_piece(piece: QuestionPiece) -> OpenQuestion:
    return _build_approval(piece.question_id, piece.request, waits_for(piece.request), None, None)


def _build_approval(
    approval_id: str, request: Any, people: Sequence[str] | None, digest: str | None, expires_at: float | None
) -> OpenQuestion:
    tool, arguments = asked_for(request)
    shown, shown_arguments = display_call(request)
    data: dict[str, Any] = {
        "id": approval_id,
        "kind": "approval",
        "tool": tool,
        "arguments": _parsed(arguments),
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
    payload = cast("dict[str, Any]", _parsed(piece.arguments) or {})
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


def _parsed(arguments: str) -> Any:
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
