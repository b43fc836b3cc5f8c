"""What a workflow waits for, in the words of a channel."""

from typing import Any

import pytest
from agent_framework import AgentResponse, Content, WorkflowEvent, WorkflowRunResult

from frontdesk.framework.workflow_requests import (
    approvals_in,
    build_asked,
    build_call_id,
    calls_in,
    extract_requests,
    parse_payload,
    type_name,
)


def request(request_id: str = "r", data: Any = "what?", wanted: Any = str) -> Any:
    return WorkflowEvent.request_info(
        request_id=request_id, source_executor_id="clerk", request_data=data, response_type=wanted
    )


def approval() -> Content:
    return Content.from_function_approval_request("a", Content.from_function_call("c", "pay", arguments="{}"))


def test_each_request_is_found_once() -> None:
    result = WorkflowRunResult([request("one"), request("two"), request("one")])
    assert [one.request_id for one in extract_requests(result)] == ["one", "two"]
    assert extract_requests(AgentResponse(messages=[])) == extract_requests(None) == []


def test_approvals_and_calls_are_told_apart() -> None:
    both = [request("one", approval(), Content), request("two"), request("three", Content.from_text("x"))]
    assert [one.id for one in approvals_in(both)] == ["a"]
    assert [one.request_id for one in calls_in(both)] == ["two", "three"]
    (message,) = build_asked(both)
    assert [one.type for one in message.contents] == ["function_approval_request", "function_call", "function_call"]
    assert build_asked([]) == []


@pytest.mark.parametrize("name", ["r", "auto::0", "x" * 64, "é" * 64])
def test_an_id_is_its_own_name(name: str) -> None:
    assert build_call_id(request(name)) == name


@pytest.mark.parametrize("name", ["", "x" * 65, "y" * 65, "x" * 10_000, "\ud800" * 65])
def test_an_id_that_is_too_long_for_a_call_gets_another(name: str) -> None:
    assert 1 <= len(build_call_id(request(name))) <= 64
    assert build_call_id(request(name)) == build_call_id(request(name))


def test_two_long_ids_stay_two() -> None:
    assert build_call_id(request("x" * 65)) != build_call_id(request("x" * 66))


@pytest.mark.parametrize(("wanted", "name"), [(str, "str"), (list[int], "list[int]"), (int | None, "int | None")])
def test_a_type_has_a_name(wanted: Any, name: str) -> None:
    assert type_name(request(wanted=wanted)) == name
    assert parse_payload(request(wanted=wanted)) == {"request_id": "r", "data": "what?", "response_type": name}
