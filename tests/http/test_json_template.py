"""What is filled in stands where it was marked, and nothing else changes."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.http.sse import JsonTemplate, mark

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(before=words, first=words, second=words)
def test_what_is_filled_in_stands_where_it_was_marked(before: str, first: str, second: str) -> None:
    drawn = msgspec.json.encode({"same": before, "a": mark("a"), "more": ["100%", mark("b")]})
    filled = JsonTemplate(drawn, ("a", "b")).fill(msgspec.json.encode(first), msgspec.json.encode(second))
    assert json.loads(filled) == {"same": before, "a": first, "more": ["100%", second]}


@pytest.mark.parametrize("names", [("a",), ("b", "a"), ("a", "b", "c"), ("a", "a", "b")])
def test_marks_that_are_not_those_that_are_named_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="placeholder"):
        JsonTemplate(msgspec.json.encode([mark("a"), mark("b")]), names)
