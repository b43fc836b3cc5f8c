"""Whatever a target says, and in whichever pieces: the events are in order, and say what is found later."""

import json
from typing import Any, Literal

import pytest
from agent_framework import AgentResponse, AgentResponseUpdate, Content
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.channels.responses.config import HostTools, ResponsesConfig
from frontdesk.channels.responses.render import Renderer
from frontdesk.channels.responses.writer import Script
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.run import RunFailure, RunRecord
from frontdesk.openai.bodies import encode
from tests.channels.responses.contents import CLIENT_TOOLS, updates
from tests.scenarios.responses.sequence import wrong_sequence
from tests.scenarios.responses.tap import judge_event, judge_response, read_events

RUN = RunRecord(
    run_id="resp_1",
    owner="me",
    channel="responses",
    status="running",
    created_at=1.5,
    details={"tools": [{"name": name} for name in CLIENT_TOOLS], "include": ["reasoning.encrypted_content"]},
)
ENDED = RUN.replace(status="completed", finished_at=2.5)
FAILED = RUN.replace(status="failed", finished_at=2.5, failure=RunFailure(code="target_failed", message="It failed."))


def _renderer(host_tools: HostTools = "hide") -> Renderer:
    return Renderer(ResponsesConfig(host_tools=host_tools), TargetInfo(name="Concierge", kind="agent"))


def _render_events(
    renderer: Renderer, pieces: list[AgentResponseUpdate], run: RunRecord, result: Any
) -> list[dict[str, Any]]:
    script = Script(renderer, RUN)
    told = [script.begin(), *(script.update(piece) for piece in pieces), script.end(run, result)]
    events, wrong = read_events(b"".join(sent for messages in told for sent in messages))
    assert wrong == []
    return events


def _items(renderer: Renderer, result: Any) -> list[dict[str, Any]]:
    return json.loads(encode(renderer.output(ENDED, result)))


@given(updates(), st.sampled_from(["hide", "summary", "full"]), st.sampled_from([None, "stop", "length"]))
def test_what_was_streamed_is_what_is_found_later(
    pieces: list[AgentResponseUpdate], host_tools: HostTools, reason: Literal["stop", "length"] | None
) -> None:
    renderer = _renderer(host_tools)
    # The framework joins the pieces in place, so that they are read for the stream first.
    result = AgentResponse.from_updates(_copies(pieces))
    result.finish_reason = reason
    events = _render_events(renderer, pieces, ENDED, result)
    assert wrong_sequence(events) == []
    assert [fault for event in events for fault in judge_event(event)] == []
    response = events[-1]["response"]
    assert response["status"] == ("incomplete" if reason == "length" else "completed")
    assert response["output"] == _items(renderer, result)
    assert json.loads(encode(renderer.response(ENDED, result))) == response
    assert judge_response(response) == []
    assert "the secret reason" not in json.dumps(events)


@given(updates(), st.sampled_from(["hide", "summary", "full"]))
def test_a_run_that_fails_half_way_still_ends_every_item(
    pieces: list[AgentResponseUpdate], host_tools: HostTools
) -> None:
    events = _render_events(_renderer(host_tools), pieces, FAILED, None)
    assert wrong_sequence(events) == []
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"] == {
        "code": "invalid_prompt",
        "message": "It failed.",
        "type": "server_error",
        "param": None,
    }


def _copies(pieces: list[AgentResponseUpdate]) -> list[AgentResponseUpdate]:
    return [AgentResponseUpdate.from_dict(one.to_dict()) for one in pieces]


@given(st.text(min_size=1), st.data())
def test_a_text_is_the_same_in_any_pieces(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    parts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    pieces = [AgentResponseUpdate(contents=[Content.from_text(part)], role="assistant") for part in parts]
    events = _render_events(_renderer(), pieces, ENDED, AgentResponse.from_updates(_copies(pieces)))
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert "".join(deltas) == text == events[-1]["response"]["output"][0]["content"][0]["text"]


@pytest.mark.parametrize("host_tools", ["hide", "summary", "full"])
def test_calls_that_come_interleaved_keep_their_arguments(host_tools: HostTools) -> None:
    said = [("c0", "look", '{"a"'), ("h0", "add", '{"x"'), ("c1", "ask", "{"), ("c0", "", ": 1}"), ("h0", "", ": 2}")]
    said += [("c1", "", "}")]
    contents = [Content.from_function_call(call_id, name, arguments=piece) for call_id, name, piece in said]
    pieces = [AgentResponseUpdate(contents=[one], role="assistant") for one in contents]
    renderer = _renderer(host_tools)
    events = _render_events(renderer, pieces, ENDED, AgentResponse.from_updates(_copies(pieces)))
    assert wrong_sequence(events) == []
    found = {item["name"]: item["arguments"] for item in events[-1]["response"]["output"]}
    shown = {"summary": {"add": "{}"}, "full": {"add": '{"x": 2}'}}.get(host_tools, {})
    assert found == {"look": '{"a": 1}', "ask": "{}", **shown}


@pytest.mark.parametrize("host_tools", ["hide", "summary", "full"])
def test_a_call_may_have_the_id_of_one_that_has_ended(host_tools: HostTools) -> None:
    call, answer = Content.from_function_call("h0", "add"), Content.from_function_result("h0", result="1")
    turn: list[tuple[Literal["assistant", "tool"], Content]] = [("assistant", call), ("tool", answer)]
    pieces = [AgentResponseUpdate(contents=[said], role=role) for role, said in turn * 2]
    renderer, result = _renderer(host_tools), AgentResponse.from_updates(_copies(pieces))
    found = _render_events(renderer, pieces, ENDED, result)[-1]["response"]["output"]
    assert found == _items(renderer, result)
    assert len(found) == (0 if host_tools == "hide" else 2)


def test_a_call_without_arguments_has_an_empty_object() -> None:
    pieces = [AgentResponseUpdate(contents=[Content.from_function_call("c0", "look")], role="assistant")]
    events = _render_events(_renderer(), pieces, ENDED, AgentResponse.from_updates(_copies(pieces)))
    assert wrong_sequence(events) == []
    assert events[-1]["response"]["output"][0]["arguments"] == "{}"


def test_a_snapshot_of_what_was_said_says_it_once() -> None:
    contents = [Content.from_text("one "), Content.from_text("one two", merge_mode="replace")]
    pieces = [AgentResponseUpdate(contents=[one], role="assistant") for one in contents]
    events = _render_events(_renderer(), pieces, ENDED, AgentResponse.from_updates(_copies(pieces)))
    assert wrong_sequence(events) == []
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "one two"
