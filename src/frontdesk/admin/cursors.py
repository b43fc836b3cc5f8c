"""Cursors of operators' lists. Pure."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

import msgspec

from frontdesk.data.ledger import PLACES, LedgerKind
from frontdesk.errors import InvalidRequestError

_LONGEST = 4096
_LARGEST = 2**63


def write_cursor(kind: LedgerKind, place: Sequence[Any]) -> str:
    """Return the place of a row as a text for the next request."""
    return urlsafe_b64encode(msgspec.json.encode([kind, *place])).decode().rstrip("=")


def read_cursor(kind: LedgerKind, cursor: str) -> tuple[Any, ...]:
    """Return the place that a text stands for; refuse one that is not of this kind."""
    wrong = InvalidRequestError(f"This is no cursor of a list of {kind}.", param="after")
    if len(cursor) > _LONGEST or not cursor.isascii():
        raise wrong
    try:
        named, *place = msgspec.json.decode(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), type=list[Any])
    except ValueError:
        raise wrong from None
    kinds = PLACES[kind]
    if named != kind or len(place) != len(kinds):
        raise wrong
    values = tuple(_checked(value, wanted) for value, wanted in zip(place, kinds, strict=True))
    if None in values:
        raise wrong
    return values


def _checked(value: Any, wanted: type) -> Any:
    if isinstance(value, str):
        # Postgres can't compare with a text that holds a NUL.
        return None if wanted is not str or "\0" in value else value
    if type(value) is float:
        return value if wanted is float else None
    if type(value) is not int or wanted is str or abs(value) >= _LARGEST:
        return None
    return wanted(value)
