"""The chat platform for the contract of chat channels."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from frontdesk.chat.messages import Button

PushFailure = Literal["limited", "unavailable", "refused", "lost"]
"""The failure of a call that sends a message: it is to be repeated after a moment, or at any time, or never, or it has
arrived and its answer got lost."""


class ChatPerson(msgspec.Struct, frozen=True, kw_only=True):
    """A person on the platform, and the chat that they alone have with the bot."""

    id: str
    name: str
    chat_id: str


class ChatFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file in a message."""

    media_type: str
    data: bytes
    name: str = ""


class ShownMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the bot, as people see it now."""

    message_id: str
    text: str = ""
    thread_id: str = ""
    buttons: tuple[Button, ...] = ()
    reply_to: str = ""
    files: tuple[ChatFile, ...] = ()


class FakePlatform(Protocol):
    """A platform that a test controls, with real servers on the loopback address."""

    mention: str
    """The text with which a person addresses the bot in a group."""

    async def listen(self, url: str) -> None:
        """Send events to the webhook of a host from now on. Repeat unacknowledged events."""
        ...

    async def person(self, name: str) -> ChatPerson:
        """Add a person."""
        ...

    async def group(self, *people: ChatPerson) -> str:
        """Add a group of people and the bot. Return its chat."""
        ...

    async def say(
        self,
        who: ChatPerson,
        text: str,
        *,
        chat_id: str = "",
        thread_id: str = "",
        files: Sequence[ChatFile] = (),
        album: str = "",
    ) -> str:
        """Write as a person, by default in their direct chat. Return the id of the event.

        Messages of an album share its id, and each is an event.
        """
        ...

    async def press(self, who: ChatPerson, message: ShownMessage, data: str, *, chat_id: str = "") -> str:
        """Press a button as a person, whether or not it is still shown. Return the id of the event."""
        ...

    async def repeat(self, event_id: str) -> None:
        """Send an event once more, and return when it was acknowledged."""
        ...

    async def shown(self, chat_id: str) -> Sequence[ShownMessage]:
        """Return the messages of the bot in a chat, as they are shown now."""
        ...

    async def notice(self, event_id: str) -> str:
        """Return the notice shown to the person who pressed a button. Empty if none was shown."""
        ...

    async def fail(self, failure: PushFailure, *, times: int = 1) -> None:
        """Fail the next calls that send a message."""
        ...

    async def go_away(self, *, times: int) -> None:
        """Fail the next calls of any kind."""
        ...

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition holds. It is checked after every change on the platform."""
        ...

    def event(self, who: ChatPerson, text: str) -> bytes:
        """Return the body of an event that was not sent."""
        ...

    def signed(self, body: bytes, *, at: float) -> Mapping[str, str]:
        """Return the headers with which the platform sends a body at a time."""
        ...


class InvokingPlatform(FakePlatform, Protocol):
    """A platform with events whose HTTP response is the answer."""

    async def invoke(self, who: ChatPerson, name: str) -> tuple[int, bytes]:
        """Send an operation once as a person; return the status and the body of the response."""
        ...


class StoppingPlatform(FakePlatform, Protocol):
    """A platform on which a person stops an answer that is being written."""

    async def stop(self, who: ChatPerson) -> None:
        """Stop the last answer in the direct chat of a person, as they do."""
        ...


class RatingPlatform(FakePlatform, Protocol):
    """A platform on which people rate answers."""

    async def rate(self, who: ChatPerson, message: ShownMessage, value: str, *, chat_id: str = "") -> str:
        """Rate a message as a person: `up` or `down`; return the id of the event."""
        ...


class OpeningPlatform(FakePlatform, Protocol):
    """A platform that says when a direct chat opens and closes, with a reference to it."""

    async def open(self, who: ChatPerson) -> str:
        """Open the direct chat of a person; return the id of the event."""
        ...

    async def close(self, who: ChatPerson) -> str:
        """Close it; return the id of the event."""
        ...


class MembershipPlatform(FakePlatform, Protocol):
    """A platform that reports when the bot is added or removed."""

    async def shut(self, who: ChatPerson, *, chat_id: str = "") -> None:
        """Block the bot as a person, or remove it from a group."""
        ...

    async def readmit(self, who: ChatPerson, *, chat_id: str = "") -> None:
        """Unblock the bot as a person, or add it to the group again."""
        ...
