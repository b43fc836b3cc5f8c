"""Finds the questions in a result, and turns an answer into what the framework resumes with. Pure."""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
from agent_framework import Content, Message

from frontdesk.data.approval import PendingApproval
from frontdesk.data.request import AdmittedRequest
from frontdesk.errors import ApprovalIdError
from frontdesk.kit.framework.types import is_response
from frontdesk.kit.framework.workflow_requests import approvals_in, requests_of
from frontdesk.kit.names import LONGEST_ID


def questions(result: Any, admitted: AdmittedRequest, session_id: str | None) -> Sequence[PendingApproval]:
    """The tool calls of a result that need a human's word; one without an id of its own is an `ApprovalIdError`."""
    found = _asked(result)
    if not found:
        return ()
    asked = [_question(content, admitted, session_id or "") for content in found]
    twice = _first_twice(asked)
    if twice is not None:
        raise taken(twice)
    return asked


def taken(question: PendingApproval) -> ApprovalIdError:
    """The refusal of a question whose id belongs to another one: a yes to the one could run the other."""
    return ApprovalIdError(
        f"The agent asked for an approval of {question.tool!r} under an id that another question has.",
        code="approval_id_taken",
    )


def _first_twice(asked: Sequence[PendingApproval]) -> PendingApproval | None:
    seen: set[str] = set()
    for question in asked:
        if question.approval_id in seen:
            return question
        seen.add(question.approval_id)
    return None


def _asked(result: Any) -> Sequence[Content]:
    if not is_response(result):
        return approvals_in(requests_of(result))
    found: list[Content] = []
    for message in result.messages:
        for one in message.contents:
            if one.type == "function_approval_request" and one.user_input_request:
                found.append(one)
    return found


def _question(request: Content, admitted: AdmittedRequest, session_id: str) -> PendingApproval:
    return PendingApproval(
        approval_id=_id(request),
        owner=admitted.owner,
        session_id=session_id,
        run_id=admitted.run_id,
        tool=_tool(request),
        digest=digest(request),
        request=request,
        created_at=admitted.admitted_at,
    )


def _id(request: Content) -> str:
    """Return the id of a request, which has to come back over any channel as it is."""
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
    """What was shown: the name of the tool and its arguments."""
    call = request.function_call
    arguments = None if call is None else call.parse_arguments()
    shown = msgspec.json.encode([_tool(request), arguments], order="sorted", enc_hook=str)
    return hashlib.sha256(shown).hexdigest()


def _tool(request: Content) -> str:
    call = request.function_call
    return str(call.name) if call is not None else ""


def answer(question: PendingApproval, approved: bool, reason: str | None) -> Message:
    """The message that resumes the run, made from the stored question and never from what the wire sent."""
    response = question.request.to_function_approval_response(approved)
    contents: list[Content] = [response]
    if reason and not approved:
        contents.append(Content.from_text(reason))
    return Message("user", contents)
