"""Open questions of a chain of runs, the forms that ask them, and the answers to them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from agent_framework import Content

from frontdesk.display.person_names import build_label, list_awaited
from frontdesk.errors import InvalidRequestError
from frontdesk.framework.contents import display_call, get_asked_call
from frontdesk.framework.workflow_requests import answer_schema, question_text
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.models.approval import ApprovalAnswer, PendingApproval
from frontdesk.models.identity import Caller
from frontdesk.models.request import ClientOutput
from frontdesk.models.run import RunChain
from frontdesk.streaming.pieces import Piece, QuestionPiece

ANSWER = "answer"
"""The only field of a form that asks for a single value."""
APPROVED, REASON = "approved", "reason"
MAX_FIELDS = 30
MAX_REASON_LENGTH = 1_000
_NUMBERS = ("minimum", "maximum")
_KEPT: Mapping[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "format", "enum", "enumNames", "oneOf", "default"),
    "number": (*_NUMBERS, "default"),
    "integer": (*_NUMBERS, "default"),
    "boolean": ("default",),
    "array": ("minItems", "maxItems", "items", "default"),
}
_FORMATS = ("email", "uri", "date", "date-time")
APPROVAL_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        APPROVED: {"type": "boolean", "title": "Approve", "description": "Whether the call may run."},
        REASON: {"type": "string", "title": "Reason", "maxLength": MAX_REASON_LENGTH},
    },
    "required": [APPROVED],
}


class Form(msgspec.Struct, frozen=True):
    """A form, and how its values become an answer."""

    schema: dict[str, Any]
    is_single: bool = False
    """Whether the answer is the value of the only field, and not the object of all fields."""
    is_json: bool = False
    """Whether that value is JSON in a string, because a form can't represent the type."""

    def answer_in(self, content: Mapping[str, Any]) -> Any:
        """Return the answer in the submitted values."""
        if not self.is_single:
            return dict(content)
        if ANSWER not in content:
            raise InvalidRequestError(f"The answer must have the field {ANSWER}.", param=ANSWER)
        value = content[ANSWER]
        if not self.is_json or not isinstance(value, str):
            return value
        try:
            return msgspec.json.decode(value)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return value


def question_form(schema: Mapping[str, Any]) -> Form:
    """Return the form for the JSON schema of an answer. An empty schema stands for any text."""
    definitions = cast("Mapping[str, Any]", schema.get("$defs") or {})
    whole = _resolve(schema, definitions)
    if whole.get("type") == "object":
        fields = _object(whole, definitions)
        return Form(fields) if fields is not None else _single({"type": "string", "title": "JSON"}, is_json=True)
    if not whole:
        return _single({"type": "string"})
    field = _field(whole, definitions)
    return _single({"type": "string", "title": "JSON"}, is_json=True) if field is None else _single(field)


def _single(field: dict[str, Any], *, is_json: bool = False) -> Form:
    schema = {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]}
    return Form(schema, is_single=True, is_json=is_json)


