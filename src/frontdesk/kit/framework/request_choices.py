"""The questions of a workflow in a chat: how they are put, and the answers among which a person can choose. Pure."""

from collections.abc import Sequence
from enum import Enum
from types import NoneType
from typing import Any, Literal, NamedTuple, cast, get_args, get_origin

from frontdesk.errors import Phrase
from frontdesk.kit.framework.contents import as_json
from frontdesk.kit.names import digest

QUESTION, CHOICE = "question", "choice"
"""The attributes of a request that presses a button: the short name of the question, and the number of the choice."""
MOST_BUTTONS = 8
"""The number of choices up to which they are buttons."""
_SHORT = 16
_TEXTS = ("question", "prompt", "message", "text")
"""The fields of a request's data that hold the question itself."""
_YES, _NO = ("yes", "y", "true", "ja", "oui", "sí", "si"), ("no", "n", "false", "nein", "non")


class Choice(NamedTuple):
    """One of the answers that a question takes."""

    label: str
    value: Any
    """The answer as JSON."""
    words: tuple[str, ...]
    """The words that a person may write for it, in small letters."""


def short_name(call_id: str) -> str:
    """Return a name of a question that fits on a button."""
    return digest(call_id)[:_SHORT]


def choices_of(wanted: Any) -> list[Choice]:
    """Return the answers that a type has, if they are few: of `bool`, an enumeration or a `Literal`."""
    if wanted is bool:
        return [Choice("Yes", True, _YES), Choice("No", False, _NO)]
    values: list[tuple[str, Any]] = []
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        values = [(member.name, member.value) for member in wanted]
    elif get_origin(wanted) is Literal:
        values = [(str(value), value) for value in get_args(wanted)]
    if not all(isinstance(value, (str, int, float, bool, NoneType)) for _, value in values):
        return []
    labels = [str(value) for _, value in values]
    numbers = are_numbered(labels)
    return [
        Choice(label, value, (label.casefold(), *_other_words(name, number if numbers else None)))
        for number, (label, (name, value)) in enumerate(zip(labels, values, strict=True), 1)
    ]


def _other_words(name: str, number: int | None) -> tuple[str, ...]:
    if number is None:
        return (name.casefold(),)
    # A member may be named by a number too, but nobody has seen that name.
    names = () if name[:1].isdigit() else (name.casefold(),)
    return (*names, str(number), f"{number}.")


def are_numbered(labels: Sequence[str]) -> bool:
    """Tell whether choices can be named by their numbers in the list, because none looks like a number itself."""
    return not any(label.lstrip(" -+.")[:1].isdigit() for label in labels)


def chosen(choices: list[Choice], text: str) -> Choice | None:
    """Return the choice that a person has written."""
    word = text.strip().casefold()
    return next((choice for choice in choices if word in choice.words), None)


def wanted_phrase(wanted: Any, labels: Sequence[str]) -> Phrase | None:
    """Return what an answer has to be, with the labels of its choices; `None` if any text is one."""
    if wanted is bool:
        return Phrase("question.yes_or_no")
    if labels:
        return Phrase("question.one_of", {"choices": ", ".join(labels)})
    if wanted is str or wanted is Any:
        return None
    if wanted in (int, float):
        return Phrase("question.number")
    return Phrase("question.json", {"kind": wanted.__name__ if isinstance(wanted, type) else str(wanted)})


def question_text(data: Any) -> str:
    """Return the question of a request: its text, if it has one, else all of its data."""
    if isinstance(data, str):
        return data
    for name in _TEXTS:
        text = cast("dict[Any, Any]", data).get(name) if isinstance(data, dict) else getattr(data, name, None)
        if isinstance(text, str) and text.strip():
            return text
    return as_json(data)
