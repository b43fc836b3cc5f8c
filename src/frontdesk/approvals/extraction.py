"""Extracts the approvals from a result, and builds the answer message that resumes the run. Pure."""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
from agent_framework import AgentResponse, Content, Message

from frontdesk.errors import ApprovalIdError
from frontdesk.framework.approval_ids import mark_shown
from frontdesk.framework.workflow_requests import approvals_in, extract_requests
from frontdesk.identifiers import MAX_ID_LENGTH
from frontdesk.models.approval import EXPIRED, PendingApproval
from frontdesk.models.request import AdmittedRequest, ChannelRequest

_TOO_LATE = "Nobody approved this call in time, so that the answer is no."


def questions(result: Any, admitted: AdmittedRequest, session_id: str | None) -> Sequence[PendingApproval]:
    """Return the tool calls of a result that require approval. Raise `ApprovalIdError` for a call without an id.

    They have the ids of the target until the host assigns its own.
    """
    contents: list[Content] = []
    if isinstance(result, AgentResponse):
        for message in result.messages:
            for content in message.contents:
                if content.type == "function_approval_request" and content.user_input_request:
                    contents.append(content)
    else:
        contents = approvals_in(extract_requests(result))
    if not contents:
        return ()
    asked = [_question(content, admitted, session_id or "") for content in contents]
    repeated = _first_repeated(asked)
    if repeated is not None:
        raise build_taken_error(repeated)
    return asked


def build_taken_error(question: PendingApproval) -> ApprovalIdError:
    """Return the error for an id that belongs to another question. An approval of one could run the other."""
    return ApprovalIdError(
        f"The agent asked for an approval of {question.tool!r} with the id of another pending approval.",
        code="approval_id_taken",
    )


def _first_repeated(questions: Sequence[PendingApproval]) -> PendingApproval | None:
    seen: set[str] = set()
    for question in questions:
        if question.approval_id in seen:
            return question
        seen.add(question.approval_id)
    return None


def _question(request: Content, admitted: AdmittedRequest, session_id: str) -> PendingApproval:
    target_id = _id(request)
    return PendingApproval(
        approval_id=target_id,
        target_request_id=target_id,
        requester=admitted.caller,
        resume=_build_resume_request(admitted.request),
        owner=admitted.owner,
        session_id=session_id,
        run_id=admitted.run_id,
        tool=_tool(request),
        digest=digest(request),
        request=request,
        created_at=admitted.admitted_at,
        trace=admitted.trace,
        root_run_id=admitted.root_run_id,
    )


def _build_resume_request(request: ChannelRequest) -> ChannelRequest:
    """Return the request that resumes a run after the decision, in the session of the question."""
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
        stream=request.stream,
        client_tools=request.client_tools,
        client_state=request.client_state,
        forwarded_props=request.forwarded_props,
    )


def _id(request: Content) -> str:
    """Return the target's id of a request, which its answer refers to."""
    given: Any = request.id
    if given is None or given == "" or (isinstance(given, str) and given.isspace()):
        raise ApprovalIdError(
            f"The agent's approval request for {_tool(request)!r} has no id.", code="approval_id_missing"
        )
    if not isinstance(given, str) or len(given) > MAX_ID_LENGTH or not given.isprintable() or given != given.strip():
        raise ApprovalIdError(
            f"The agent's approval request for {_tool(request)!r} has an invalid id: it must be a string of 1 to "
            f"{MAX_ID_LENGTH} printable characters."
        )
    return given


def digest(request: Content) -> str:
    """Return a hash of the displayed tool name and arguments."""
    call = request.function_call
    arguments = None if call is None else call.parse_arguments()
    shown = msgspec.json.encode([_tool(request), arguments], order="sorted", enc_hook=str)
    return hashlib.sha256(shown).hexdigest()


def _tool(request: Content) -> str:
    call = request.function_call
    return str(call.name) if call is not None else ""


def answer(question: PendingApproval, approved: bool, reason: str | None) -> Message:
    """Return the message that resumes the run, built from the stored question and never from client input."""
    response = question.request.to_function_approval_response(approved)
    if question.approval_id != question.target_id:
        mark_shown(response, question.approval_id)
    contents: list[Content] = [response]
    if reason and not approved:
        contents.append(Content.from_text(_TOO_LATE if reason == EXPIRED else reason))
    return Message("user", contents)
