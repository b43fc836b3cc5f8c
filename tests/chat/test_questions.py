"""Questions of a workflow where there are no buttons."""

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.chat.i18n.texts import Texts
from frontdesk.chat.i18n.wording import ENGLISH_WORDING, Wording
from frontdesk.chat.questions import question_in_words
from frontdesk.framework.workflow_requests import extract_choices, find_choice


@pytest.mark.parametrize(
    ("wanted", "labels", "text"),
    [
        (str, [], "Which?"),
        (int, [], "Which?\n\nPlease answer with a number."),
        (bool, ["Yes", "No"], "Which?\n\nPlease answer with yes or no."),
        (
            "Colour",
            ["red", "sky blue"],
            "Which?\n\n1. red\n2. sky blue\n\nPlease answer with one of these, or its number.",
        ),
        # Otherwise nobody would know what `1` means.
        ("Level", ["2", "1"], "Which?\n\nPlease answer with one of: 2, 1."),
        ("Level", ["low", "-1"], "Which?\n\nPlease answer with one of: low, -1."),
    ],
)
def test_choices_are_listed_with_numbers(wanted: Any, labels: list[str], text: str) -> None:
    assert question_in_words("Which?", wanted, labels, ENGLISH_WORDING) == text


def test_they_are_listed_in_other_languages() -> None:
    text = question_in_words("Welche?", "Farbe", ["rot", "blau"], Wording(Texts(), "de"))
    assert text == "Welche?\n\n1. rot\n2. blau\n\nBitte antworte mit: eins davon, oder seine Nummer."


@given(st.lists(st.text("ab1-. ", min_size=1, max_size=4), min_size=1, max_size=12, unique_by=str.strip))
def test_each_line_of_the_list_answers_with_its_choice(labels: list[str]) -> None:
    text = question_in_words("Which?", str, labels, ENGLISH_WORDING)
    if "\n\n1. " not in text:
        return
    choices = extract_choices(Literal[*labels])  # pyright: ignore[reportInvalidTypeArguments]
    for number, label in enumerate(labels, 1):
        assert f"\n{number}. {label}\n" in text
        for answer in (str(number), f"{number}."):
            choice = find_choice(choices, answer)
            assert choice is not None
            assert choice.value == label
