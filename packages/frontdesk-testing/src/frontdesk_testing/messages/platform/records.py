"""The records and the settings of the platform."""

from typing import Literal

import msgspec

from frontdesk_testing.messages.wire import Button, Chat, Event, Media, Problem


class RefusedError(Exception):
    """A call that the platform does not accept."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.problem = Problem(code=code, message=message)


class Settings(msgspec.Struct, kw_only=True):
    """The settings for a test."""

    handle: str = "desk"
    text_limit: int = 4096
    media_limit: int = 1024 * 1024
    most_buttons: int = 8
    data_limit: int = 64
    dedupe: bool = True
    """Whether a second send with the same key is recognised."""
    click_seconds: float | None = None
    """The seconds for which a button that was pressed can be answered; without a limit if there are none."""
    retry_seconds: float = 2.0
    """The seconds until an event that was not acknowledged is sent again."""
    token_seconds: float | None = None
    """The seconds for which the token of an event can be used; events have none without it."""
    expects_replies: bool = False
    """Whether events that happen from now on take messages in the response of the webhook."""
    expects_cards: bool = False
    """Whether clicks that happen from now on show what is in the response of the webhook."""
    lose_replies: int = 0
    """The number of responses with messages or cards that get lost on their way."""
    stream_seconds: float | None = None
    """The age at which a message that is being written takes no more updates; it can still be changed."""
    receipts: bool = False
    """Whether the webhook is told at once that a message of the bot was delivered; polls have no receipts."""
    hold: bool = False
    """Whether events wait until they are released."""
    edit_seconds: float | None = None
    """The age at which a message of the bot is too old to be changed or removed; none without it."""


class Said(msgspec.Struct, kw_only=True):
    """A message as a chat shows it."""

    message_id: str
    user_id: str
    text: str = ""
    media: tuple[Media, ...] = ()
    buttons: tuple[Button, ...] = ()
    reply_to: str = ""
    thread_id: str = ""
    album_id: str = ""
    edits: int = 0
    at: float = 0.0


class PrivateText(msgspec.Struct, kw_only=True):
    """An ephemeral text in a chat."""

    chat_id: str
    user_id: str
    text: str


class EventState(msgspec.Struct, kw_only=True):
    """An event and its deliveries to the webhook."""

    event: Event
    state: Literal["pending", "acknowledged"] = "pending"
    attempts: int = 0
    answers: list[int] = []
    """The status of each attempt to send it, 0 if there was no answer."""


class Place(msgspec.Struct, kw_only=True):
    """A chat, its members, and its messages."""

    chat: Chat
    members: set[str]
    admins: set[str] = set()
    messages: dict[str, Said] = {}
