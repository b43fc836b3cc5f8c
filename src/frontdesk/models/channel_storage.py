"""Values that channels store under their own keys. Their content is never part of a `repr`."""

from typing import Any

from frontdesk.models.base import FrozenStruct, StoredRecord


class ValueLocation(FrozenStruct, frozen=True, kw_only=True):
    """The location of a value: a storage of a channel, and a key."""

    channel: str
    storage: str
    key: str


class SealedValue(FrozenStruct, frozen=True, kw_only=True):
    """A value in its stored form."""

    version: str
    """Another at each write, so that a value which was deleted and set again is not taken for the one before."""
    key_id: str
    """The key that it is sealed with; empty if it is not sealed."""
    data: bytes
    expires_at: float | None = None

    def __repr__(self) -> str:
        return f"SealedValue(version={self.version!r}, key_id={self.key_id!r})"


class StoredValue(FrozenStruct, frozen=True, kw_only=True):
    """A value in the form that its channel uses."""

    value: Any
    version: str
    """To be given to `compare_and_set`."""

    def __repr__(self) -> str:
        return f"StoredValue(version={self.version!r})"


class Leadership(FrozenStruct, frozen=True, kw_only=True):
    """A held leadership. The next holder has a higher fence."""

    channel: str
    name: str
    holder: str
    """An id that stands for this one hold, and for no other of any process."""
    fence: int


class SealedToken(StoredRecord, frozen=True, kw_only=True):
    """An encrypted interaction token or reply URL. Only its channel decrypts it, until it expires."""

    event_id: str
    """The event that it came with; it can't be opened for another."""
    key_id: str
    """The key that it is sealed with."""
    data: bytes
    expires_at: float

    def __repr__(self) -> str:
        return f"SealedToken(event_id={self.event_id!r}, key_id={self.key_id!r}, expires_at={self.expires_at!r})"
