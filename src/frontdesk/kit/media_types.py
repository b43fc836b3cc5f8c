"""Media types that come from outside."""

import re

ANY_TYPE = "application/octet-stream"
"""The media type of a file of which nothing is known."""
_NAME = r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}"
_MEDIA_TYPE = re.compile(f"{_NAME}/{_NAME}")


def is_media_type(text: str) -> bool:
    """Tell whether a text is a media type without parameters."""
    return _MEDIA_TYPE.fullmatch(text) is not None


def bare_media_type(given: str) -> str:
    """Return what a header says without its parameters, in small letters; `ANY_TYPE` if it is no media type."""
    kind = given.partition(";")[0].strip().lower()
    return kind if is_media_type(kind) else ANY_TYPE
