"""Rows of every owner, as operators list them."""

from collections.abc import Mapping
from typing import Any, Literal

from frontdesk.data.noun import Value

LedgerKind = Literal["sessions", "runs", "deliveries", "approvals", "people", "links", "inbox", "audit"]
OPEN = 9e99
"""The time of the end of a run that has not ended, for its place in the list."""
PLACES: Mapping[LedgerKind, tuple[type, ...]] = {
    "sessions": (float, str),
    "runs": (float, str, str),
    "deliveries": (int, str, int, str),
    "approvals": (int,),
    "people": (str, str),
    "links": (str, str),
    "inbox": (int,),
    "audit": (int,),
}
"""The types of the values that are the place of a row in the list of its kind."""
ASCENDING: frozenset[LedgerKind] = frozenset({"people", "links"})
"""The kinds that are listed by name; the others are listed with the newest first."""
INDEXED: Mapping[LedgerKind, tuple[tuple[str, ...], ...]] = {
    "sessions": (("id",), ("person",)),
    "runs": (("id",), ("person",), ("status",)),
    "deliveries": (("id",), ("run",), ("person",), ("status",), ("channel",)),
    "approvals": (("id",), ("person",), ("status",)),
    "people": (("channel", "id"), ("person",), ("channel",)),
    "links": (("channel", "id"), ("person",), ("channel",)),
    "inbox": (("id",), ("status",), ("channel",)),
    "audit": (("id",), ("subject",), ("person",), ("by",)),
}
"""The filters by which a store finds rows directly, those that leave the fewest rows first."""
COMMON: Mapping[LedgerKind, str] = {"runs": "completed", "inbox": "done"}
"""The status that most rows of a kind have, and that no index is worth."""


class LedgerRow(Value, frozen=True, kw_only=True):
    """A row as it is stored."""

    place: tuple[Any, ...]
    """Its place in the list of its kind."""
    columns: Mapping[str, Any]
    """The columns that are stored beside the record."""
    record: Mapping[str, Any] | None = None
    """The record as a JSON tree; `None` if there is none, or if this version can't read it."""
