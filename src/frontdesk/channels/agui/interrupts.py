"""Renders open questions as interrupts. Pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from agent_framework import Content

from frontdesk.channels.agui.schema import Interrupt
from frontdesk.framework.contents import display_call
from frontdesk.framework.request_forms import build_schema
from frontdesk.framework.workflow_requests import extract_choices, question_text
from frontdesk.models.approval import PendingApproval
from frontdesk.models.base import FrozenStruct
from frontdesk.streaming.pieces import QuestionPiece

APPROVAL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string", "description": "The reason, for the agent."},
    },
    "required": ["approved"],
    "additionalProperties": False,
}
_PLAIN: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


class Questions(FrozenStruct, frozen=True, kw_only=True):
    """The stored approvals of a run."""

    approvals: Mapping[str, PendingApproval] = {}
    waiting_for_others: frozenset[str] = frozenset()
    """The approvals that the caller may not decide."""


def list_interrupts(asked: Sequence[QuestionPiece], questions: Questions) -> list[Interrupt]:
    """Return the questions of a run, then those of earlier runs of its chain that still wait."""
    interrupts = [_to_input(question) for question in asked if not question.is_approval]
    calls = {question.question_id: question for question in asked if question.is_approval}
    for approval_id, question in calls.items():
        approval = questions.approvals.get(approval_id)
        if approval is None or approval.status != "cancelled":
            is_for_others = approval_id in questions.waiting_for_others
            interrupts.append(
                to_approval(
                    approval_id, question.request, approval, call_id=question.call_id, is_for_others=is_for_others
                )
            )
    for approval_id, approval in questions.approvals.items():
        if approval_id not in calls and approval.status == "pending":
            call: Content = approval.request.function_call or approval.request
            is_for_others = approval_id in questions.waiting_for_others
            interrupts.append(
                to_approval(
                    approval_id, approval.request, approval, call_id=str(call.call_id), is_for_others=is_for_others
                )
            )
    return interrupts


def to_approval(
    approval_id: str, request: Content, approval: PendingApproval | None, *, call_id: str, is_for_others: bool
) -> Interrupt:
    """Return the interrupt of a tool call that requires approval."""
    tool, arguments = display_call(request)
    metadata: dict[str, Any] = {"tool": tool, "arguments": arguments}
    expires_at = None if approval is None else approval.expires_at
    message = f"The tool {tool} requires approval."
    if is_for_others:
        names = approval.terms.names if approval is not None and approval.terms is not None else ()
        metadata["waitsFor"] = list(names)
        message = describe_wait(tool, names)
    return Interrupt(
        id=approval_id,
        reason="confirmation" if is_for_others else "tool_call",
        message=message,
        tool_call_id=call_id or None,
        response_schema=None if is_for_others else APPROVAL_SCHEMA,
        expires_at=None if expires_at is None else _as_time(expires_at),
        metadata=metadata,
    )


def describe_wait(tool: str, names: tuple[str, ...]) -> str:
    by = f" by {', '.join(names)}" if names else " by another person"
    return f"The tool {tool} requires approval{by}. The run continues after the decision."


def _as_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _to_input(question: QuestionPiece) -> Interrupt:
    request = question.request
    if isinstance(request, Content):
        # A workflow that runs as an agent. The call has the form of its answer, if it has one.
        payload = request.parse_arguments() or {}
        data, schema = payload.get("data"), _schema_of_call(request, payload)
    else:
        data, schema = request.data, _schema(request.response_type)
    return Interrupt(
        id=question.question_id, reason="input_required", message=question_text(data), response_schema=schema
    )


def _schema(wanted: Any) -> dict[str, Any] | None:
    choices = extract_choices(wanted)
    if wanted in _PLAIN:
        return {"type": _PLAIN[wanted]}
    if choices:
        return {"enum": [choice.value for choice in choices]}
    return build_schema(wanted) or None


def _schema_of_call(request: Content, payload: Mapping[str, Any]) -> dict[str, Any] | None:
    schema: Any = request.additional_properties.get("response_schema")
    if isinstance(schema, dict):
        return cast("dict[str, Any]", schema)
    choices: Any = payload.get("choices")
    if payload.get("response_type") == "bool":
        return {"type": "boolean"}
    return {"enum": choices} if choices else {"type": "string"}
