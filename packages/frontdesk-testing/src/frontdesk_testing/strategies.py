"""Hypothesis strategies for the records of Frontdesk and the objects of the framework. Needs `hypothesis`.

@given(strategies.records(ChannelRequest))
def test_my_hook_keeps_the_channel(request: ChannelRequest) -> None: ...
"""

from collections.abc import Mapping
from datetime import UTC, timedelta, timezone
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from agent_framework import (
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    Content,
    Message,
    WorkflowEvent,
    WorkflowRunResult,
    WorkflowRunState,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from frontdesk.models.base import UNKNOWN, StoredRecord

RecordT = TypeVar("RecordT", bound=StoredRecord)
ValueT = TypeVar("ValueT")

_SCALARS: dict[Any, SearchStrategy[Any]] = {
    str: st.text(max_size=20),
    int: st.integers(),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=20),
    NoneType: st.none(),
}
_text = _SCALARS[str]
_maybe_text = st.none() | _text
_short = st.integers(-(2**63), 2**63 - 1)
_zones = st.sampled_from([None, UTC, timezone(timedelta(hours=-3, minutes=-30)), timezone(timedelta(seconds=61))])


def json_values() -> SearchStrategy[Any]:
    """Generate JSON values, with keys such as "$"."""
    scalars = st.none() | st.booleans() | _short | st.floats(allow_nan=False, allow_infinity=False) | _text
    return st.recursive(scalars, lambda inner: _lists(inner) | _dicts(_keys, inner), max_leaves=6)


def values() -> SearchStrategy[Any]:
    """Generate Python values that have a JSON form by themselves. All can be compared with `==`."""
    keys = st.recursive(
        st.one_of(*_SCALARS.values(), st.dates(), st.datetimes(timezones=_zones)),
        lambda inner: _lists(inner).map(tuple) | st.frozensets(inner, max_size=3),
        max_leaves=3,
    )
    return st.recursive(
        json_values() | keys | st.sets(keys, max_size=3),
        lambda inner: _lists(inner) | _lists(inner).map(tuple) | _dicts(_keys, inner) | _dicts(keys, inner),
        max_leaves=4,
    )


def contents(kind: str | None = None) -> SearchStrategy[Content]:
    """Generate contents of one kind, or of any."""
    return CONTENTS[kind] if kind is not None else st.one_of(*CONTENTS.values())


def messages() -> SearchStrategy[Message]:
    """Generate messages with contents of every kind."""
    return st.builds(
        Message,
        role=st.sampled_from(["user", "assistant", "system", "tool", ""]),
        contents=_lists(contents()),
        author_name=_maybe_text,
        message_id=_maybe_text,
        additional_properties=_properties,
    )


def agent_responses(value: SearchStrategy[Any] | None = None) -> SearchStrategy[AgentResponse[Any]]:
    """Generate responses. `value` makes their structured values."""
    return st.builds(
        AgentResponse[Any],
        messages=_lists(messages()),
        response_id=_maybe_text,
        agent_id=_maybe_text,
        created_at=_maybe_text,
        finish_reason=st.sampled_from([None, "stop", "length"]),
        usage_details=st.none() | _usage,
        value=st.none() if value is None else value,
        additional_properties=_properties,
    )


def agent_response_updates() -> SearchStrategy[AgentResponseUpdate]:
    """Generate the pieces of a stream."""
    return st.builds(
        AgentResponseUpdate,
        contents=_lists(contents()),
        role=st.sampled_from([None, "assistant", "tool"]),
        author_name=_maybe_text,
        message_id=_maybe_text,
        merge_mode=_merge_mode,
        additional_properties=st.none() | _properties,
    )


def agent_sessions() -> SearchStrategy[AgentSession]:
    """Generate sessions with some state."""

    def build(session_id: str, service_session_id: str | None, state: dict[str, Any]) -> AgentSession:
        session = AgentSession(session_id=session_id, service_session_id=service_session_id)
        session.state.update(state)
        return session

    return st.builds(build, st.text(min_size=1, max_size=20), _maybe_text, _dicts(_text, json_values()))


