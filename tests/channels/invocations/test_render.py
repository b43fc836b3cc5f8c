"""An answer says the same whether it comes whole or in pieces, however it was cut."""

import json
from typing import Any

from agent_framework import AgentResponse, AgentResponseUpdate, Content, Message
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.channels.invocations.render import Renderer, encode
from frontdesk.models.run import RunRecord
from tests.channels import plain_answers

RUN = RunRecord(run_id="r", owner="o", channel="c", status="completed", created_at=0.0)

texts = st.text(max_size=12).map(Content.from_text)
others = st.sampled_from(
    [
        Content.from_text_reasoning(text="hm"),
        Content.from_data(b"x", "image/png"),
        Content.from_function_call("call-1", "tool", arguments="{}"),
        Content.from_function_result("call-1", result="secret"),
    ]
)
pieces = st.lists(st.lists(texts | others, max_size=3), max_size=8)


def _updates(cut: list[list[Content]]) -> list[AgentResponseUpdate]:
    return [AgentResponseUpdate(contents=list(contents), role="assistant", message_id="m") for contents in cut]


def _draw(renderer: Renderer, updates: list[AgentResponseUpdate]) -> list[dict[str, Any]]:
    events = [renderer.update(update, number) for number, update in enumerate(updates, 1)]
    return [json.loads(event.split(b"data: ", 1)[1]) for event in events if event is not None]


@given(pieces)
def test_the_pieces_of_a_text_are_the_text(cut: list[list[Content]]) -> None:
    renderer = Renderer("hide")
    drawn = _draw(renderer, _updates(cut))
    whole = renderer.invocation(RUN, AgentResponse.from_updates(_updates(cut)))
    said = "".join(content.text or "" for contents in cut for content in contents if content.type == "text")
    assert "".join(one.get("text", "") for one in drawn) == whole.text == said


@given(st.text(max_size=60), st.lists(st.integers(0, 60), max_size=8))
def test_any_cut_of_a_text_gives_the_same_answer(text: str, places: list[int]) -> None:
    ends = sorted({min(place, len(text)) for place in places} | {len(text)})
    cut = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    renderer = Renderer("hide")
    updates = _updates([[Content.from_text(piece)] for piece in cut])
    assert "".join(one.get("text", "") for one in _draw(renderer, updates)) == text
    whole = renderer.invocation(RUN, AgentResponse.from_updates(updates))
    plain = renderer.invocation(RUN, AgentResponse(messages=[Message("assistant", [text])]))
    assert json.loads(encode(whole))["text"] == json.loads(encode(plain))["text"] == text


@given(pieces)
def test_tool_calls_are_never_drawn_unless_they_are_shown(cut: list[list[Content]]) -> None:
    hidden = Renderer("hide")
    out = encode(hidden.invocation(RUN, AgentResponse.from_updates(_updates(cut))))
    assert b"function_" not in out + encode(_draw(hidden, _updates(cut)))


@given(st.text(alphabet=st.characters(codec=None), max_size=20))
def test_every_text_has_a_json_form_of_one_line(text: str) -> None:
    event = Renderer("hide").update(AgentResponseUpdate(contents=[Content.from_text(text)], role="assistant"), 7)
    assert event is not None
    name, number, data, *rest = event.split(b"\n")
    assert (name, number, rest) == (b"event: update", b"id: 7", [b"", b""])
    assert json.loads(data.removeprefix(b"data: ")).get("text", "") == text


@given(plain_answers.runs, plain_answers.answers)
def test_an_answer_that_is_filled_in_is_the_one_that_would_be_drawn(run: RunRecord, answer: AgentResponse[Any]) -> None:
    renderer = Renderer("hide")
    filled = renderer.plain(run, answer)
    assert filled is None or filled == encode(renderer.invocation(run, answer))


def test_most_answers_are_filled_in() -> None:
    answer = AgentResponse(messages=[Message("assistant", ["hello"])])
    assert Renderer("hide").plain(RUN, answer) is not None


def test_nothing_is_filled_in_for_a_run_without_an_answer() -> None:
    assert Renderer("hide").plain(RUN, None) is None
