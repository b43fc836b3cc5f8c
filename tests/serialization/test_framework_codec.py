"""What is written can be read, by Hypothesis and by a few records spelled out."""

import pickle
import subprocess
import sys
from copy import deepcopy
from datetime import date
from enum import StrEnum
from inspect import signature
from types import MappingProxyType
from typing import Any, get_args

import pytest
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
from agent_framework._types import ContentType
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import CodecError
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import RunRecord
from frontdesk.serialization import codec
from frontdesk.serialization.json_tree import Shared
from frontdesk_testing import strategies
from tests.examples import examples
from tests.models.codec_kit import (
    MARKER,
    Order,
    Unknown,
    assert_kept,
    invoices,
    orders,
    picture,
    quick,
    round_trip,
)


class TestFrameworkObjects:
    def test_every_kind_of_content_has_a_strategy(self) -> None:
        assert set(strategies.CONTENTS) == set(get_args(ContentType))

    @pytest.mark.parametrize("kind", get_args(ContentType))
    def test_content(self, kind: str) -> None:
        @examples(25)
        @given(strategies.contents(kind))
        def check(content: Content) -> None:
            assert content.type == kind
            assert_kept(content)

        check()

    @quick
    @given(strategies.messages())
    def test_message(self, message: Message) -> None:
        assert_kept(message)

    @quick
    @given(strategies.agent_responses(st.none() | strategies.json_values() | orders | invoices))
    def test_response_with_value(self, response: AgentResponse[Any]) -> None:
        copy = round_trip(response)
        assert picture(copy.value) == picture(response.value)
        assert picture(copy.messages) == picture(response.messages)
        assert copy.to_dict() == response.to_dict()

    @quick
    @given(strategies.agent_response_updates())
    def test_update(self, update: AgentResponseUpdate) -> None:
        assert_kept(update)

    @quick
    @given(strategies.agent_sessions())
    def test_session(self, session: AgentSession) -> None:
        assert_kept(session)

    @quick
    @given(strategies.workflow_results(strategies.json_values() | orders | strategies.agent_responses()))
    def test_workflow_result(self, result: WorkflowRunResult) -> None:
        copy = round_trip(result)
        assert_kept(result)
        assert picture(copy.get_outputs()) == picture(result.get_outputs())
        assert picture(copy.get_intermediate_outputs()) == picture(result.get_intermediate_outputs())
        assert [one.response_type for one in copy.get_request_info_events()] == [
            one.response_type for one in result.get_request_info_events()
        ]
        if result.status_timeline():
            assert copy.get_final_state() is result.get_final_state()

    @quick
    @given(strategies.framework_objects())
    def test_a_hosted_result(self, result: Any) -> None:
        run = RunRecord(run_id="r", owner="o", channel="c", status="completed", created_at=1.0, result=result)
        assert_kept(HostedRunResult(result=result, run=run))

    def test_a_namesake_is_refused(self) -> None:
        namesake = type("Message", (), {"__module__": "agent_framework.elsewhere"})
        with pytest.raises(CodecError, match=r"elsewhere\.Message has no JSON form"):
            codec.encode(namesake())

    def test_a_subclass_is_refused(self) -> None:
        class Labelled(Message):
            pass

        with pytest.raises(CodecError, match="Labelled is not a Message"):
            codec.encode(AgentResponse(messages=[Labelled("user", ["hi"])]))

    @pytest.mark.parametrize(
        "value",
        [
            AgentResponse(messages=["hi"]),  # type: ignore[list-item]
            Content("function_approval_response", approved="yes"),  # type: ignore[arg-type]
            Content(5),  # type: ignore[arg-type]
        ],
    )
    def test_an_object_that_could_not_be_read_is_not_written(self, value: Any) -> None:
        with pytest.raises(CodecError):
            codec.encode(value)

    def test_text_enumerations_become_text(self) -> None:
        class Reason(StrEnum):
            STOP = "stop"

        copy = round_trip(AgentResponse(finish_reason=Reason.STOP, additional_properties={"why": Reason.STOP}))  # type: ignore[arg-type]
        assert (type(copy.finish_reason), copy.finish_reason) == (str, "stop")
        assert copy.additional_properties == {"why": "stop"}

    def test_the_text_of_an_exception_is_not_kept(self) -> None:
        content = Content.from_function_result("1", result="failed", exception="password=hunter2")
        assert b"hunter2" not in codec.encode(content)
        assert round_trip(content).exception == content.to_dict()["exception"] == MARKER

    def test_informational_only_is_kept(self) -> None:
        assert round_trip(Content("text", text="a", informational_only=True)).informational_only

    def test_what_providers_leave_behind_is_left_out(self) -> None:
        content = Content.from_text(
            "hi",
            annotations=[{"type": "citation", "url": "u", "raw_representation": object()}],
            additional_properties={"logprobs": [object(), 1], "kept": (1, 2)},
            raw_representation=object(),
        )
        copy = round_trip(content)
        assert copy.annotations == [{"type": "citation", "url": "u"}]
        assert copy.additional_properties == {"logprobs": [1], "kept": [1, 2]}
        assert copy.raw_representation is None

    def test_a_tool_result_is_kept_as_far_as_it_has_a_form(self) -> None:
        content = Content("mcp_server_tool_result", call_id="1", output=MappingProxyType({"a": 1, "b": object()}))
        assert round_trip(content).output == {"a": 1}

    def test_outputs_that_from_dict_can_not_read(self) -> None:
        content = Content.from_image_generation_tool_result(outputs=[{"url": "https://example.com"}])
        assert round_trip(content).outputs == [{"url": "https://example.com"}]

    @pytest.mark.parametrize(
        "tree",
        [
            {"$": "Content"},
            {"$": "Content", "type": 5},
            {"$": "Content", "type": "function_approval_response", "approved": "yes"},
            {"$": "Message", "role": "user", "contents": "hi"},
            {"$": "Message", "role": "user", "contents": ["hi"]},
            {"$": "AgentResponse", "messages": ["hi"]},
            {"$": "WorkflowEvent", "type": "failed", "origin": "EXECUTOR"},
            {"$": "WorkflowEvent", "type": "output", "origin": "EXECUTOR", "executor_id": 5},
            {"$": "WorkflowEvent", "type": "output", "origin": "NOBODY"},
            {"$": "WorkflowEvent", "type": "status", "origin": "FRAMEWORK", "state": "BORED"},
            {"$": "WorkflowRunResult", "events": []},
            {"$": "WorkflowRunResult", "events": [1], "status": []},
            {"$": "AgentSession"},
        ],
    )
    def test_a_malformed_object_is_refused(self, tree: Any) -> None:
        with pytest.raises(CodecError):
            codec.from_json(tree)