def workflow_results(outputs: SearchStrategy[Any] | None = None) -> SearchStrategy[WorkflowRunResult]:
    """Generate results of workflows: outputs, questions and the states of the run."""
    data = json_values() if outputs is None else outputs

    def question(request_id: str, executor_id: str, data: Any, response_type: type) -> WorkflowEvent[Any]:
        return WorkflowEvent[Any].request_info(request_id, executor_id, data, response_type)

    events = st.one_of(
        st.builds(WorkflowEvent[Any], st.sampled_from(["output", "intermediate", "data"]), data, executor_id=_text),
        st.builds(question, _text, _text, data, st.sampled_from([str, bool, dict, Content])),
    )
    status = st.builds(WorkflowEvent[Any].status, st.sampled_from(WorkflowRunState))
    return st.builds(WorkflowRunResult, _lists(events), _lists(status))


def framework_objects() -> SearchStrategy[Any]:
    """Generate any object of the framework that can be stored."""
    return st.one_of(
        contents(), messages(), agent_responses(), agent_response_updates(), agent_sessions(), workflow_results()
    )


def records(kind: type[RecordT], anything: SearchStrategy[Any] | None = None) -> SearchStrategy[RecordT]:
    """Generate records of one type. `anything` fills the fields that take anything."""
    filling = values() if anything is None else anything
    # Fields that only a newer version knows are not generated, nor records of the same type in a record.
    fields = [
        field for field in msgspec.structs.fields(kind) if field.name != UNKNOWN and kind not in get_args(field.type)
    ]
    return st.builds(kind, **{field.name: _field(field.type, filling) for field in fields})


def samples(strategy: SearchStrategy[ValueT], *, number: int) -> list[ValueT]:
    """Return some values, the same ones each time. For tests that use all samples at once."""
    collected: list[ValueT] = []

    @settings(max_examples=number, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(strategy)
    def collect(value: ValueT) -> None:
        collected.append(value)

    collect()
    return collected


def _field(annotation: Any, anything: SearchStrategy[Any]) -> SearchStrategy[Any]:
    if annotation is Any or isinstance(annotation, TypeVar):
        return anything
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, UnionType):
        return st.one_of(*[_field(argument, anything) for argument in arguments])
    if origin is tuple:
        return _lists(_field(arguments[0], anything)).map(tuple)
    if origin is Mapping:
        return _dicts(_field(arguments[0], anything), _field(arguments[1], anything))
    if isinstance(annotation, type) and issubclass(annotation, StoredRecord):
        return records(annotation, anything)
    raise TypeError(f"there is no strategy for a field of type {annotation}")


def _lists(items: SearchStrategy[Any]) -> SearchStrategy[list[Any]]:
    return st.lists(items, max_size=3)


def _dicts(keys: SearchStrategy[Any], items: SearchStrategy[Any]) -> SearchStrategy[dict[Any, Any]]:
    return st.dictionaries(keys, items, max_size=3)


_keys = _text | st.sampled_from(["$", "type", "v"])
_properties = _dicts(st.text(max_size=5), json_values())
_usage = _dicts(st.sampled_from(["input_token_count", "output_token_count", "other"]), st.integers(0, 10**9))
_merge_mode = st.sampled_from([None, "append", "replace"])
_status = st.sampled_from([None, "in_progress", "completed"])
_checks = st.none() | _lists(st.builds(dict[str, str], id=_text, code=_text))
_annotations = st.none() | _lists(
    st.builds(
        dict[str, Any],
        type=st.just("citation"),
        url=_text,
        annotated_regions=_lists(st.builds(dict[str, int], a=_short)),
    )
)
_arguments = st.none() | _text | _dicts(_text, json_values())
_texts = st.builds(
    Content.from_text, _text, merge_mode=_merge_mode, annotations=_annotations, additional_properties=_properties
)
_files = st.builds(Content.from_hosted_file, _text, media_type=_maybe_text, name=_maybe_text)
_data = st.builds(Content.from_data, st.binary(max_size=20), st.sampled_from(["image/png", "text/plain"]))
_calls = st.builds(
    Content.from_function_call,
    _text,
    _text,
    arguments=_arguments,
    informational_only=st.booleans(),
    id=_maybe_text,
    hosted=st.booleans(),
    server_name=_maybe_text,
    status=_status,
)
_outputs = st.builds(
    Content.from_shell_command_output,
    stdout=_maybe_text,
    stderr=_maybe_text,
    exit_code=st.none() | _short,
    timed_out=st.none() | st.booleans(),
)
_some = st.none() | _lists(_texts | _files)


