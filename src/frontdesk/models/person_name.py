"""`PersonName`: the name of a person as displayed to others."""

from collections.abc import Mapping
from typing import Any

from frontdesk.models.base import StoredRecord

OPERATOR_CHANNEL = "operator"
"""The channel of the identity with which an operator decides."""


class PersonName(StoredRecord, frozen=True, kw_only=True):
    """The display name of a person or a role. No decision may depend on it."""

    name: str = ""
    """The name: of one line, bounded, with invisible characters escaped; empty if none is known."""
    native_id: str = ""
    """The id of the account; empty for a role."""
    channel: str = ""
    verified: bool = False
    """Whether a claim that a link has verified contains the name. Otherwise the person may have chosen it."""

    @property
    def is_operator(self) -> bool:
        """Return True for the identity with which an operator decides."""
        return self.channel == OPERATOR_CHANNEL and self.native_id.startswith(f"{OPERATOR_CHANNEL}:")


def get_given_name(attributes: Mapping[str, Any]) -> str:
    """Return the unmodified name from the platform or the person, or an empty string."""
    name = attributes.get("name")
    return name if isinstance(name, str) else ""
