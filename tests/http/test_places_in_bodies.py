"""What is wrong with a body is told with the name of the field, whatever the client has called it."""

import msgspec
import pytest

from frontdesk.channels.invocations.parse import decode
from frontdesk.errors import InvalidRequestError
from frontdesk.http.bodies import decode_as, locate
from tests.linear.test_loops import lines_of


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    number: int = 0


class Body(msgspec.Struct, forbid_unknown_fields=True):
    inner: Inner | None = None
    numbers: dict[str, int] = {}


@pytest.mark.parametrize(
    ("raw", "text", "param"),
    [
        (b'{"inner": {"number": "a"}}', "Expected `int`, got `str`.", "inner.number"),
        (b'{"inner": {"a": 1}}', "Object contains unknown field `a`.", "inner"),
        (b'{"numbers": {"a": "b"}}', "Expected `int`, got `str`.", "numbers.a"),
        (b'{"inner": {" - at `$.numbers`": 1}}', "Object contains unknown field ` - at `$.numbers``.", "inner"),
        (b"[]", "Expected `object`, got `array`.", None),
    ],
)
def test_the_field_is_named(raw: bytes, text: str, param: str | None) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        decode_as(msgspec.json.Decoder(Body), raw)
    assert (caught.value.message, caught.value.param) == (text, param)


def test_the_place_of_a_field_was_searched_from_each_of_its_letters() -> None:
    # 32 KB of a field's name took 4.8 seconds. No pattern is left there, and no loop.
    name = " - at `$" * 4_000
    for call in (
        lambda: locate(msgspec.ValidationError(f"Object contains unknown field `{name}` - at `$.a`")),
        lambda: decode(msgspec.json.encode({"message": "a", "options": {name: 1}, name: 1})),
    ):
        assert lines_of(call) < 100
