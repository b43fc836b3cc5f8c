"""Abilities of a platform that the host asks for: to show an answer while it is written, and to find what arrived."""

from abc import abstractmethod

from frontdesk.kit.chat.abilities import EditsMessages
from frontdesk.kit.chat.channel import ChatChannel
from frontdesk.kit.chat.messages import Destination


class LiveAnswers(EditsMessages, ChatChannel):
    """A platform on which an answer is shown while it is written, by edits of its message.

    The messages come with `OutboundMessage.live`. A message that takes no more updates, such as a stream that has
    expired, is a `PushNotEditableError` with the code `stream_expired`; what is still to be said goes on in a new one.
    """


class FindsMessages(ChatChannel):
    """A platform that can be asked what became of a message."""

    @abstractmethod
    async def find(self, key: str, destination: Destination) -> str | None:
        """Return the id of the message that was sent under a key; `None` if the platform never got it."""


class TypingNotices(ChatChannel):
    """A platform that shows that an answer is being written."""

    typing_interval: float | None = 5.0
    """After how many seconds the platform has to be told again; `None` tells it once."""

    @abstractmethod
    async def typing(self, destination: Destination, *, on: bool) -> None:
        """Show that an answer is being written; or, if it is not `on`, that it is not any more."""
