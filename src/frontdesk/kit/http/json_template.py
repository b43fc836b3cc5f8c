"""JSON that is nearly always the same.

Most answers differ from each other in a few values only. A template is rendered once, by the code that renders every
answer, with a mark in the place of each of them; filling in the marks costs a third of rendering it anew.
"""

from collections.abc import Sequence

import msgspec

_MARK = "\uf8ff"


def mark(name: str) -> str:
    """Return what stands for a value."""
    return f"{_MARK}{name}"


class JsonTemplate:
    """JSON with placeholders."""

    __slots__ = ("_form",)

    def __init__(self, drawn: bytes, names: Sequence[str]) -> None:
        """Make a template; `names` are the marks, in the order in which they come."""
        parts: list[bytes] = []
        for name in names:
            before, separator, drawn = drawn.partition(msgspec.json.encode(mark(name)))
            if not separator:
                raise ValueError(f"{name!r} is not marked, or comes earlier")
            parts.append(before)
        # Formatted as a whole: joined, the many pieces would cost as much again.
        self._form = b"%b".join(part.replace(b"%", b"%%") for part in (*parts, drawn))
        if _MARK.encode() in self._form:
            raise ValueError("something is marked that would never be filled in")

    def fill(self, *values: bytes) -> bytes:
        """Return the JSON with these values, in the order of the marks."""
        return self._form % values
