"""Whatever comes in becomes a `ChannelRequest` or an `InvalidRequestError`, never another exception."""

import base64
import json
import sys
from typing import Any

import msgspec
import pytest
from agent_framework import Content, Message
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.channels.invocations.parse import decode, parse_approval, to_request
from frontdesk.channels.invocations.render import error_body
from frontdesk.errors import InvalidRequestError
from frontdesk.identifiers import is_plain_id
from frontdesk.models.request import ChannelRequest

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
maybe_right = st.sampled_from(["text", "data", "uri", "aGk=", "https://example.com", "image/png", "a"]) | json_values
parts = st.lists(
    st.dictionaries(st.sampled_from(["type", "text", "data", "uri", "media_type", "name"]), maybe_right), max_size=3
)
names = ["message", "input", "approval", "session_id", "stream", "background", "options", "metadata"]
values = (
    maybe_right | parts | st.dictionaries(st.sampled_from(["id", "approved", "reason", "temperature"]), maybe_right)
)
bodies = st.dictionaries(st.sampled_from(names) | st.text(max_size=8), values, max_size=5)


def _parse(raw: bytes, headers: dict[bytes, bytes] | None = None, query: bytes = b"") -> ChannelRequest | None:
    """The request; `None` if the body was an approval or was refused in a way that can be shown."""
    try:
        body = decode(raw)
        if parse_approval(body) is not None:
            return None
        return to_request(body, channel="c", session_mode="auto", headers=headers or {}, query=query)
    except InvalidRequestError as error:
        shown = msgspec.json.decode(error_body(error))
        assert shown["error"]["code"] in ("invalid_request", "invalid_json", "nested_too_deep", "too_many_values")
        assert shown["error"]["message"]
        return None


@given(json_values | bodies)
def test_any_json_is_parsed_or_refused(value: Any) -> None:
    request = _parse(json.dumps(value).encode())
    if request is not None:
        assert isinstance(value, dict)
        assert ("message" in value) != ("input" in value)
        assert request.session is None or is_plain_id(request.session.key or "")


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_parsed_or_refused(raw: bytes) -> None:
    _parse(raw)
    _parse(b'{"message": "' + raw + b'"}')
    _parse(b'{"' + raw + b'": 1}')


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_any_header_and_query_are_parsed_or_refused(header: bytes, query: bytes) -> None:
    request = _parse(b'{"message": "hi"}', {b"x-agent-invocation-id": header}, query)
    if request is not None:
        assert request.run_id == header.decode("latin-1")
    request = _parse(b'{"message": "hi"}', {}, b"agent_session_id=" + query)
    if request is not None and request.session is not None:
        assert is_plain_id(request.session.key or "")


@given(st.text(max_size=300))
def test_an_id_comes_through_unchanged_or_not_at_all(text: str) -> None:
    request = _parse(json.dumps({"message": "hi", "session_id": text}).encode())
    assert (request is not None) == is_plain_id(text)
    if request is not None:
        assert request.session is not None
        assert request.session.key == text


@given(st.binary(max_size=50), st.sampled_from(["image/png", "application/vnd.x+json", "a/b"]))
def test_data_comes_through_unchanged(data: bytes, media_type: str) -> None:
    part = {"type": "data", "data": base64.b64encode(data).decode(), "media_type": media_type}
    request = _parse(json.dumps({"message": [part]}).encode())
    assert request is not None
    (content,) = request.input.contents
    assert (content.type, content.media_type) == ("data", media_type)
    assert base64.b64decode(content.uri.partition(",")[2]) == data


def test_a_text_is_a_text_and_parts_are_one_message() -> None:
    text = _parse(b'{"message": "hi"}')
    assert text is not None
    assert text.input == "hi"
    request = _parse(b'{"message": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}')
    assert request is not None
    assert isinstance(request.input, Message)
    assert [content.text for content in request.input.contents] == ["a", "b"]
    assert all(isinstance(content, Content) for content in request.input.contents)


# How deep C may go is bounded by the limit for Python itself, and since 3.12 by one of its own.
DEEPEST = 1_000 if sys.version_info < (3, 12) else 10_000


@pytest.mark.parametrize("depth", [10, 100, 900, 1_000, 10_000, 100_000])
def test_any_depth_is_parsed_or_refused(depth: int) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        raw = b'{"input": ' + opening * depth + b"1" + closing * depth + b"}"
        request = _parse(raw)
        assert depth < DEEPEST or request is None


def test_a_field_that_nobody_knew_did_not_say_how_hooks_could_see_it() -> None:
    with pytest.raises(InvalidRequestError, match=r'`hosting`.* Set `extra_fields="attributes"`'):
        decode(b'{"message": "hi", "hosting": {}}')
    # Where something else is wrong, that alone is told.
    with pytest.raises(InvalidRequestError) as caught:
        decode(b'{"message": "hi", "stream": 3, "hosting": {}}')
    assert "extra_fields" not in caught.value.message
