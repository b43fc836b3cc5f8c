"""The short way to the record of a text writes what the long way writes."""

from typing import Any

import pytest
from agent_framework import AgentResponseUpdate, Content, WorkflowEvent
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import CodecError
from frontdesk.serialization.codec import encode
from frontdesk.sessions.job import encode_update
from tests.models.codec_kit import quick

names = st.none() | st.text(max_size=8)
texts = st.text().map(Content.from_text)
contents = st.one_of(
    texts,
    st.builds(Content.from_text, st.text(), additional_properties=st.dictionaries(st.text(), st.text(), max_size=2)),
    st.builds(Content.from_text_reasoning, text=st.text()),
    st.builds(Content.from_function_call, st.text(), st.text()),
)
updates = st.builds(
    AgentResponseUpdate,
    contents=st.lists(texts, min_size=1, max_size=1) | st.lists(contents, max_size=2),
    role=st.sampled_from(["assistant", "user", "tool"]) | st.none(),
    author_name=names,
    agent_id=names,
    response_id=names,
    message_id=names,
    created_at=st.none() | st.just("2026-01-01"),
    finish_reason=st.none() | st.just("stop"),
    additional_properties=st.none() | st.just({"a": 1}),
)


@quick
@given(updates)
def test_both_ways_lead_to_the_same_record(update: Any) -> None:
    assert encode_update(update) == encode(update)


def test_what_is_no_update_goes_the_long_way() -> None:
    event = WorkflowEvent("output", data="said", executor_id="one")
    assert encode_update(event) == encode(event)


def test_half_a_character_is_refused_both_ways() -> None:
    with pytest.raises(CodecError):
        encode_update(AgentResponseUpdate(contents=[Content.from_text("\ud83d")]))
