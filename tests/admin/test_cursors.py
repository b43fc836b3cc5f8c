"""Cursors of operators' lists: what was written is read, and nothing else is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.admin.queries import read_cursor, write_cursor
from frontdesk.errors import InvalidRequestError
from frontdesk.models.operations import PLACES, LedgerKind

_values: dict[type, st.SearchStrategy[Any]] = {
    float: st.floats(allow_nan=False, allow_infinity=False),
    int: st.integers(min_value=-(2**63) + 1, max_value=2**63 - 1),
    str: st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=50),
}
places = st.sampled_from(sorted(PLACES)).flatmap(
    lambda kind: st.tuples(st.just(kind), st.tuples(*(_values[each] for each in PLACES[kind])))
)


@given(places)
def test_a_place_is_read_as_it_was_written(place: tuple[LedgerKind, tuple[Any, ...]]) -> None:
    kind, values = place
    cursor = write_cursor(kind, values)
    assert read_cursor(kind, cursor) == values
    assert cursor.isascii()
    assert not cursor.startswith("-")
    for other in PLACES:
        if other != kind:
            with pytest.raises(InvalidRequestError):
                read_cursor(other, cursor)


@given(st.sampled_from(sorted(PLACES)), st.one_of(st.text(), st.binary().map(lambda data: data.decode("latin-1"))))
def test_any_other_text_is_refused_or_a_place(kind: LedgerKind, text: str) -> None:
    try:
        values = read_cursor(kind, text)
    except InvalidRequestError:
        return
    assert [type(value) for value in values] == list(PLACES[kind])


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("audit", ()),
        ("audit", (1, 2)),
        ("audit", (True,)),
        ("audit", (2**70,)),
        ("audit", ("1",)),
        ("audit", (1.5,)),
        ("people", ("a", "nul\0")),
        ("people", ("a", None)),
        ("sessions", ("a", "b")),
    ],
)
def test_a_place_of_other_types_is_refused(kind: LedgerKind, place: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidRequestError):
        read_cursor(kind, write_cursor(kind, place))
