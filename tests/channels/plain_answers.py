"""Answers of one text, and those that nearly are."""

from typing import Any

from agent_framework import AgentResponse, Annotation, Content, Message, UsageDetails
from hypothesis import strategies as st

from frontdesk.models.run import RunFailure, RunRecord
from frontdesk.models.session import CheckpointRef

words = st.text(max_size=12)
ids = st.from_regex(r"\A[a-z]{1,4}_[A-Za-z0-9._-]{1,8}\Z") | st.from_regex(r"\A[A-Za-z0-9.-]{1,8}\Z")
moments = st.floats(0, 4e9, allow_nan=False)

contents = st.one_of(
    words.map(Content.from_text),
    words.map(lambda text: Content.from_text(text, additional_properties={"phase": "commentary"})),
    words.map(lambda text: Content.from_text(text, annotations=[Annotation(type="citation", title=text)])),
    words.map(lambda text: Content.from_text_reasoning(text=text)),
)
messages = st.builds(
    lambda role, contents, author: Message(role, contents, author_name=author),
    st.sampled_from(["assistant", "assistant", "tool"]),
    st.lists(contents, min_size=1, max_size=2),
    st.none() | words,
)


def _answer(said: list[Message], value: Any, usage: Any, reason: Any) -> AgentResponse[Any]:
    return AgentResponse(messages=said, value=value, usage_details=usage, finish_reason=reason)


answers = st.builds(
    _answer,
    st.lists(messages, min_size=1, max_size=2),
    st.none() | st.just({"a": 1}),
    st.none() | st.just(UsageDetails(input_token_count=3, output_token_count=4)),
    st.sampled_from([None, "stop", "length"]),
)
runs = st.builds(
    RunRecord,
    run_id=ids,
    owner=st.just("key"),
    channel=st.just("door"),
    status=st.sampled_from(["completed", "completed", "completed", "failed", "cancelled", "running"]),
    created_at=moments,
    finished_at=st.none() | moments,
    session_key=st.none() | words,
    previous_run_id=st.none() | ids,
    background=st.booleans(),
    stored=st.booleans(),
    checkpoint=st.none() | st.just(CheckpointRef(session_id="s", checkpoint_id="c")),
    stopped_at=st.none() | st.just(CheckpointRef(session_id="s", checkpoint_id="d")),
    failure=st.none() | st.just(RunFailure(code="odd", message="Odd.")),
    metadata=st.dictionaries(words, words, max_size=2),
    details=st.sampled_from([{}, {"input": "hi"}, {"input": "hi", "temperature": 0.5}]),
)
