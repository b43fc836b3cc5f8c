"""Texts on which a person decides: nothing in them is invisible, changes the direction, or moves the rest away."""

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.display.escaping import (
    MAX_ANY_MARKS,
    MAX_BLANKS,
    MAX_LINE_BREAKS,
    ArgumentField,
    argument_fields,
    display_arguments,
    escape_line,
    escape_text,
)
from tests.invisible import KEPT_BLANKS, invisible_characters, invisible_in


def test_no_code_point_of_unicode_stays_invisible() -> None:
    hidden = {chr(code) for code in range(sys.maxunicode + 1) if invisible_in(chr(code))}
    assert set(invisible_characters()) <= hidden
    kept = [hex(ord(one)) for one in hidden if one not in "\n\t" and one in escape_text(f"a{one}b")]
    assert kept == []
    assert not any(one in escape_line(f"a{one}b") for one in "\n\t")


def test_what_can_be_seen_stays_as_it_is() -> None:
    visible = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if chr(code).isprintable() and not invisible_in(chr(code)) and unicodedata.category(chr(code)) != "Mn"
    ]
    assert len(visible) > 130_000
    assert [one for one in [*visible, *KEPT_BLANKS] if escape_text(f"a{one}b") != f"a{one}b"] == []
    text = "⚠\ufe0f Löschen\u202f? 👩🏽 こんにちは\u3000世界 שלום 1\u00a0000 e\u0301"
    assert escape_text(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("100\u202e001", "100\\u202e001"),
        ("a\U000e0041b", "a\\U000e0041b"),
        ("\x1b[2J", "\\u001b[2J"),
        ("half \ud800", "half \\ud800"),
        ("one\r\ntwo\rthree", "one\ntwo\\u000dthree"),
        ("a\ufe0f", "a\\ufe0f"),
        ("👩🏽\u200d💻", "👩🏽\\u200d💻"),
        ("⚠\ufe0f\ufe0f\u200dx", "⚠\ufe0f\\ufe0f\\u200dx"),
        ("e" + "\u0301" * 5, "e" + "\u0301" * 3 + "\\u0301" * 2),
        ("\u0e01" + "\u0e49" * 7, "\u0e01" + "\u0e49" * 5 + "\\u0e49" * 2),
        ("e" + "\u0301\u0e49" * 3, "e" + "\u0301\u0e49" * 2 + "\u0301\\u0e49"),
        ("a" + " " * (MAX_BLANKS + 1) + "b", f"a\\u0020*{MAX_BLANKS + 1}b"),
        ("a" + " \u00a0" * MAX_BLANKS + "b", "a" + "\\u0020\\u00a0" * MAX_BLANKS + "b"),
        ("a" + "\n" * 50 + "b", "a\\n*50b"),
        ("a" + "\n \n\t" * 2 + "\nb", "a\\n\\u0020\\n\\t\\n\\u0020\\n\\t\\nb"),
        ("a" + "\n" * MAX_LINE_BREAKS + " " * MAX_BLANKS + "b",) * 2,
    ],
)
def test_a_text_is_displayed(text: str, shown: str) -> None:
    assert escape_text(text) == shown


@given(st.text(), st.integers(0, 80), st.sampled_from(" \n\t\u00a0\u202e"))
def test_a_displayed_text_is_displayed_as_it_is(text: str, count: int, character: str) -> None:
    for escape in (escape_text, escape_line):
        shown = escape(text + character * count + text)
        assert escape(shown) == shown


@given(st.recursive(st.text() | st.integers() | st.booleans(), lambda some: st.dictionaries(st.text(), some)))
def test_displayed_arguments_hide_nothing(value: object) -> None:
    for given_text in (json.dumps({"a": value}), json.dumps({"a": value}, ensure_ascii=False)):
        fields = argument_fields(given_text)
        shown = [display_arguments(given_text), *(part for field in fields or () for part in (field.name, field.value))]
        assert [invisible_in(one) for one in shown] == [[]] * len(shown)


def test_the_fields_of_arguments_are_exact() -> None:
    text = '{"n": 12345678901234567890, "f": 1e400, "s": "\\u202e1\\n2", "o": {"x": [1.10, "\\u202e\u202e"]}, "": ""}'
    block = '{\n  "x": [\n    1.10,\n    "\\u202e\\u202e"\n  ]\n}'
    assert argument_fields(text) == [
        ArgumentField("n", "12345678901234567890"),
        ArgumentField("f", "1e400"),
        ArgumentField("s", "\\u202e1\n2"),
        ArgumentField("o", block, is_block=True),
        ArgumentField('""', '""'),
    ]


@pytest.mark.parametrize("text", ["", "[]", "null", '{"a": NaN}', '{"a"', '{"a": "\ud800"}', '{"a":' + "[" * 100_000])
def test_arguments_that_are_no_object_have_no_fields(text: str) -> None:
    assert argument_fields(text) is None
    assert not invisible_in(display_arguments(text))


def test_letters_from_right_to_left_reordered_the_amounts_beside_them() -> None:
    assert display_arguments('{"to":"אב","amounts":[1,2],"n":"גד"}').split("\n")[:5] == [
        "{",
        '  "to": "אב",',
        '  "amounts": [',
        "    1,",
        "    2",
    ]
    letters = [chr(code) for code in range(sys.maxunicode + 1)]
    strong = [one for one in letters if unicodedata.bidirectional(one) in ("R", "AL", "AN") and one.isprintable()]
    assert len(strong) > 2_000
    assert [one for one in strong if "\n" not in display_arguments(json.dumps([one, 1], ensure_ascii=False))] == []


def test_marks_of_other_scripts_covered_the_lines_around() -> None:
    marks = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in ("Me", "Mn")]
    assert len(marks) > 1_500
    shown = [mark for mark in marks if escape_text("a" + mark * 40).count(mark) > MAX_ANY_MARKS]
    assert shown == []


@pytest.mark.parametrize(
    "text",
    [
        "\u05d1\u05bc\u05b0\u05e8\u05b5\u05d0\u05e9\u05b4\u05c1\u0596\u05d9\u05ea",
        "\u0e17\u0e35\u0e48",
        "\u0939\u093f\u0928\u094d\u0926\u0940",
        "\u0f56\u0f66\u0f92\u0fb2\u0f74\u0f56\u0f66",
    ],
)
def test_words_of_scripts_with_many_marks_are_displayed_as_they_are(text: str) -> None:
    assert escape_text(text) == text
