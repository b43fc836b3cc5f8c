"""Open questions of a chain of runs, and the answers to them: approvals and questions of workflows."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from agent_framework import Content

from frontdesk.channels.mcp.forms import APPROVAL_FORM, APPROVED, MAX_REASON_LENGTH, REASON, Form, question_form
from frontdesk.display.person_names import build_label, waited_for
from frontdesk.errors import InvalidRequestError
from frontdesk.framework.contents import asked_for, display_call
from frontdesk.framework.workflow_requests import answer_schema, question_text
from frontdesk.interfaces.channel import ChannelContext
from frontdesk.models.approval import ApprovalAnswer, PendingApproval
from frontdesk.models.identity import Caller
from frontdesk.models.request import ClientOutput
from frontdesk.models.run import RunChain
from frontdesk.streaming.pieces import Piece, QuestionPiece


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
    """Return what a chain waits for. `pieces` are those of its newest run."""
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
        arguments=_parsed(asked_for(asked.request)[1]),
        is_approval=True,
        is_mine=is_mine,
        waits_for=() if asked.terms is None else tuple(build_label(person) for person in waited_for(asked.terms)),
        url=url,
    )


def _question(piece: QuestionPiece) -> OpenQuestion:
    data, schema = _asked(piece)
    return OpenQuestion(
        id=piece.question_id, text=question_text(data), form=question_form(schema), tool=piece.name, arguments=None
    )


def _asked(piece: QuestionPiece) -> tuple[Any, Mapping[str, Any]]:
    """Return the data of a workflow's question and the JSON schema of its answer."""
    request = piece.request
    if isinstance(request, Content):
        shown: Any = request.parse_arguments() or {}
        return shown.get("data"), answer_schema(request)
    return request.data, answer_schema(request)


def _parsed(arguments: str) -> Any:
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
