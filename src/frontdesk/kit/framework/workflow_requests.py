"""What a paused workflow waits for. Pure."""

from collections.abc import Iterable
from typing import Any

from agent_framework import Content, Message, WorkflowEvent, WorkflowRunResult

from frontdesk.kit.framework.contents import as_json
from frontdesk.kit.names import digest

REQUEST_INFO = "request_info"
"""The name under which a workflow's request is shown as a call."""

LONGEST_CALL_ID = 64

Request = WorkflowEvent[Any]


def requests_of(result: Any) -> list[Request]:
    """The requests of a result that wait for an answer from outside."""
    if not isinstance(result, WorkflowRunResult):
        return []
    # One that is still open is told again by the run that restores it.
    return list({one.request_id: one for one in result.get_request_info_events()}.values())


def is_approval(request: Request) -> bool:
    """Whether a request is a tool call that waits for a human's word."""
    return isinstance(request.data, Content) and request.data.type == "function_approval_request"


def approvals_in(requests: Iterable[Request]) -> list[Content]:
    """The tool calls among the requests that wait for a human's word."""
    return [one.data for one in requests if is_approval(one)]


def calls_in(requests: Iterable[Request]) -> list[Request]:
    """The requests that are shown as calls, and answered like those of a client's own function."""
    return [one for one in requests if not is_approval(one)]


def call_id_of(request: Request) -> str:
    """What a request is called outside; its own id, unless that is longer than a call's may be."""
    request_id = str(request.request_id)
    if 1 <= len(request_id) <= LONGEST_CALL_ID:
        return request_id
    return f"req_{digest(request_id)[:40]}"


def type_name(request: Request) -> str:
    """What the answer to a request must be, in a word."""
    wanted: Any = request.response_type
    return wanted.__name__ if isinstance(wanted, type) else str(wanted)


def payload_of(request: Request) -> dict[str, Any]:
    """What is told of a request; what it asks is left as it is, and each channel has its way to show that."""
    return {"request_id": call_id_of(request), "data": request.data, "response_type": type_name(request)}


def request_content(request: Request) -> Content:
    """Show a request of a workflow that is run as an agent: a call that waits for the client."""
    content = Content.from_function_call(call_id_of(request), REQUEST_INFO, arguments=as_json(payload_of(request)))
    content.user_input_request = True
    return content


def is_request(content: Content) -> bool:
    """Tell whether an agent's content is such a request."""
    return content.type == "function_call" and content.name == REQUEST_INFO and bool(content.user_input_request)


def asked(requests: Iterable[Request]) -> list[Message]:
    """The requests as the history keeps them."""
    many = list(requests)
    contents = approvals_in(many)
    for one in calls_in(many):
        # What was asked is in the result of the run, and may have no form that fits a message.
        arguments = {"request_id": call_id_of(one), "response_type": type_name(one)}
        contents.append(Content.from_function_call(call_id_of(one), REQUEST_INFO, arguments=arguments))
    return [Message("assistant", contents)] if contents else []
