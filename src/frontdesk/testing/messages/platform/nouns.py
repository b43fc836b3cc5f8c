"""The records and the settings of the platform."""

from typing import Literal

import msgspec

from frontdesk.testing.messages.wire import Button, Chat, Event, Media, Problem


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
    retry_seconds: float = 2.0
    """The seconds until an event that was not acknowledged is sent again."""
    hold: bool = False
    """Whether events wait until they are released."""


class Said(msgspec.Struct, kw_only=True):
    """A message as a chat shows it."""

    message_id: str
    user_id: str
    text: str = ""
    media: tuple[Media, ...] = ()
    buttons: tuple[Button, ...] = ()
    reply_to: str = ""
    edits: int = 0


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
