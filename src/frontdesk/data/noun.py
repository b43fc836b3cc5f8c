"""What all nouns have in common."""

from typing import TYPE_CHECKING, Any, Self

import msgspec

UNKNOWN = "unknown_fields"
"""The field of every noun that is in no record."""


class Noun(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag=True,
    tag_field="$",
):
    """A value that flows through the house: frozen, compared by its fields, with a JSON form in `data.codec`.

    A frozen value can't come to hold itself, so the garbage collector need not look at it; with thousands of sessions
    in memory that is a good part of a request.
    """

    unknown_fields: str | None = None
    """The fields that a newer version gave it, as JSON; they are written again as they were read."""

    if TYPE_CHECKING:

        def replace(self, **changes: Any) -> Self:
            """A copy with some fields changed."""
            ...

    else:
        # A method of our own that hands its arguments on would take five times as long.
        replace = msgspec.Struct.__replace__
