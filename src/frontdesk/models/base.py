"""The base classes of frozen values and of stored records."""

from dataclasses import Field, make_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec

UNKNOWN = "unknown_fields"
"""The field of every noun that is not written to records."""


class _OfDataclass:
    """A lazily created attribute that `dataclasses.replace`, `fields` and `asdict` look for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, value: object, kind: type) -> Any:
        return getattr(_twin(kind), self._name)


@cache
def _twin(kind: Any) -> type:
    return make_dataclass(kind.__name__, kind.__struct_fields__, repr=False, eq=False, kw_only=True)


class FrozenStruct(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A frozen value, compared by its fields.

    It cannot contain itself, so the garbage collector need not track it. With thousands of sessions in memory, this
    saves much of the time of a request.
    """

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

        def replace(self, **changes: Any) -> Self:
            """Return a copy with some fields changed."""
            ...

    else:
        __dataclass_fields__ = _OfDataclass("__dataclass_fields__")
        __dataclass_params__ = _OfDataclass("__dataclass_params__")
        # A method of our own that hands its arguments on would take five times as long.
        replace = msgspec.Struct.__replace__


class StoredRecord(
    FrozenStruct,
    frozen=True,
    kw_only=True,
    gc=False,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag=True,
    tag_field="$",
):
    """A value that can be stored. It has a JSON form in `serialization.codec`."""

    unknown_fields: str | None = None
    """The fields that a newer version gave it, as JSON; they are written again as they were read."""
