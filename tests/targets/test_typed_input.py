"""What a workflow's first executor gets."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Optional, Union

import pytest
from agent_framework import Content, Message

from frontdesk.errors import InvalidRequestError
from frontdesk.targets.typed_input import fit, fit_answer, is_instance


@dataclass
class Order:
    number: int


ONE = [Message("user", ["one"])]
TWO = [Message("user", ["one"]), Message("user", ["two"])]
ORDER = Order(1)


@pytest.mark.parametrize(
    ("value", "messages", "types", "expected"),
    [
        # What fits goes through as it is.
        ("one", ONE, [str], "one"),
        (ORDER, [], [Order], ORDER),
        (ORDER, [], [str, Order], ORDER),
        ({"a": 1}, [], [dict], {"a": 1}),
        ({"a": 1}, [], [dict[str, int]], {"a": 1}),
        # An object of JSON becomes the first type that has its fields.
        ({"number": 1}, [], [Order], ORDER),
        ({"number": 1}, [], [date, Order], ORDER),
        ([1, 2], [], [list[int]], [1, 2]),
        (None, [], [Any], None),
        (7, [], [int | str], 7),
        # Without types nothing is known, and everything goes through.
        (ORDER, [], [], ORDER),
        ("one", ONE, [], "one"),
        # A text becomes what is wanted, and the other way round.
        ("one", ONE, [Message], ONE[0]),
        ("one", ONE, [list[Message]], ONE),
        ("one", ONE, [list], ONE),
        ("one", ONE, [Sequence[Message]], ONE),
        (ONE[0], ONE, [str], "one"),
        (ONE[0], ONE, [list[Message]], ONE),
        (TWO, TWO, [str], "one\ntwo"),
        (TWO, TWO, [list[Message]], TWO),
        (["one", "two"], TWO, [list[Message]], TWO),
        # A text is the first choice.
        (ONE[0], ONE, [str, list[Message]], "one"),
    ],
)
def test_the_input_is_fitted(value: Any, messages: list[Message], types: list[Any], expected: Any) -> None:
    assert fit(value, messages, types) == expected


@pytest.mark.parametrize(
    ("value", "messages", "types"),
    [
        ("one", ONE, [Order]),
        ("one", ONE, [int]),
        ({"name": 1}, [], [Order]),
        ({"a": "b"}, [], [dict[str, int]]),
        (["a"], [Message("user", ["a"])], [list[int]]),
        (None, [], [str]),
        (TWO, TWO, [Message]),
        (3.5, [], [int]),
    ],
)
def test_what_does_not_fit_is_refused_by_name(value: Any, messages: list[Message], types: list[Any]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        fit(value, messages, types)
    assert caught.value.param == "input"
    assert "hook" in caught.value.message
    assert getattr(types[0], "__name__", "") in caught.value.message


@pytest.mark.parametrize(
    ("value", "wanted", "expected"),
    [
        (1, int, True),
        (1, str, False),
        (None, type(None), True),
        (None, Optional[str], True),  # noqa: UP045
        ("a", Union[int, str], True),  # noqa: UP007
        (1.0, int | str, False),
        ([1, "a"], list[int | str], True),
        ([1, 2.0], list[int | str], False),
        ({"a": [1]}, dict[str, list[int]], True),
        ({"a": ["b"]}, dict[str, list[int]], False),
        ({1, 2}, set[int], True),
        ({"a"}, set[int], False),
        ({"a": 1}, Mapping[str, int], True),
        ({"a": "b"}, Mapping[str, int], False),
        (("a",), tuple[str], True),
        ([], list[int], True),
        ("text", list[str], False),
        ("text", Sequence[str], False),
        ("text", Sequence[Message], False),
        (b"text", Sequence[int], False),
        ([1], "list[int]", False),
    ],
)
def test_types_are_looked_into(value: Any, wanted: Any, expected: bool) -> None:
    assert is_instance(value, wanted) is expected


@pytest.mark.parametrize(
    ("value", "wanted", "expected"),
    [
        ("eggs", str, "eggs"),
        ("7", str, "7"),
        ("7", int, 7),
        (7, int, 7),
        (" 7 ", int, 7),
        ("true", bool, True),
        ("3", float, 3.0),
        ("null", type(None), None),
        ("null", str | None, "null"),
        ("[1, 2]", list[int], [1, 2]),
        ([1, 2], list[int], [1, 2]),
        ('{"a": 1}', dict[str, int], {"a": 1}),
        ('{"number": 7}', Order, Order(7)),
        ({"number": 7}, Order, Order(7)),
        ('[{"number": 7}]', list[Order], [Order(7)]),
        ("2024-05-01", date, date(2024, 5, 1)),
        ([Content.from_text("{"), Content.from_text('"number": 7}')], Order, Order(7)),
        ("anything", Any, "anything"),
        ({"any": "thing"}, object, {"any": "thing"}),
    ],
)
def test_an_answer_becomes_what_was_asked_for(value: Any, wanted: Any, expected: Any) -> None:
    assert fit_answer(value, wanted, "r") == expected


@pytest.mark.parametrize("wanted", [Message, list[Message], Content])
def test_a_text_can_be_a_message(wanted: Any) -> None:
    found = fit_answer("hello", wanted, "r")
    assert (found[0] if isinstance(found, list) else found).text == "hello"


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("seven", int),
        ("7.5", int),
        ("1", bool),
        (7, str),
        (None, str),
        ('{"number": "seven"}', Order),
        ('{"number": 7', Order),
        ({"nights": 7}, Order),
        ("[1, null]", list[int]),
        ("anything", threading.Event),
        ({"a": 1}, Message),
        ([Content.from_uri("data:image/png;base64,aGk=", media_type="image/png")], str),
        ("\ud800", int),
        ("[" * 100_000, list[int]),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_by_its_name(value: Any, wanted: Any) -> None:
    with pytest.raises(InvalidRequestError, match="The answer to r must be of type") as caught:
        fit_answer(value, wanted, "r")
    assert caught.value.param == "input"
