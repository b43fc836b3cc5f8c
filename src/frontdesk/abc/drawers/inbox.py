"""Events that platforms have sent."""

from collections.abc import Sequence
from typing import Protocol

from frontdesk.data.delivery import Cancelled, EventKind, InboxItem, KnownEvent, WaitingEvent


class Inbox(Protocol):
    """Events that were accepted and are not finished."""

    async def next(self, channel: str, conversation_id: str, *, kind: EventKind = "turn") -> InboxItem | None:
        """Return the oldest unfinished event of a kind in a conversation."""
        ...

    async def claim(
        self, channel: str, conversation_id: str, holder: str, *, kind: EventKind = "turn"
    ) -> InboxItem | None:
        """Take up the oldest unfinished event of a kind for `lease_seconds`, unless another works on it.

        One that only a newer version can read stays free, and is an `UnreadableRecordError`: those behind it wait.
        """
        ...

    async def claim_bundle(
        self,
        channel: str,
        conversation_id: str,
        holder: str,
        *,
        now: float,
        longest: float,
        limit: int,
        albums_only: bool = False,
    ) -> InboxItem | None:
        """Take up the oldest turn of a conversation if it is due, with the messages of its sender that follow it.

        One is due at its `not_before` or its `due_by`, or if it would wait for more than `longest` seconds, by a clock
        that was set back. The messages of an album that wait (`waits_for_album`) are taken up together, whatever came
        between them, and with `albums_only` no others. At most `limit` are taken up; the first has the others as its
        `bundle`. Whatever is done with it from then on, by `renew`, `finish` or `give_back`, is done with all of them.
        """
        ...

    async def renew(self, items: Sequence[InboxItem]) -> Sequence[InboxItem]:
        """Keep events for another `lease_seconds`; return those that are still the holder's, cancelled or not."""
        ...

    async def find(self, channel: str, event_id: str) -> KnownEvent | None:
        """Return how far an event is; `None` if it was not accepted, or so long ago that it is forgotten."""
        ...

    async def waiting(
        self, holder: str, *, kind: EventKind = "turn", after: int = 0, limit: int = 500
    ) -> Sequence[WaitingEvent]:
        """List unfinished events that a holder could take up, as they came; `after` is the last number seen."""
        ...

    async def count_earlier(self, item: InboxItem, *, anyone: bool = False) -> Cancelled:
        """Count the turns that `cancel_earlier` would cancel at this moment."""
        ...

    async def count_waiting(self, item: InboxItem) -> int:
        """Count the unfinished turns of an event's sender on its channel, in all conversations, without the event."""
        ...

    async def outside_album(self, item: InboxItem) -> Sequence[str]:
        """List the ids of the unfinished messages of a sender in a conversation that are not of the event's album."""
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

        Here and below, one that is done, or that another took up, fails the transaction with `LostEventError`; so does
        one that was cancelled, unless it is finished as `cancelled`. If its sender waits on the wire of another
        process (`reply_by`), that process is notified of its run.
        """
        ...

    def give_back(self, item: InboxItem, *, tried: bool = False) -> None:
        """Leave an event to whoever takes it up next, as if it had not been tried unless it was."""
        ...

    def interrupt_earlier(self, item: InboxItem, *, only: Sequence[str] | None = None) -> None:
        """Mark the messages of the same sender that came before an accepted event in its conversation as cancelled.

        Those that wait are marked too, and are not finished: whoever takes one up keeps its question. `only` has the
        ids of those that may be marked, if not all may.
        """
        ...

    def postpone_earlier(self, item: InboxItem) -> None:
        """Let the sender's messages that wait in a conversation wait until the `not_before` of an accepted one."""
        ...

    def cancel_earlier(self, item: InboxItem, *, anyone: bool = False, session_id: str = "") -> None:
        """Cancel the turns of the same sender, or of anyone, that came before an event in its conversation.

        Those that wait are finished as `cancelled`. Those that are worked on are marked, with the session that they
        belong to, and only their holder can finish them. In a group, events of earlier versions are left alone: their
        rows don't tell who sent them.
        """
        ...

    def cancel_event(self, item: InboxItem) -> None:
        """Cancel one turn: finish it as `cancelled` if it waits, mark it if it is worked on, for its holder to finish.

        One that has changed since it was read fails the transaction with `LostEventError`.
        """
        ...
