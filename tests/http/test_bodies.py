"""Bodies are measured before they are decoded: what has too many values, or lies too deep, is refused."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import json_size
from frontdesk.errors import InvalidRequestError
from frontdesk.http.bodies import MAX_DEPTH, check_shape, decode_as
from frontdesk.json_size import JsonShape, count_values
from frontdesk.serialization import json_tree
from frontdesk.serialization.codec import decode, encode
from tests.examples import examples

ANY = msgspec.json.Decoder()

texts = st.text(alphabet='ab[]{},:"\\\u00e9\n', max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


def _depth(value: Any) -> int:
    if not isinstance(value, (list, dict)):
        return 0
    parts = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, parts), default=0)


def _count(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_count, parts))


def _nest(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@given(value=values, indent=st.sampled_from([None, 1]), ascii_only=st.booleans(), chunk=st.integers(1, 9))
def test_every_value_is_counted_wherever_a_chunk_ends(
    value: Any, indent: int | None, ascii_only: bool, chunk: int
) -> None:
    raw = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_size, "_CHUNK", chunk)
        counted = count_values(raw)
        shape = JsonShape(raw, len(raw))
        depth = _depth(value)
        assert shape.is_deeper(depth) is False
        assert not depth or shape.is_deeper(depth - 1)
    actual = _count(value)
    assert actual <= counted <= 2 * actual


@given(value=values, levels=st.integers(0, MAX_DEPTH + 10))
@examples(50)
def test_what_passes_can_be_stored_and_read_again(value: Any, levels: int) -> None:
    for _ in range(levels):
        value = {"$": value} if levels % 2 else [value]
    raw = json.dumps(value).encode()
    if _depth(value) > MAX_DEPTH:
        with pytest.raises(InvalidRequestError, match="nested"):
            decode_as(ANY, raw)
    else:
        found = decode_as(ANY, raw)
        assert decode(encode(found)) == found


def test_a_record_has_room_around_the_deepest_body() -> None:
    """Records lay nouns and lists around a body: at most this many levels."""
    assert MAX_DEPTH + 30 <= json_tree.MAX_DEPTH


@pytest.mark.parametrize(
    ("raw", "code", "param"),
    [
        (b'{"a": %b}' % _nest(MAX_DEPTH), "nested_too_deep", "a[0]"),
        (b'{"a": 1, "b": [1, {"c": %b}]}' % _nest(MAX_DEPTH - 2), "nested_too_deep", "b[1]"),
        (b'{"a": {"b": %b}}' % _nest(MAX_DEPTH - 1), "nested_too_deep", "a"),
        (b'{"a": "%b", "b": [%b0]}' % (b"," * 300, b"0," * 200), "too_many_values", "b"),
        (b'{"%b": [%b0]}' % (b"k" * 999, b"0," * 200), "too_many_values", "k" * 64),
    ],
)
def test_the_error_names_the_field(raw: bytes, code: str, param: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        check_shape(raw, 100)
    assert (refused.value.status, refused.value.code, refused.value.param) == (400, code, param)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a": %b}' % _nest(MAX_DEPTH - 1),
        b'{"a": "%b"}' % (b"[{," * 1000),
        b'{"a": "\\\\", "b": "%b"}' % (b'\\"[,' * 1000),
        b'{"a": [%b0]}' % (b"0," * 90),
    ],
)
def test_brackets_and_commas_in_texts_are_no_values(raw: bytes) -> None:
    check_shape(raw, 100)
    ANY.decode(raw)


@pytest.mark.parametrize("raw", [b"[" * 500, b"]" * 500, b'{"a": ' + b"[" * 100_000, b"]" * 100 + b"[" * 100])
def test_brackets_without_a_partner_are_no_json(raw: bytes) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        decode_as(ANY, raw)
    assert refused.value.code in ("invalid_json", "nested_too_deep", "too_many_values")


def test_a_body_is_left_where_it_has_too_many_values() -> None:
    class Counted(bytes):
        cuts = 0

        def __getitem__(self, place: Any) -> Any:
            self.cuts += 1
            return super().__getitem__(place)

    raw = Counted(b"[" + b"[]," * 1_000_000 + b"0]")
    assert JsonShape(raw, 1_000).values > 1_000
    assert raw.cuts == 1
