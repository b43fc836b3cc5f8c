"""Finds the questions in a result, and makes the message of an answer that resumes the run. Pure."""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
from agent_framework import Content, Message

from frontdesk.data.approval import EXPIRED, PendingApproval
from frontdesk.data.request import AdmittedRequest, ChannelRequest
from frontdesk.errors import ApprovalIdError
from frontdesk.kit.framework.approval_ids import mark_shown
from frontdesk.kit.framework.types import is_response
from frontdesk.kit.framework.workflow_requests import approvals_in, requests_of
from frontdesk.kit.names import LONGEST_ID

_TOO_LATE = "Nobody approved this call in time, so that the answer is no."


def questions(result: Any, admitted: AdmittedRequest, session_id: str | None) -> Sequence[PendingApproval]:
    """Return the tool calls of a result that need an approval; one without an id of its own is an `ApprovalIdError`.

    They have the ids of the target, until the host gives them ids of its own.
    """
    contents = _approval_requests(result)
    if not contents:
        return ()
    asked = [_question(content, admitted, session_id or "") for content in contents]
    repeated = _first_repeated(asked)
    if repeated is not None:
        raise taken(repeated)
    return asked


def taken(question: PendingApproval) -> ApprovalIdError:
    """Make the refusal of a question whose id belongs to another: an approval of one could run the other."""
    return ApprovalIdError(
        f"The agent asked for an approval of {question.tool!r} under an id that another question has.",
        code="approval_id_taken",
    )


def _first_repeated(questions: Sequence[PendingApproval]) -> PendingApproval | None:
    seen: set[str] = set()
    for question in questions:
        if question.approval_id in seen:
            return question
        seen.add(question.approval_id)
    return None


def _approval_requests(result: Any) -> Sequence[Content]:
    if not is_response(result):
        return approvals_in(requests_of(result))
    return [
        content
        for message in result.messages
        for content in message.contents
        if content.type == "function_approval_request" and content.user_input_request
    ]


def _question(request: Content, admitted: AdmittedRequest, session_id: str) -> PendingApproval:
    target_id = _id(request)
    return PendingApproval(
        approval_id=target_id,
        target_request_id=target_id,
        requester=admitted.caller,
        resume=_resuming(admitted.request),
        owner=admitted.owner,
        session_id=session_id,
        run_id=admitted.run_id,
        tool=_tool(request),
        digest=digest(request),
        request=request,
        created_at=admitted.admitted_at,
        trace=admitted.trace,
    )


def _resuming(request: ChannelRequest) -> ChannelRequest:
    """Return the request that goes on with a run once its question is decided, where the question was asked."""
    return ChannelRequest(
        channel=request.channel,
        operation="approval",
        conversation_id=request.conversation_id,
        group=request.group,
        reference=request.reference,
        options=request.options,
        response_target=request.response_target,
        metadata=request.metadata,
        details=request.details,
    )


def _id(request: Content) -> str:
    """Return the target's id of a request, by which its answer finds the way back."""
    given: Any = request.id
    if given is None or given == "" or (isinstance(given, str) and given.isspace()):
        raise ApprovalIdError(
            f"The agent asked for an approval of {_tool(request)!r} without an id.", code="approval_id_missing"
        )
    if not isinstance(given, str) or len(given) > LONGEST_ID or not given.isprintable() or given != given.strip():
        raise ApprovalIdError(
            f"The agent asked for an approval of {_tool(request)!r} under an id that is not a text of 1 to "
            f"{LONGEST_ID} printable characters."
        )
    return given


def digest(request: Content) -> str:
    """Return a hash of what was shown: the name of the tool and its arguments."""
    call = request.function_call
    arguments = None if call is None else call.parse_arguments()
    shown = msgspec.json.encode([_tool(request), arguments], order="sorted", enc_hook=str)
    return hashlib.sha256(shown).hexdigest()


def _tool(request: Content) -> str:
    call = request.function_call
    return str(call.name) if call is not None else ""


def answer(question: PendingApproval, approved: bool, reason: str | None) -> Message:
    """Return the message that resumes the run, made from the stored question and never from what the wire sent."""
    response = question.request.to_function_approval_response(approved)
    if question.approval_id != question.target_id:
        mark_shown(response, question.approval_id)
    contents: list[Content] = [response]
    if reason and not approved:
        contents.append(Content.from_text(_TOO_LATE if reason == EXPIRED else reason))
    return Message("user", contents)
