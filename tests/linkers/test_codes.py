"""Codes that people read and type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.linkers.one_time_code import ALPHABET, format_code, read, spell

numbers = st.integers(0, 2**64)
lengths = st.integers(8, 40)


@given(numbers, lengths)
def test_what_is_shown_is_read(number: int, length: int) -> None:
    code = spell(number, length)
    assert len(code) == length
    assert read(format_code(code), length) == code


@given(numbers, st.data())
def test_case_dashes_and_letters_that_look_alike_do_not_matter(number: int, data: st.DataObject) -> None:
    code = spell(number, 8)
    typed = ""
    for letter in code:
        alike = {"0": "0oO", "1": "1iIlL"}.get(letter, letter + letter.lower())
        typed += data.draw(st.sampled_from(alike)) + data.draw(st.sampled_from(["", "-", " ", "–", "_"]))
    assert read(typed, 8) == code


@given(st.text(max_size=200))
def test_anything_that_is_typed_is_a_code_or_none(typed: str) -> None:
    found = read(typed, 8)
    assert found is None or (len(found) == 8 and set(found) <= set(ALPHABET))


@given(numbers, numbers)
def test_two_numbers_are_two_codes(one: int, two: int) -> None:
    bits = 2**40
    assert (spell(one, 8) == spell(two, 8)) is (one % bits == two % bits)


@pytest.mark.parametrize(
    "typed", ["", "confirm", "reject", "ABCD-EFG", "ABCD-EFGH-J", "ABCD-EFGU", "ABCD-EFG!", "x" * 10**6]
)
def test_what_is_no_code(typed: str) -> None:
    assert read(typed, 8) is None
