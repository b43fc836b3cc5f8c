"""What all nouns have in common."""

from typing import Any, Self

import msgspec


class Noun(msgspec.Struct, frozen=True, kw_only=True):
    """A value that flows through the house: frozen, compared by its fields, with a JSON form in `data.codec`."""

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)
