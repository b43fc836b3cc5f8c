"""Validates ids and names from outside, and computes digests of them."""

import hashlib
import re
from collections.abc import Iterable

from frontdesk.errors import InvalidRequestError

MAX_ID_LENGTH = 256
_ID = re.compile(r"[A-Za-z0-9_:-][A-Za-z0-9_.:-]*")


def is_plain_id(value: str) -> bool:
    """Return True if an external id is safe in a header, a log line and a path."""
    return len(value) <= MAX_ID_LENGTH and _ID.fullmatch(value) is not None


def plain_id(value: str, param: str) -> str:
    if not is_plain_id(value):
        raise InvalidRequestError(
            f"{param} must be 1 to {MAX_ID_LENGTH} letters, digits or any of . _ : -, and not begin with a dot.",
            param=param,
        )
    return value


def is_named(name: str, names: Iterable[str]) -> bool:
    """Return True if `names` contains a name, ignoring case. A model may write `Delete` for `delete`."""
    folded = name.casefold()
    return any(other.casefold() == folded for other in names)


def digest(text: str) -> str:
    """Return the SHA-256 of a text as hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
