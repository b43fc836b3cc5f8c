"""Any JSON as a body is a request or is refused; nothing else ever comes of it."""

import copy
import json
from typing import Any

import msgspec
import pytest
from agent_framework import Message
from hypothesis import example, given
from hypothesis import strategies as st

from frontdesk.channels.responses.config import ResponsesConfig
from frontdesk.channels.responses.parse import Parser, decode, unknown_keys
from frontdesk.channels.responses.render import error_body, input_items
from frontdesk.channels.responses.schema import CreateBody
from frontdesk.errors import InvalidRequestError
from frontdesk.interfaces.target import TargetInfo
from frontdesk.models.request import ChannelRequest
from frontdesk.models.run import RunRecord
from frontdesk.openai.bodies import encode
from frontdesk.openai.items import read_items, reference

TARGETS = [
    TargetInfo(name="Concierge", kind="agent", options=True, tools=True, tool_names=("pay",)),
    TargetInfo(name="echo", kind="function"),
]

_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_any_json = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_words = [
    *("message", "function_call", "function_call_output", "reasoning", "item_reference", "function", "json_schema"),
    *("mcp_approval_request", "mcp_approval_response", "mcp_call", "image_generation_call", "allowed_tools", "text"),
    *("input_text", "output_text", "input_image", "input_file", "input_audio", "refusal", "summary_text"),
    *("user", "assistant", "system", "developer", "call_1", "look", "pay", "{}", "wav", "QUJD", "auto", "required"),
    *("data:image/png;base64,QUJD", "data:x/y;base64,", "https://example.com/a.png", "http://", "a.pdf", "\x00"),
]
_names = [
    *("type", "role", "content", "id", "call_id", "name", "arguments", "output", "summary", "encrypted_content"),
    *("approve", "approval_request_id", "reason", "text", "refusal", "image_url", "file_url", "file_data", "file_id"),
    *("filename", "input_audio", "data", "format", "schema", "strict", "mode", "tools", "parameters", "detail"),
    *("status", "phase"),
]
# What nearly says something, so that it gets past the first check.
_likely = st.recursive(
    st.sampled_from(_words) | _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_names), inner, min_size=1, max_size=6),
    max_leaves=12,
)
_good: list[dict[str, Any]] = [
    {"role": "user", "content": "hello"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}], "phase": None},
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,QUJD"}]},
    {"role": "user", "content": [{"type": "input_file", "file_data": "QUJD", "filename": "a.pdf"}]},
    {"role": "user", "content": [{"type": "input_file", "file_url": "https://example.com/a.pdf"}]},
    {"role": "user", "content": [{"type": "input_audio", "input_audio": {"format": "wav", "data": "QUJD"}}]},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"},
    {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "seen"},
    {"type": "mcp_approval_request", "id": "a", "name": "pay", "arguments": "{}", "server_label": "x"},
    {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True, "reason": "so"},
    {"type": "mcp_call", "id": "a", "name": "pay"},
    {"type": "item_reference", "id": "msg_1"},
]


@st.composite
def _nearly_good(draw: st.DrawFn) -> Any:
    """An item with one thing changed, on its surface or inside."""
    item = copy.deepcopy(draw(st.sampled_from(_good)))
    place: Any = item
    while draw(st.booleans()):
        inner = [one for one in (place.values() if isinstance(place, dict) else place) if isinstance(one, dict | list)]
        if not inner:
            break
        place = draw(st.sampled_from(inner))
    if isinstance(place, list):
        place.append(draw(_likely))
    elif draw(st.booleans()):
        place[draw(st.sampled_from([*place, "id", "status"]))] = draw(_likely)
    return item


_items = st.lists(
    st.sampled_from(_good) | _nearly_good() | st.dictionaries(st.sampled_from(_names), _likely, min_size=1, max_size=6),
    max_size=4,
)
_bodies = st.dictionaries(st.sampled_from(CreateBody.__struct_fields__), _likely, max_size=4)


def _request(raw: bytes, target: TargetInfo) -> ChannelRequest | None:
    parser = Parser("responses", ResponsesConfig(), target, "auto")
    try:
        body = decode(raw)
        request = parser.request(body, parser.items(body))
    except InvalidRequestError as error:
        # Whatever it quotes can be sent.
        error_body(error)
        return None
    assert isinstance(request, ChannelRequest)
    unknown_keys(msgspec.json.decode(raw))
    return request


@given(_any_json, st.sampled_from(TARGETS))
@example({"input": "\ud800"}, TARGETS[0])
def test_any_json_is_a_request_or_refused(body: Any, target: TargetInfo) -> None:
    _request(json.dumps(body).encode(), target)


@given(_bodies, _items, st.sampled_from(TARGETS))
def test_anything_that_looks_like_a_body_is_a_request_or_refused(
    body: dict[str, Any], items: list[Any], target: TargetInfo
) -> None:
    for asked in (body, {"input": "hello", **body}, {**body, "input": items}):
        request = _request(json.dumps(asked).encode(), target)
        if request is not None:
            _check_listed(request)


def _check_listed(request: ChannelRequest) -> None:
    """What was taken can be shown again, every item with an id of its own."""
    run = RunRecord(
        run_id="resp_1", owner="me", channel="responses", status="completed", created_at=1.0, details=request.details
    )
    items = input_items(run)
    assert len({item["id"] for item in items}) == len(items)
    encode(items)


@given(st.binary(max_size=40), st.sampled_from(TARGETS))
def test_any_bytes_are_a_request_or_refused(raw: bytes, target: TargetInfo) -> None:
    _request(raw, target)


@given(_items, st.booleans())
def test_any_items_are_messages_or_refused(items: list[Any], replayed: bool) -> None:
    try:
        found = read_items(items, host_tools=("pay",), replayed=replayed)
    except InvalidRequestError as error:
        named = str(error.param).startswith("input")
    else:
        named = True
        assert all(isinstance(message, Message) for message in found.messages)
        assert all(found.calls.values())
    assert named


@given(st.dictionaries(st.sampled_from(_names), _likely))
def test_a_reference_is_an_id_and_nothing_else(item: dict[str, Any]) -> None:
    named = reference(item)
    assert named is None or (isinstance(named, str) and item.get("type") in (None, "item_reference"))


def test_the_body_is_strict_about_types_and_deaf_to_what_it_does_not_know() -> None:
    assert decode(b'{"input": "hello", "hosting": {"a": 1}}') == CreateBody(input="hello")
    assert unknown_keys({"input": "hello", "hosting": {"a": 1}}) == {"hosting": {"a": 1}}
    with pytest.raises(InvalidRequestError) as caught:
        decode(msgspec.json.encode({"input": "hello", "text": {"format": {"type": "json_schema", "strict": "yes"}}}))
    assert caught.value.param == "text.format.strict"
