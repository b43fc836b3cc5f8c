"""The pending requests of a paused workflow: questions, choices and approvals. Pure."""

from collections.abc import Iterable, Sequence
from enum import Enum
from types import NoneType
from typing import Any, Literal, NamedTuple, cast, get_args, get_origin

from agent_framework import Content, Message, WorkflowEvent, WorkflowRunResult

from frontdesk.display.escaping import display_arguments, escape_line, escape_text
from frontdesk.errors import Phrase
from frontdesk.framework.contents import as_json
from frontdesk.framework.request_forms import FormField, build_fields, build_schema
from frontdesk.identifiers import digest

QUESTION, CHOICE = "question", "choice"
"""The attributes of a request that presses a button: the short name of the question, and the number of the choice."""
MAX_BUTTONS = 8
"""The number of choices up to which they are buttons."""
_MAX_SHORT_LENGTH = 16
_TEXTS = ("question", "prompt", "message", "text")
"""The fields of a request's data that hold the question itself."""
_YES, _NO = ("yes", "y", "true", "ja", "oui", "sí", "si"), ("no", "n", "false", "nein", "non")


class Choice(NamedTuple):
    """An accepted answer to a question."""

    label: str
    """The label as it is displayed."""
    value: Any
    """The answer as JSON."""
    words: tuple[str, ...]
    """The words that a person may write for it, in small letters."""


def short_name(call_id: str) -> str:
    """Return a short name of a question that fits on a button."""
    return digest(call_id)[:_MAX_SHORT_LENGTH]


def extract_choices(wanted: Any) -> list[Choice]:
    """Return the few possible answers of a type: `bool`, an enumeration or a `Literal`."""
    if wanted is bool:
        return [Choice("Yes", True, _YES), Choice("No", False, _NO)]
    values: list[tuple[str, Any]] = []
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        values = [(member.name, member.value) for member in wanted]
    elif get_origin(wanted) is Literal:
        values = [(str(value), value) for value in get_args(wanted)]
    if not all(isinstance(value, (str, int, float, bool, NoneType)) for _, value in values):
        return []
    labels = [str(value) for _, value in values]
    numbers = are_numbered(labels)
    return [
        Choice(escape_line(label), value, _words(label, name, number if numbers else None))
        for number, (label, (name, value)) in enumerate(zip(labels, values, strict=True), 1)
    ]


def _words(label: str, name: str, number: int | None) -> tuple[str, ...]:
    # A person may copy the label as it is displayed.
    labels = dict.fromkeys((label.casefold(), escape_line(label).casefold()))
    return (*labels, *_other_words(name, number))


def _other_words(name: str, number: int | None) -> tuple[str, ...]:
    if number is None:
        return (name.casefold(),)
    # A member may be named by a number too, but nobody has seen that name.
    names = () if name[:1].isdigit() else (name.casefold(),)
    return (*names, str(number), f"{number}.")


def are_numbered(labels: Sequence[str]) -> bool:
    """Return True if choices can be selected by number, because no label looks like a number."""
    return not any(label.lstrip(" -+.")[:1].isdigit() for label in labels)


def find_choice(choices: list[Choice], text: str) -> Choice | None:
    """Return the choice that matches a text of the user."""
    word = text.strip().casefold()
    return next((choice for choice in choices if word in choice.words), None)


def describe_wanted(wanted: Any, labels: Sequence[str]) -> Phrase | None:
    """Return the description of valid answers, with the labels of the choices. None if any text is valid."""
    if wanted is bool:
        return Phrase("question.yes_or_no")
    if labels:
        return Phrase("question.one_of", {"choices": ", ".join(labels)})
    if wanted is str or wanted is Any:
        return None
    if wanted in (int, float):
        return Phrase("question.number")
    return Phrase("question.json", {"kind": wanted.__name__ if isinstance(wanted, type) else str(wanted)})


def question_text(data: Any) -> str:
    """Return the displayed question of a request: its text if it has one, else all of its data."""
    if isinstance(data, str):
        return escape_text(data)
    for name in _TEXTS:
        text = cast("dict[Any, Any]", data).get(name) if isinstance(data, dict) else getattr(data, name, None)
        if isinstance(text, str) and text.strip():
            return escape_text(text)
    return display_arguments(as_json(data))


