"""Binds deliveries to the event that they answer, and selects those for its HTTP response. Pure."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from frontdesk.models.delivery import Delivery, InboxItem

REPLIED = "in the reply"
"""The code in the history of a part that was written into the reply to its event."""
INTERRUPTED = "interrupted"
"""The code in the history of a part whose sender is gone."""


class ReplyChoice(NamedTuple):
    """The choice for an HTTP reply: parts to claim first, parts of an earlier reply, or nothing."""

    how: Literal["claim", "repeat", "busy", "nothing"]
    rows: Sequence[Delivery] = ()


def for_event(rows: Sequence[Delivery], event: InboxItem, now: float) -> Sequence[Delivery]:
    """Return deliveries as answers to an event. Those that return to the event get its token.

    While its sender waits for the HTTP response, they become due when that wait ends.
    """
    until = None if event.reply_by is None or event.reply_by <= now else event.reply_by
    if until is None and event.reply_token is None:
        return rows
    back = [row.replace(reply_token=event.reply_token) if _goes_back(row, event) else row for row in rows]
    if until is None:
        return back
    return [row.replace(due_at=until, reply_by=until) if _fits_reply(row, event) else row for row in back]


def _goes_back(row: Delivery, event: InboxItem) -> bool:
    there = event.request.conversation_id
    return there is not None and (row.channel, row.conversation_id) == (event.channel, there)


def _fits_reply(row: Delivery, event: InboxItem) -> bool:
    # A change of a message that was sent before is not a message of the reply.
    return row.ended_at is None and not row.edits and _goes_back(row, event)


def choose(rows: Sequence[Delivery], *, again: bool) -> ReplyChoice:
    """Decide the content of the reply to an event. `again` is set if the platform repeats it for lack of a reply.

    The content of an earlier reply is repeated, including parts that were claimed for a reply that was never written.
    While another reply is being written, no decision is possible yet.
    """
    kept = [row for row in rows if row.reply_by is not None and row.payload is not None]
    if not kept:
        return ReplyChoice("nothing")
    if all(row.status == "pending" and not row.attempts for row in kept):
        return ReplyChoice("claim", kept)
    if not again:
        return ReplyChoice("nothing")
    if all(row.status == "accepted" and _last_code(row) == REPLIED for row in kept):
        return ReplyChoice("repeat", kept)
    if all(_was_interrupted(row) for row in kept):
        return ReplyChoice("claim", kept)
    return ReplyChoice("busy" if any(row.status == "sending" for row in kept) else "nothing")


def _was_interrupted(row: Delivery) -> bool:
    """Return True if a part was claimed for a reply but never pushed."""
    if row.attempts != 1 or row.held_for > 0:
        return False
    return row.status == "sending" or (row.status == "unknown" and _last_code(row) == INTERRUPTED)


def _last_code(row: Delivery) -> str | None:
    return row.history[-1].code if row.history else None
