"""A token that a platform gives with an event, and takes back as the right to answer it for a while."""

from frontdesk.data.noun import Noun


class SealedToken(Noun, frozen=True, kw_only=True):
    """An interaction token or a reply URL, encrypted; it is opened by the channel that uses it, until it expires."""

    event_id: str
    """The event that it came with; it can't be opened for another."""
    key_id: str
    """The key that it is sealed with."""
    data: bytes
    expires_at: float

    def __repr__(self) -> str:
        return f"SealedToken(event_id={self.event_id!r}, key_id={self.key_id!r}, expires_at={self.expires_at!r})"
