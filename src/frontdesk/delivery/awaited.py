"""Keeps deliveries for the HTTP reply to their event, and decides which of them a reply can have. Pure."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from frontdesk.data.delivery import Delivery, InboxItem

REPLIED = "in the reply"
"""The code in the history of a part that was written into the reply to its event."""
INTERRUPTED = "interrupted"
"""The code in the history of a part whose sender is gone."""


class ReplyChoice(NamedTuple):
    """What a reply can have: parts to claim first, parts of an earlier reply, or nothing."""

    how: Literal["claim", "repeat", "busy", "nothing"]
    rows: Sequence[Delivery] = ()


def keep_for_reply(rows: Sequence[Delivery], event: InboxItem, now: float) -> list[Delivery]:
    """Return deliveries, with those to the conversation of an event due when its sender stops waiting on the wire."""
    until = event.reply_by
    if until is None or until <= now:
        return list(rows)
    return [row.replace(due_at=until, reply_by=until) if _goes_back(row, event) else row for row in rows]


def _goes_back(row: Delivery, event: InboxItem) -> bool:
    there = event.request.conversation_id
    is_new = row.ended_at is None and not row.edits
    return is_new and there is not None and (row.channel, row.conversation_id) == (event.channel, there)


def choose(rows: Sequence[Delivery], *, again: bool) -> ReplyChoice:
    """Decide what the reply to an event has; `again` if its platform has sent it before, and so got no reply.

    What an earlier reply had is said again, and so is what was claimed for one that was never written. While another
    reply is being written, it is too early to say.
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
    """Tell whether a part was claimed for a reply, and never pushed."""
    if row.attempts != 1 or row.held_for > 0:
        return False
    return row.status == "sending" or (row.status == "unknown" and _last_code(row) == INTERRUPTED)


def _last_code(row: Delivery) -> str | None:
    return row.history[-1].code if row.history else None