class TestResponseValue:
    def test_of_an_unknown_model(self) -> None:
        response: AgentResponse[Any] = AgentResponse(
            messages=[Message("assistant", ['{"city": "Oslo"}'])], response_format=Unknown
        )
        with pytest.raises(CodecError, match=r"Unknown has no JSON form.*register_model.*holds the JSON"):
            codec.encode(response)

    def test_of_an_unknown_model_from_elsewhere(self) -> None:
        response: AgentResponse[Any] = AgentResponse(
            messages=[Message("assistant", ["Oslo"])], value=Unknown(city="Oslo")
        )
        with pytest.raises(CodecError) as caught:
            codec.encode(response)
        assert "holds the JSON" not in str(caught.value)

    def test_that_the_model_got_wrong(self) -> None:
        response: AgentResponse[Any] = AgentResponse(
            messages=[Message("assistant", ["no JSON"])], response_format=Unknown
        )
        copy = round_trip(response)
        assert (copy.text, copy.value) == ("no JSON", None)


class TestWorkflowResult:
    def test_events_about_steps_are_left_out(self) -> None:
        events = [WorkflowEvent.executor_invoked("a", object()), WorkflowEvent("output", 1, executor_id="a")]
        copy = round_trip(WorkflowRunResult(events, [WorkflowEvent.status(WorkflowRunState.IDLE)]))
        assert [(one.type, one.executor_id, one.data) for one in copy] == [("output", "a", 1)]
        assert copy.get_final_state() is WorkflowRunState.IDLE

    def test_an_output_of_an_unknown_type_is_refused(self) -> None:
        with pytest.raises(CodecError, match=r"Unknown has no JSON form.*register_model"):
            codec.encode(WorkflowRunResult([WorkflowEvent("output", Unknown(city="Oslo"), executor_id="a")]))

    def test_an_unknown_response_type_becomes_object(self) -> None:
        event = WorkflowEvent.request_info("1", "a", Order(1, date(2024, 1, 1)), Unknown)
        copy = round_trip(event)
        assert (copy.request_id, copy.request_type, copy.response_type) == ("1", Order, object)

    def test_a_registered_response_type_is_kept(self) -> None:
        assert round_trip(WorkflowEvent.request_info("1", "a", "?", Order)).response_type is Order


def test_the_framework_is_imported_only_when_it_is_needed() -> None:
    code = (
        "import sys, frontdesk.serialization.codec as c; "
        "c.encode({'a': (1,)}); sys.exit('agent_framework' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], check=False, env={"PYTHONPATH": ":".join(sys.path)}).returncode
        == 0
    )


def test_the_constructors_take_what_the_objects_hold() -> None:
    """The codec relies on it: an attribute under another name would be lost."""
    for one in (Content("text"), Message("user"), AgentResponse(), AgentResponseUpdate()):
        held = {name for name in vars(one) if not name.startswith("_")}
        assert held == signature(type(one)).parameters.keys() - {"value", "response_format"}


def test_a_message_that_was_stamped_is_pickled_as_a_plain_one() -> None:
    """A workflow that was handed stamped messages could not be restored: no checkpoint may hold a type of ours."""
    stamp = Shared(channel="web", identity={"native_id": "anna"})
    for copied in (pickle.loads(pickle.dumps(stamp)), deepcopy(stamp)):  # noqa: S301
        assert (type(copied), copied) == (dict, dict(stamp))
