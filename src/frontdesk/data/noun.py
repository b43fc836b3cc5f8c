"""What all values that flow through the house have in common, and nouns besides."""

from dataclasses import Field, make_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec

UNKNOWN = "unknown_fields"
"""The field of every noun that is in no record."""


class _OfDataclass:
    """An attribute by which `dataclasses.replace`, `fields` and `asdict` know a class; made when one of them asks."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, value: object, kind: type) -> Any:
        return getattr(_twin(kind), self._name)


@cache
def _twin(kind: Any) -> type:
    """A dataclass with the same fields."""
    return make_dataclass(kind.__name__, kind.__struct_fields__, repr=False, eq=False, kw_only=True)


class Value(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A value that flows through the house: frozen, and compared by its fields.

    A frozen value can't come to hold itself, so the garbage collector need not look at it; with thousands of sessions
    in memory that is a good part of a request.
    """

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

        def replace(self, **changes: Any) -> Self:
            """A copy with some fields changed."""
            ...

    else:
        __dataclass_fields__ = _OfDataclass("__dataclass_fields__")
        __dataclass_params__ = _OfDataclass("__dataclass_params__")
        # A method of our own that hands its arguments on would take five times as long.
        replace = msgspec.Struct.__replace__


class Noun(
    Value,
    frozen=True,
    kw_only=True,
    gc=False,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag=True,
    tag_field="$",
):
    """A value that can be stored: it has a JSON form in `data.codec`."""

    unknown_fields: str | None = None
    """The fields that a newer version gave it, as JSON; they are written again as they were read."""
