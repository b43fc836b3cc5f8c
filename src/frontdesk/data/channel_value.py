"""Values that a channel keeps under keys of its own; none of them shows in a `repr`."""

from typing import Any

from frontdesk.data.noun import Value


class ValuePlace(Value, frozen=True, kw_only=True):
    """The place of a value: a storage of a channel, and a key."""

    channel: str
    storage: str
    key: str


class SealedValue(Value, frozen=True, kw_only=True):
    """A value as the store has it."""

    version: str
    """Another at each write, so that a value which was deleted and set again is not taken for the one before."""
    key_id: str
    """The key that it is sealed with; empty if it is not sealed."""
    data: bytes
    expires_at: float | None = None

    def __repr__(self) -> str:
        return f"SealedValue(version={self.version!r}, key_id={self.key_id!r})"


class StoredValue(Value, frozen=True, kw_only=True):
    """A value as its channel has it."""

    value: Any
    version: str
    """To be given to `compare_and_set`."""

    def __repr__(self) -> str:
        return f"StoredValue(version={self.version!r})"
