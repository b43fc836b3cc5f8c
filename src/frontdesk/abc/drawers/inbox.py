"""Events that platforms have sent."""

from collections.abc import Sequence
from typing import Protocol

from frontdesk.data.delivery import InboxItem, WaitingEvent


class Inbox(Protocol):
    """Events that were accepted and are not finished."""

    async def next(self, channel: str, conversation_id: str) -> InboxItem | None:
        """Return the oldest unfinished event of a conversation."""
        ...

    async def claim(self, channel: str, conversation_id: str, holder: str) -> InboxItem | None:
        """Take up the oldest unfinished event of a conversation for `lease_seconds`, unless another works on it.

        One that only a newer version can read stays free, and is an `UnreadableRecordError`: those behind it wait.
        """
        ...

    async def renew(self, items: Sequence[InboxItem]) -> Sequence[InboxItem]:
        """Keep events for another `lease_seconds`; return those that are still the holder's."""
        ...

    async def waiting(self, holder: str, *, after: int = 0, limit: int = 500) -> Sequence[WaitingEvent]:
        """List unfinished events that a holder could take up, as they came; `after` is the last number seen."""
        ...

    async def failed(self, *, before: int | None = None, limit: int = 100) -> Sequence[tuple[InboxItem, str]]:
        """List events that could not be answered, and why, newest first; `before` is the last number seen."""
        ...


class InboxWrites(Protocol):
    """Write events."""

    def accept(self, item: InboxItem) -> None:
        """Keep an event; one that is known already changes nothing."""
        ...

    def finish(self, item: InboxItem, *, error: str | None = None) -> None:
        """Mark an event as done, and why it was not answered; it stays known, so that a retry is not run again.

        Here and below, one that is done, or that another took up, fails the transaction with `LostEventError`.
        """
        ...

    def give_back(self, item: InboxItem, *, tried: bool = False) -> None:
        """Leave an event to whoever takes it up next, as if it had not been tried unless it was."""
        ...