REQUEST_INFO = "request_info"
"""The name under which a workflow's request is shown as a call."""

MAX_CALL_ID_LENGTH = 64
_SCHEMA = "response_schema"
_PLAIN_TYPES: dict[Any, str] = {bool: "boolean", int: "integer", float: "number"}

Request = WorkflowEvent[Any]


def extract_requests(result: Any) -> list[Request]:
    """Return the requests of a result that wait for an external answer."""
    if not isinstance(result, WorkflowRunResult):
        return []
    # The run that restores the workflow reports an open request once more.
    return list({request.request_id: request for request in result.get_request_info_events()}.values())


def is_approval(request: Request) -> bool:
    """Return True for a tool call that waits for approval."""
    return isinstance(request.data, Content) and request.data.type == "function_approval_request"


def approvals_in(requests: Iterable[Request]) -> list[Content]:
    return [request.data for request in requests if is_approval(request)]


def calls_in(requests: Iterable[Request]) -> list[Request]:
    """Return the requests that are shown as calls and answered like those of client-side functions."""
    return [request for request in requests if not is_approval(request)]


def build_call_id(request: Request) -> str:
    """Return the id of a request for clients: its own id, or a shorter one if it exceeds the limit of call ids."""
    request_id = str(request.request_id)
    if 1 <= len(request_id) <= MAX_CALL_ID_LENGTH:
        return request_id
    return f"req_{digest(request_id)[:40]}"


def type_name(request: Request) -> str:
    wanted: Any = request.response_type
    return wanted.__name__ if isinstance(wanted, type) else str(wanted)


def parse_payload(request: Request) -> dict[str, Any]:
    """Return the fields of a request for a client. Each channel encodes `data` in its own way."""
    return {"request_id": build_call_id(request), "data": request.data, "response_type": type_name(request)}


def request_content(request: Request) -> Content:
    """Return the request of a workflow that runs as an agent, as a call that waits for the client."""
    choices = [choice.label for choice in extract_choices(request.response_type)]
    payload = {**parse_payload(request), **({"choices": choices} if choices else {})}
    content = Content.from_function_call(build_call_id(request), REQUEST_INFO, arguments=as_json(payload))
    content.user_input_request = True
    schema = build_schema(request.response_type)
    if build_fields(schema):
        # Beside the call: a channel that shows forms reads it, and a model that reads the history does not.
        content.additional_properties[_SCHEMA] = schema
    return content


def form_in(content: Content) -> tuple[FormField, ...]:
    """Return the form of a workflow request. Empty if it is asked as text."""
    schema: Any = content.additional_properties.get(_SCHEMA)
    return build_fields(cast("dict[str, Any]", schema)) if isinstance(schema, dict) else ()


def answer_schema(request: Content | Request) -> dict[str, Any]:
    """Return the JSON schema of the answer to a request. Empty if any text will do."""
    if not isinstance(request, Content):
        wanted: Any = request.response_type
        is_plain = isinstance(wanted, type) and wanted in _PLAIN_TYPES
        return {"type": _PLAIN_TYPES[wanted]} if is_plain else build_schema(wanted)
    schema: Any = request.additional_properties.get(_SCHEMA)
    if isinstance(schema, dict):
        return cast("dict[str, Any]", schema)
    shown: Any = request.parse_arguments() or {}
    named = next((kind for kind in _PLAIN_TYPES if kind.__name__ == shown.get("response_type")), None)
    if named is not None:
        return {"type": _PLAIN_TYPES[named]}
    choices: Any = shown.get("choices")
    return {"type": "string", "enum": choices} if choices else {}


def is_request(content: Content) -> bool:
    """Return True if an agent's content is a workflow request."""
    return content.type == "function_call" and content.name == REQUEST_INFO and bool(content.user_input_request)


def build_asked(requests: Iterable[Request]) -> list[Message]:
    """Return the requests as messages for the history."""
    many = list(requests)
    contents = approvals_in(many)
    for request in calls_in(many):
        # The data of the request is in the result of the run, and may have no form that fits a message.
        arguments = {"request_id": build_call_id(request), "response_type": type_name(request)}
        contents.append(Content.from_function_call(build_call_id(request), REQUEST_INFO, arguments=arguments))
    return [Message("assistant", contents)] if contents else []