def _resolve(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    reference = str(schema.get("$ref", ""))
    target = definitions.get(reference.removeprefix("#/$defs/")) if reference else None
    return {**(target or {}), **{name: value for name, value in schema.items() if name not in ("$ref", "$defs")}}


def _object(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any] | None:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    if not properties or len(properties) > MAX_FIELDS:
        return None
    fields: dict[str, Any] = {}
    optional: set[str] = set()
    for name, given in properties.items():
        plain, is_nullable = _without_null(_resolve(given, definitions), definitions)
        field = None if plain is None else _field(plain, definitions)
        if field is None:
            return None
        fields[name] = field
        if is_nullable:
            optional.add(name)
    required = [name for name in schema.get("required") or () if name not in optional]
    return {"type": "object", "properties": fields, **({"required": required} if required else {})}


def _without_null(schema: dict[str, Any], definitions: Mapping[str, Any]) -> tuple[dict[str, Any] | None, bool]:
    """Return the only schema besides null, None if there are several, and True if the value may be null."""
    several: list[Any] | None = schema.get("anyOf")
    if several is None:
        return schema, False
    real = [one for one in (_resolve(one, definitions) for one in several) if one.get("type") != "null"]
    if len(real) != 1:
        return None, False
    words = {name: value for name, value in schema.items() if name in ("title", "description", "default")}
    if words.get("default", 0) is None:
        del words["default"]
    return {**real[0], **words}, len(real) < len(several)


def _field(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema of one field, or None if a form can't represent it."""
    kind = str(schema.get("type") or ("string" if "oneOf" in schema else ""))
    if kind not in _KEPT or "pattern" in schema:
        return None
    kept = {name: schema[name] for name in ("title", "description", *_KEPT[kind]) if name in schema}
    if kind == "string" and kept.get("format", _FORMATS[0]) not in _FORMATS:
        del kept["format"]
    if kind == "array":
        items = _resolve(cast("Mapping[str, Any]", schema.get("items") or {}), definitions)
        if not _is_choice(items):
            return None
        kept["items"] = {name: value for name, value in items.items() if name in ("type", "enum", "anyOf")}
    enum: Any = kept.get("enum")
    if enum is not None and not all(isinstance(value, str) for value in enum):
        return None
    return {"type": kind, **kept}


def _is_choice(items: Mapping[str, Any]) -> bool:
    """Return True for the schema of the choices of a list: names, or names with titles."""
    values: Any = items.get("enum")
    if isinstance(values, list):
        return all(isinstance(value, str) for value in cast("list[Any]", values))
    titled: Any = items.get("anyOf")
    return isinstance(titled, list) and all("const" in one for one in cast("list[Any]", titled))


class OpenQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question of a run, as a client can be asked."""

    id: str
    text: str
    form: Form
    tool: str
    arguments: Any = None
    is_approval: bool = False
    is_mine: bool = True
    """Whether an answer of the caller counts."""
    waits_for: tuple[str, ...] = ()
    """The other people whose answers count, by name."""
    url: str | None = None
    """The page on which it can be answered."""


class Answers(msgspec.Struct, frozen=True):
    """The answers to questions: decisions about calls, and outputs for a workflow."""

    approvals: tuple[ApprovalAnswer, ...] = ()
    outputs: tuple[ClientOutput, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.approvals or self.outputs)


async def find_questions(
    context: ChannelContext, caller: Caller, chain: RunChain, pieces: Sequence[Piece], url: str | None
) -> list[OpenQuestion]:
    """Return the open questions of a chain. `pieces` are those of its newest run."""
    found = [await _approval(context, caller, question, url) for question in chain.waiting]
    calls = {call.call_id for call in chain.calls}
    asked = [piece for piece in pieces if isinstance(piece, QuestionPiece) and not piece.is_approval]
    return [*found, *(_question(piece) for piece in asked if piece.question_id in calls)]


async def _approval(context: ChannelContext, caller: Caller, asked: PendingApproval, url: str | None) -> OpenQuestion:
    name, arguments = display_call(asked.request)
    is_mine = asked.terms is None or await context.approvals.may_decide(caller, asked.approval_id)
    return OpenQuestion(
        id=asked.approval_id,
        text=f"Approve the call of {name} with {arguments}?",
        form=Form(APPROVAL_FORM),
        tool=name,
        arguments=_parse(get_asked_call(asked.request)[1]),
        is_approval=True,
        is_mine=is_mine,
        waits_for=() if asked.terms is None else tuple(build_label(person) for person in list_awaited(asked.terms)),
        url=url,
    )


def _question(piece: QuestionPiece) -> OpenQuestion:
    data, schema = _read_question(piece)
    return OpenQuestion(
        id=piece.question_id, text=question_text(data), form=question_form(schema), tool=piece.name, arguments=None
    )


def _read_question(piece: QuestionPiece) -> tuple[Any, Mapping[str, Any]]:
    """Return the data of a workflow's question and the JSON schema of its answer."""
    request = piece.request
    if isinstance(request, Content):
        shown: Any = request.parse_arguments() or {}
        return shown.get("data"), answer_schema(request)
    return request.data, answer_schema(request)


def _parse(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def read_answers(questions: Sequence[OpenQuestion], responses: Mapping[str, Any]) -> Answers:
    """Return the answers in the responses of a client, by the ids of the questions. Other responses are ignored.

    `responses` are results of elicitation as JSON. A cancelled one leaves its question open. A workflow goes on when
    all of its questions are answered, so that some of its answers alone have no effect.
    """
    approvals: list[ApprovalAnswer] = []
    outputs: list[ClientOutput] = []
    asked = [question for question in questions if question.is_mine]
    for question in asked:
        response = responses.get(question.id)
        if response is None:
            continue
        action, content = _read(question.id, response)
        if question.is_approval:
            if (answer := _decision(question, action, content)) is not None:
                approvals.append(answer)
        elif action == "accept":
            outputs.append(ClientOutput(call_id=question.id, output=question.form.answer_in(content)))
    wanted = sum(not question.is_approval for question in asked)
    return Answers(tuple(approvals), tuple(outputs) if len(outputs) == wanted else ())


def _read(name: str, response: Any) -> tuple[str, Mapping[str, Any]]:
    given: Mapping[str, Any] = cast("Mapping[str, Any]", response) if isinstance(response, Mapping) else {}
    action: Any = given.get("action")
    if action not in ("accept", "decline", "cancel"):
        raise InvalidRequestError("An answer must have the action accept, decline or cancel.", param=name)
    content: Any = given.get("content")
    return action, cast("Mapping[str, Any]", content) if isinstance(content, Mapping) else {}


def _decision(question: OpenQuestion, action: str, content: Mapping[str, Any]) -> ApprovalAnswer | None:
    """Return the decision, or None if it leaves the question open, as an acceptance without `approved` does."""
    given: Any = content.get(REASON)
    reason = given[:MAX_REASON_LENGTH] if isinstance(given, str) and given.strip() else None
    if action == "decline":
        return ApprovalAnswer(approval_id=question.id, approved=False, reason=reason)
    approved: Any = content.get(APPROVED)
    if action == "cancel" or not isinstance(approved, bool):
        return None
    return ApprovalAnswer(approval_id=question.id, approved=approved, reason=reason)
