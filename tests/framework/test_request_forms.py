"""Forms from the types of answers: which fields they have, and which values they take."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from agent_framework import Message
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from frontdesk.framework.request_forms import MAX_FIELDS, FormField, build_fields, build_form, check, in_words
from tests.examples import examples


class Meal(Enum):
    KIPPERS = "kippers"
    EGGS = "eggs"


class Address(BaseModel):
    street: str
    number: int | None = None


class Stay(BaseModel):
    name: str = Field(title="Your name", min_length=1, max_length=20)
    nights: int = Field(ge=1, le=30, description="How many nights.")
    room: Literal["attic", "garden"]
    sea_view: bool = False
    meals: list[Meal] = []
    address: Address
    price: Annotated[float | None, Field()]


STAY: dict[str, Any] = {
    "name": "Ada",
    "nights": 2,
    "room": "attic",
    "address": {"street": "High Street"},
    "price": None,
}


def test_each_kind_of_value_has_its_field() -> None:
    fields = build_form(Stay)
    assert [(field.name, field.kind, field.label, field.required) for field in fields] == [
        ("name", "text", "Your name", True),
        ("nights", "integer", "Nights", True),
        ("room", "choice", "Room", True),
        ("sea_view", "boolean", "Sea View", False),
        ("meals", "choices", "Meals", False),
        ("address", "group", "Address", True),
        ("price", "number", "Price", False),
    ]
    assert (fields[1].minimum, fields[1].maximum, fields[1].help) == (1, 30, "How many nights.")
    assert [field.choices for field in fields[2:5]] == [("attic", "garden"), (), ("kippers", "eggs")]
    assert [(field.name, field.required) for field in fields[5].fields] == [("street", True), ("number", False)]
    assert fields[6].nullable
    assert msgspec.convert(msgspec.to_builtins(fields), tuple[FormField, ...]) == fields


def test_a_dataclass_has_a_form_too() -> None:
    @dataclass
    class Choice:
        accepted: bool
        nights: int = 1

    assert [(field.name, field.kind, field.default) for field in build_form(Choice)] == [
        ("accepted", "boolean", None),
        ("nights", "integer", 1),
    ]


class Deep(BaseModel):
    class Inner(BaseModel):
        stay: Stay

    inner: Inner


class Odd(BaseModel):
    either: int | str


class Patterned(BaseModel):
    code: str = Field(pattern="a+")


class Listed(BaseModel):
    names: list[str]


@pytest.mark.parametrize(
    "wanted",
    [str, int, bool, Any, dict, list[str], Meal, Message, list[Message], Deep, Odd, Patterned, Listed, "Stay", None],
)
def test_for_what_a_form_can_not_ask_there_is_none(wanted: Any) -> None:
    assert build_form(wanted) == ()


def test_a_form_is_bounded() -> None:
    properties = {f"field {number}": {"type": "string"} for number in range(MAX_FIELDS + 1)}
    assert build_fields({"type": "object", "properties": properties}) == ()
    assert build_fields({"type": "object", "properties": {"one": {"type": "string", "title": "x" * 9_000}}}) == ()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, None),
        ({"price": 1}, None),
        ({"sea_view": True, "meals": ["eggs", "kippers"]}, None),
        ({"name": " "}, "Your name is missing."),
        ({"name": 7}, "Your name must be a text."),
        ({"name": "x" * 21}, "Your name is too long."),
        ({"name": None}, "Your name is missing."),
        ({"nights": 0}, "Nights is too small."),
        ({"nights": 31}, "Nights is too large."),
        ({"nights": 1.5}, "Nights must be a whole number."),
        ({"nights": True}, "Nights must be a whole number."),
        ({"room": "cellar"}, "Room must be one of its choices."),
        ({"sea_view": "yes"}, "Sea View must be yes or no."),
        ({"meals": ["toast"]}, "Meals must be one of its choices."),
        ({"meals": "eggs"}, "Meals must be one of its choices."),
        ({"address": {}}, "Address: Street is missing."),
        ({"address": "here"}, "Address is no field of the form."),
        ({"price": "x"}, "Price must be a number."),
        ({"extra": 1}, "extra is no field of the form."),
    ],
)
def test_values_are_checked(change: dict[str, Any], problem: str | None) -> None:
    found = [found.sentence for found in check(build_form(Stay), {**STAY, **change})]
    assert found == ([] if problem is None else [problem])


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 40), st.floats(0, 1), st.sampled_from(["", "Ada", "attic", "eggs"])
)
GIVEN = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("name", "nights", "room", "sea_view", "price"), VALUES),
        "meals": st.lists(st.sampled_from(["eggs", "toast"]), max_size=2),
        "address": st.fixed_dictionaries({}, optional={"street": VALUES, "number": VALUES}),
    },
)


@examples(100)
@given(GIVEN)
def test_what_the_form_takes_the_type_takes(values: dict[str, Any]) -> None:
    values = {**STAY, **values}
    if check(build_form(Stay), values):
        return
    try:
        TypeAdapter(Stay).validate_json(msgspec.json.encode(values), strict=True)
    except ValidationError as error:
        raise AssertionError(values) from error


def test_the_values_in_words_have_a_line_for_each_field() -> None:
    values = {**STAY, "sea_view": True, "meals": ["eggs", "kippers"]}
    assert in_words(build_form(Stay), values).splitlines() == [
        "Your name: Ada",
        "Nights: 2",
        "Room: attic",
        "Sea View: ✓",
        "Meals: eggs, kippers",
        "Street: High Street",
    ]
