"""The answers that a question takes, and how it is put."""

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, Literal

import pytest

from frontdesk.chat.i18n.wording import ENGLISH_WORDING
from frontdesk.framework.workflow_requests import (
    describe_wanted,
    extract_choices,
    find_choice,
    question_text,
    short_name,
)


class Colour(Enum):
    """Two colours."""

    RED = "red"
    BLUE = "sky blue"


class Level(IntEnum):
    """Two numbers."""

    LOW = 1
    HIGH = 2


Named = Enum("Named", {"2": "first", "1": "second"})
"""Names of which nobody has heard."""


class Odd(Enum):
    """A value that no button can show."""

    PAIR = (1, 2)


@dataclass
class Offer:
    """A question with a text of its own."""

    prompt: str
    price: int = 3


@pytest.mark.parametrize(
    ("wanted", "choices", "words"),
    [
        (bool, [("Yes", True), ("No", False)], "yes or no"),
        (Colour, [("red", "red"), ("sky blue", "sky blue")], "one of: red, sky blue"),
        (Level, [("1", 1), ("2", 2)], "one of: 1, 2"),
        (Literal["s", 7], [("s", "s"), ("7", 7)], "one of: s, 7"),
        (Odd, [], "Odd, as JSON"),
        (str, [], ""),
        (Any, [], ""),
        (int, [], "a number"),
        (float, [], "a number"),
        (Offer, [], "Offer, as JSON"),
        (list[int], [], "list[int], as JSON"),
    ],
)
def test_a_type_has_choices_and_words(wanted: Any, choices: list[tuple[str, Any]], words: str) -> None:
    found = extract_choices(wanted)
    assert [(choice.label, choice.value) for choice in found] == choices
    phrase = describe_wanted(wanted, [choice.label for choice in found])
    assert ("" if phrase is None else ENGLISH_WORDING.say_phrase(phrase)) == words


@pytest.mark.parametrize(
    ("wanted", "text", "value"),
    [
        (bool, " YES\n", True),
        (bool, "nein", False),
        (bool, "perhaps", None),
        (bool, "", None),
        (Colour, "blue", "sky blue"),
        (Colour, "Sky Blue", "sky blue"),
        (Colour, "sky", None),
        (Level, "high", 2),
        (Level, "1", 1),
        (Level, "1.", None),
        (Colour, "2", "sky blue"),
        (Colour, " 1.", "red"),
        (Colour, "3", None),
        (Colour, "0", None),
        (bool, "1", None),
        (Named, "1", "first"),
        (Literal["-1", "red"], "2", None),
        (Literal["1st", "2nd"], "1", None),
        (str, "yes", None),
    ],
)
def test_a_choice_is_what_a_person_writes(wanted: Any, text: str, value: Any) -> None:
    choice = find_choice(extract_choices(wanted), text)
    assert (None if choice is None else choice.value) == value


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("How many?", "How many?"),
        ({"question": "How many?", "room": 1}, "How many?"),
        ({"question": " ", "text": "Which?"}, "Which?"),
        ({"room": 1}, '{"room":1}'),
        (Offer("Do you take it?"), "Do you take it?"),
        (7, "7"),
    ],
)
def test_a_question_is_its_text(data: Any, text: str) -> None:
    assert question_text(data) == text


def test_the_short_name_of_a_question_fits_on_a_button() -> None:
    assert len(f"choose:{short_name('x' * 500)}:7".encode()) <= 64
    assert short_name("a") != short_name("b")
