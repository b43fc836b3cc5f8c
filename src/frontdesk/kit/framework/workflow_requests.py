"""Requests with which a paused workflow waits for answers. Pure."""

from collections.abc import Iterable
from typing import Any, cast

from agent_framework import Content, Message, WorkflowEvent, WorkflowRunResult

from frontdesk.kit.framework.contents import as_json
from frontdesk.kit.framework.request_choices import choices_of
from frontdesk.kit.framework.request_forms import FormField, fields_of, schema_of
from frontdesk.kit.names import digest

REQUEST_INFO = "request_info"
"""The name under which a workflow's request is shown as a call."""

LONGEST_CALL_ID = 64
_SCHEMA = "response_schema"

Request = WorkflowEvent[Any]


def requests_of(result: Any) -> list[Request]:
    """Return the requests of a result that wait for an answer from outside."""
    if not isinstance(result, WorkflowRunResult):
        return []
    # The run that restores the workflow reports an open request once more.
    return list({request.request_id: request for request in result.get_request_info_events()}.values())


def is_approval(request: Request) -> bool:
    """Tell whether a request is a tool call that waits for approval."""
    return isinstance(request.data, Content) and request.data.type == "function_approval_request"


def approvals_in(requests: Iterable[Request]) -> list[Content]:
    """Return the tool calls among the requests that wait for approval."""
    return [request.data for request in requests if is_approval(request)]


def calls_in(requests: Iterable[Request]) -> list[Request]:
    """Return the requests that are shown as calls, and answered like those of a client's own function."""
    return [request for request in requests if not is_approval(request)]


def call_id_of(request: Request) -> str:
    """Return the id of a request for clients: its own id, unless that is longer than a call id may be."""
    request_id = str(request.request_id)
    if 1 <= len(request_id) <= LONGEST_CALL_ID:
        return request_id
    return f"req_{digest(request_id)[:40]}"


def type_name(request: Request) -> str:
    """Return the name of the type that the answer to a request must have."""
    wanted: Any = request.response_type
    return wanted.__name__ if isinstance(wanted, type) else str(wanted)


def payload_of(request: Request) -> dict[str, Any]:
    """Return the fields of a request for a client; each channel encodes `data` in its own way."""
    return {"request_id": call_id_of(request), "data": request.data, "response_type": type_name(request)}


def request_content(request: Request) -> Content:
    """Show a request of a workflow that is run as an agent: a call that waits for the client."""
    choices = [choice.label for choice in choices_of(request.response_type)]
    payload = {**payload_of(request), **({"choices": choices} if choices else {})}
    content = Content.from_function_call(call_id_of(request), REQUEST_INFO, arguments=as_json(payload))
    content.user_input_request = True
    schema = schema_of(request.response_type)
    if fields_of(schema):
        # Beside the call: a channel that shows forms reads it, and a model that reads the history does not.
        content.additional_properties[_SCHEMA] = schema
    return content


def form_in(content: Content) -> tuple[FormField, ...]:
    """Return the form of such a request; none if it is asked in words."""
    schema: Any = content.additional_properties.get(_SCHEMA)
    return fields_of(cast("dict[str, Any]", schema)) if isinstance(schema, dict) else ()


def is_request(content: Content) -> bool:
    """Tell whether an agent's content is such a request."""
    return content.type == "function_call" and content.name == REQUEST_INFO and bool(content.user_input_request)


def asked(requests: Iterable[Request]) -> list[Message]:
    """Return the requests as messages for the history."""
    many = list(requests)
    contents = approvals_in(many)
    for request in calls_in(many):
        # The data of the request is in the result of the run, and may have no form that fits a message.
        arguments = {"request_id": call_id_of(request), "response_type": type_name(request)}
        contents.append(Content.from_function_call(call_id_of(request), REQUEST_INFO, arguments=arguments))
    return [Message("assistant", contents)] if contents else []
