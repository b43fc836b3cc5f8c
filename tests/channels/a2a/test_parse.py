"""Parsers of messages: whatever comes in, they accept it or refuse it with an error of the protocol."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from frontdesk.channels.a2a.errors import ProtocolError, classify, http_error, rpc_error
from frontdesk.channels.a2a.modes import INPUT_MODES, is_accepted, is_mode, overlap, plain_mode
from frontdesk.channels.a2a.parse import (
    build_input,
    convert_query,
    decode_call,
    decode_params,
    parse_call_id,
    parse_extensions,
    parse_number,
    parse_query,
    parse_sent,
    parse_state,
    parse_time,
)
from frontdesk.channels.a2a.questions import Answers, OpenQuestion, find_answers
from frontdesk.channels.a2a.schema import STATES, ListIn, PartIn, SendIn
from frontdesk.errors import RequestError
from tests.examples import examples

DECODER = msgspec.json.Decoder(SendIn)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "text": st.text() | st.none(),
        "raw": st.text(alphabet="AZaz09+/-_=%", max_size=12),
        "url": st.sampled_from(["https://a.b", "http://a.b/c", "file:///x", ""]),
        "data": JSON,
        "mediaType": st.sampled_from(["text/plain", "image/png", "x", "application/zip", "TEXT/PLAIN; a=b", ""]),
        "filename": st.text(max_size=8),
    },
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "messageId": st.text(max_size=8),
        "role": st.sampled_from(["ROLE_USER", 1, "ROLE_AGENT", None, 7]),
        "parts": st.lists(PARTS, max_size=3),
        "taskId": st.text(max_size=8),
        "contextId": st.text(max_size=8),
        "extra": JSON,
    },
)


@given(message=MESSAGES, modes=st.lists(st.sampled_from(["text/plain", "image/*", "*/*", "x", "text"]), max_size=3))
@examples(100)
def test_a_message_is_read_or_refused(message: dict[str, Any], modes: list[str]) -> None:
    raw = msgspec.json.encode({"message": message, "configuration": {"acceptedOutputModes": modes}})
    try:
        params = decode_params(DECODER, raw)
        sent = parse_sent(params, "", frozenset(INPUT_MODES))
        built = build_input(sent, takes_data=False)
    except RequestError as error:
        status = classify(error).http
    else:
        status = 200
    assert status in (200, 400, 415)
    if status != 200:
        return
    assert built.message_id == sent.message_id
    assert len(built.contents) == len(message["parts"])
    again = parse_sent(decode_params(DECODER, raw), "", frozenset(INPUT_MODES))
    assert again.key == sent.key


@given(raw=st.binary(max_size=40) | JSON.map(msgspec.json.encode))
@examples(100)
def test_a_call_is_read_or_refused(raw: bytes) -> None:
    try:
        call = decode_call(raw)
    except RequestError as error:
        msgspec.json.decode(rpc_error(b"null", error))
        msgspec.json.decode(http_error(error))
        return
    msgspec.json.decode(parse_call_id(call.id))


@given(parts=st.lists(st.fixed_dictionaries({"data": JSON}) | st.fixed_dictionaries({"text": st.text()}), max_size=3))
@examples(100)
def test_answers_are_found_or_refused(parts: list[dict[str, Any]]) -> None:
    questions = [
        OpenQuestion(question_id="apr_1", is_approval=True, text="", data={}, digest="d"),
        OpenQuestion(question_id="call_1", is_approval=False, text="", data={}, response_type=str),
    ]
    read = msgspec.convert(parts, list[PartIn])
    try:
        answers = find_answers(read, questions)
    except ProtocolError:
        return
    assert {one.approval_id for one in answers.approvals} <= {"apr_1"}
    assert {one.call_id for one in answers.outputs} <= {"call_1"}


QUESTION = OpenQuestion(question_id="call_1", is_approval=False, text="", data={})


@pytest.mark.parametrize(
    ("wanted", "text", "value"),
    [
        (bool, "yes", True),
        (bool, "NO", False),
        (bool, "perhaps", UNSET),
        ("bool", "ja", True),
        (str, "large", "large"),
        ("str", "large", "large"),
        (int, "5", 5),
        (int, "five", UNSET),
        (float, "2.5", 2.5),
        (dict, "x", UNSET),
    ],
)
def test_a_text_answers_a_question_of_its_type(wanted: Any, text: str, value: Any) -> None:
    found = find_answers([PartIn(text=text)], [QUESTION.replace(response_type=wanted)])
    assert found == Answers() if value is UNSET else found.outputs[0].output == value


@pytest.mark.parametrize("word", ["yes", "Yes.", "OK", "approve", "no", "reject", "nein"])
def test_words_decide_one_approval_and_not_one_of_two(word: str) -> None:
    question = OpenQuestion(question_id="apr_1", is_approval=True, text="", data={})
    assert len(find_answers([PartIn(text=word)], [question]).approvals) == 1
    assert not find_answers([PartIn(text=word)], [question, QUESTION])
    assert not find_answers([PartIn(text=f"{word} and more words")], [question])


def test_numbers_states_and_times() -> None:
    assert (parse_number("5", "x"), parse_number(0, "x"), parse_number(None, "x")) == (5, 0, None)
    assert (parse_state("TASK_STATE_WORKING"), parse_state(2), parse_state("2")) == (STATES[2],) * 3
    assert (parse_state(""), parse_state(0), parse_state(None)) == (None, None, None)
    assert parse_time("2026-10-27T10:00:00Z", "x") == parse_time("2026-10-27T12:00:00.000000001+02:00", "x")
    wrong: list[Any] = [
        lambda: parse_number("-1", "x"),
        lambda: parse_number("9" * 30, "x"),
        lambda: parse_number("²", "x"),
        lambda: parse_number(True, "x"),
        lambda: parse_state("working"),
        lambda: parse_state(99),
        lambda: parse_time("2026-10-27T10:00:00", "x"),
        lambda: parse_time("9" * 100, "x"),
    ]
    for one in wrong:
        with pytest.raises(ProtocolError):
            one()


def test_a_query_has_the_names_of_the_fields() -> None:
    given = parse_query(b"contextId=c&pageSize=5&includeArtifacts=true&status=&other=1")
    found = convert_query(ListIn, given)
    assert (found.context_id, found.page_size, found.include_artifacts, found.status) == ("c", "5", True, None)


def test_modes() -> None:
    assert (plain_mode("Text/Plain; charset=utf-8"), plain_mode("text")) == ("text/plain", "text/plain")
    assert is_accepted("image/png", ["image/*"])
    assert not is_accepted("image/png", ["text/plain"])
    assert is_accepted("image/png", [])
    assert overlap(["image/png"], ["image/*"])
    assert not overlap(["model/x"], ["image/*"])
    assert is_mode("*/*")
    assert not is_mode("nonsense")


def test_extensions_are_split() -> None:
    headers = {b"a2a-extensions": b"urn:a, urn:b,,"}
    assert parse_extensions(headers, ()) == ["urn:a", "urn:b"]
    with pytest.raises(ProtocolError):
        parse_extensions(headers, ("urn:c",))
