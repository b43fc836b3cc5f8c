"""Parts of a session's history, as its owner reads them."""

from collections.abc import Sequence
from typing import Any

from frontdesk.data.noun import Value


class HistoryPage(Value, frozen=True, kw_only=True):
    """Messages of a session that follow each other, as they are stored."""

    messages: Sequence[Any] = ()
    before: int | None = None
    """The position before which the page before this one ends; `None` if the session begins here."""


_LONGEST_TURN = 20


def page_of(messages: Sequence[Any], before: int | None, limit: int) -> HistoryPage:
    """Return the last turns before a position, of a history that is at hand as a whole; each begins with a question."""
    end = len(messages) if before is None else max(0, min(before, len(messages)))
    start, turns = end, 0
    while start > 0 and turns < limit and end - start < limit * _LONGEST_TURN:
        start -= 1
        turns += messages[start].role == "user"
    return HistoryPage(messages=messages[start:end], before=start or None)


class TranscriptMessage(Value, frozen=True, kw_only=True):
    """A message of a session, and what the host knows of it."""

    message: Any
    """The framework's `Message`."""
    channel: str | None
    """The channel on which was asked; `None` if nobody has noted that."""
    at: float | None
    """When it was said, or when its turn began; `None` if nothing tells that."""
    shown_on: frozenset[str]
    """The channels on which it was said, or to which it was sent."""


class TranscriptPage(Value, frozen=True, kw_only=True):
    """A part of a transcript, in its order."""

    messages: tuple[TranscriptMessage, ...] = ()
    before: int | None = None
    """The position with which the part before this one is asked for; `None` if the session begins here."""
