"""What all values that flow through the house have in common, and nouns besides."""

from typing import TYPE_CHECKING, Any, Self

import msgspec

UNKNOWN = "unknown_fields"
"""The field of every noun that is in no record."""


class Value(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A value that flows through the house: frozen, and compared by its fields.

    A frozen value can't come to hold itself, so the garbage collector need not look at it; with thousands of sessions
    in memory that is a good part of a request.
    """

    if TYPE_CHECKING:

        def replace(self, **changes: Any) -> Self:
            """A copy with some fields changed."""
            ...

    else:
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
