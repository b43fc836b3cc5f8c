"""Estimates of tokens: never less for more, and a number for whatever a request brings."""

from typing import Any

from agent_framework import Content, Message
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.models.request import ChannelRequest, ClientOutput, ClientTool
from frontdesk.openai.bodies import message_tokens, request_tokens, text_tokens

JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(text=st.text(max_size=40), more=st.text(max_size=40))
def test_more_text_is_never_fewer_tokens(text: str, more: str) -> None:
    assert text_tokens(text) <= text_tokens(text + more) <= text_tokens(text) + text_tokens(more)


def test_a_text_has_a_token_for_four_characters() -> None:
    assert [text_tokens("a" * length) for length in (0, 1, 4, 5)] == [0, 1, 1, 2]


def test_every_kind_of_content_counts() -> None:
    contents = [
        (Content.from_text("abcd"), 1),
        (Content.from_uri("https://example.com/a.png", media_type="image/png"), 1_000),
        (Content.from_function_call("call_1", "look", arguments='{"a":1}'), 3),
        (Content.from_function_result("call_1", result="12345678"), 2),
        (Content.from_function_result("call_1", result=[Content.from_text("abcd")]), 1),
    ]
    for content, tokens in contents:
        assert message_tokens([Message("user", [content])]) == 4 + tokens


@given(output=JSON, parameters=st.dictionaries(st.text(max_size=4), JSON, max_size=3), said=st.text(max_size=40))
def test_whatever_a_request_brings_has_a_number(output: Any, parameters: dict[str, Any], said: str) -> None:
    request = ChannelRequest(
        channel="responses",
        input=said,
        client_outputs=(ClientOutput(call_id="call_1", output=output),),
        client_tools=(ClientTool(name="look", description="", parameters=parameters),),
    )
    assert request_tokens(request) >= text_tokens(said)