def _approval_request(call: Content, properties: dict[str, Any]) -> Content:
    # By another id the framework warns.
    request_id = "approval" if call.id is None else call.id
    return Content.from_function_approval_request(request_id, call, additional_properties=properties)


CONTENTS: dict[str, SearchStrategy[Content]] = {
    "text": _texts,
    "text_reasoning": st.builds(
        Content.from_text_reasoning, id=_maybe_text, text=_maybe_text, protected_data=_maybe_text, status=_status
    ),
    "data": _data,
    "uri": st.builds(Content.from_uri, st.just("https://example.com/a.png"), media_type=st.just("image/png")),
    "error": st.builds(Content.from_error, message=_maybe_text, error_code=_maybe_text, error_details=_maybe_text),
    "function_call": _calls,
    "function_result": st.builds(
        Content.from_function_result, _text, result=json_values() | _lists(_texts | _data), exception=_maybe_text
    ),
    "usage": st.builds(Content.from_usage, _usage, merge_mode=_merge_mode),
    "hosted_file": _files,
    "hosted_vector_store": st.builds(Content.from_hosted_vector_store, _text),
    "code_interpreter_tool_call": st.builds(
        Content.from_code_interpreter_tool_call, call_id=_maybe_text, inputs=_some, status=_status
    ),
    "code_interpreter_tool_result": st.builds(
        Content.from_code_interpreter_tool_result, call_id=_maybe_text, outputs=_some, status=_status
    ),
    "image_generation_tool_call": st.builds(Content.from_image_generation_tool_call, image_id=_maybe_text),
    "image_generation_tool_result": st.builds(
        Content.from_image_generation_tool_result, image_id=_maybe_text, outputs=_data | json_values()
    ),
    "mcp_server_tool_call": st.builds(
        Content.from_mcp_server_tool_call, _text, _text, server_name=_maybe_text, arguments=_arguments
    ),
    "mcp_server_tool_result": st.builds(Content.from_mcp_server_tool_result, _text, output=_some | json_values()),
    "search_tool_call": st.builds(
        Content.from_search_tool_call, _text, tool_name=_text, arguments=_arguments, status=_status
    ),
    "search_tool_result": st.builds(
        Content.from_search_tool_result, _text, tool_name=_text, result=json_values(), items=_some, status=_status
    ),
    "shell_tool_call": st.builds(
        Content.from_shell_tool_call, call_id=_maybe_text, commands=_lists(_text), timeout_ms=st.none() | _short
    ),
    "shell_tool_result": st.builds(
        Content.from_shell_tool_result, call_id=_maybe_text, outputs=_lists(_outputs), max_output_length=_short
    ),
    "shell_command_output": _outputs,
    # By the constructor, because the functions that make these two warn that they are experimental.
    "computer_tool_call": st.builds(
        Content,
        st.just("computer_tool_call"),
        id=_text,
        call_id=_text,
        actions=_lists(_properties),
        pending_safety_checks=_checks,
        user_input_request=st.just(True),
    ),
    "computer_tool_result": st.builds(
        Content,
        st.just("computer_tool_result"),
        call_id=_text,
        screenshot=st.none() | _data | _files,
        acknowledged_safety_checks=_checks,
    ),
    "function_approval_request": st.builds(_approval_request, _calls, _properties),
    "function_approval_response": st.builds(Content.from_function_approval_response, st.booleans(), _text, _calls),
    "oauth_consent_request": st.builds(Content.from_oauth_consent_request, _text),
}
