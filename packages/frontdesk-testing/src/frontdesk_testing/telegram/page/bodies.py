"""The bodies that the page sends."""

import msgspec


class NewUser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person to add."""

    first_name: str
    username: str = ""
    language_code: str = ""


class NewGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A group to add. The first user is its owner."""

    title: str
    users: tuple[int, ...]
    supergroup: bool = False
    forum: bool = False


class NewTopic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A topic to begin."""

    user: int
    chat: int
    name: str


class Attachment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of a message."""

    kind: str
    name: str
    content: bytes
    """The bytes, in base64."""


class Say(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message to write, by default in the chat with the bot."""

    user: int
    text: str = ""
    chat: int = 0
    thread: int | None = None
    reply_to: int | None = None
    file: Attachment | None = None


class Press(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A button to press, by its label or its data."""

    user: int
    chat: int
    message_id: int
    button: str


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message of a person to edit, or without a text to delete."""

    user: int
    chat: int
    message_id: int
    text: str = ""


class Act(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An action of a person on the bot."""

    user: int
    action: str
    """One of `start`, `stop`, `block` and `unblock`."""
    payload: str = ""
    thread: int | None = None


class Fail(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An error for the next calls of the bot."""

    method: str
    code: int
    description: str
    times: int = 1
    retry_after: int | None = None


class Advance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds to advance the clock."""

    seconds: float
