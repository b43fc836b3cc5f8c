"""Replies of a channel or a command in its own words, beside any run."""

from typing import Any, Literal

from frontdesk.data.noun import Noun

ReplyPlace = Literal["here", "direct", "only_me"]
"""The place of a reply: the conversation of its event, the sender's direct chat, or the sender's eyes alone."""


class ReplyButton(Noun, frozen=True):
    """A button under a reply; the platform sends `data` back when it is pressed."""

    text: str
    data: str


class Reply(Noun, frozen=True):
    """A reply to an event; it is written in the transaction that finishes the event, and then sent like any answer."""

    text: str = ""
    blocks: tuple[str, ...] = ()
    """More paragraphs behind the text."""
    buttons: tuple[ReplyButton, ...] = ()
    """Shown by channels that have buttons; others show the text alone."""
    media: tuple[Any, ...] = ()
    """Framework contents with data or a URI, sent behind the text."""
    to: ReplyPlace = "here"
    """`only_me` is shown by the platform to the sender alone, as a pop-up of a button is. Where a platform can't do
    that, it goes to the sender's direct chat."""
    replaces: str | None = None
    """The receipt of a message of ours that its first part takes the place of, if it can still be changed; not of one
    that is shown to the sender alone."""

    @property
    def only_acknowledges(self) -> bool:
        """Tell whether it says nothing, and only tells the platform that a click has arrived."""
        return self.to == "only_me" and not self.full_text and not self.media

    @property
    def full_text(self) -> str:
        """Return all paragraphs, with an empty line between two."""
        return "\n\n".join(paragraph for paragraph in (self.text, *self.blocks) if paragraph)


def as_reply(given: "Reply | str") -> Reply:
    """Return a reply, also for a text alone."""
    return Reply(given) if isinstance(given, str) else given
