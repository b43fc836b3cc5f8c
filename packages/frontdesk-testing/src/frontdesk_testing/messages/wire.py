"""The platform's protocol: events, calls and errors."""

from typing import Literal

import msgspec

ChatKind = Literal["direct", "group"]


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A user of the platform. Two may have the same name."""

    user_id: str
    name: str
    bot: bool = False
    locale: str = ""
    """The language of the user's app, such as `de`."""


class Chat(msgspec.Struct, frozen=True, kw_only=True):
    """A chat: with the bot alone, or a group."""

    chat_id: str
    kind: ChatKind
    title: str = ""


class Mention(msgspec.Struct, frozen=True, kw_only=True):
    """The characters of a text that name a user."""

    user_id: str
    offset: int
    length: int


class Media(msgspec.Struct, frozen=True, kw_only=True):
    """A picture or a file. `data` is base64."""

    media_type: str
    data: str
    name: str = ""


class Button(msgspec.Struct, frozen=True, kw_only=True):
    """A button. The platform sends `data` back."""

    text: str
    data: str


class ReplyTo(msgspec.Struct, frozen=True, kw_only=True):
    """A quoted message and its author."""

    message_id: str
    user_id: str


class MessageIn(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a user."""

    message_id: str
    text: str = ""
    media: tuple[Media, ...] = ()
    mentions: tuple[Mention, ...] = ()
    reply_to: ReplyTo | None = None
    album_id: str = ""
    """The id that the messages of an album share; each has one picture or file, and comes as an event of its own."""


class Click(msgspec.Struct, frozen=True, kw_only=True):
    """A button that a user pressed."""

    callback_id: str
    message_id: str
    data: str
    expects_card: bool = False
    """Whether the platform shows what is in the response to the event."""


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """The delivery receipt of a message of the bot."""

    message_id: str
    reason: str = ""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event. Repeated deliveries have the same id."""

    event_id: str
    number: int
    type: str
    """`message`, `edit`, `click`, `delivered` or `failed`; a platform may add others at any time."""
    at: float
    chat: Chat
    sender: User
    admin: bool = False
    """Whether the sender is an administrator of the group."""
    message: MessageIn | None = None
    click: Click | None = None
    thread_id: str = ""
    """The thread of the group in which it happened; none for the group itself."""
    receipt: Receipt | None = None
    expects_reply: bool = False
    """Whether the platform takes messages in the response to the event."""
    reply_token: str = ""
    """With it, something can be shown to the sender alone, for a while; secret."""


class Challenge(msgspec.Struct, frozen=True, kw_only=True):
    """The platform's challenge to a webhook, which must return it."""

    challenge: str


class Numbered(msgspec.Struct, frozen=True, kw_only=True):
    """The number of an event, for the next poll."""

    number: int


class Events(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a poll. A poll with an offset confirms all events below it."""

    events: tuple[msgspec.Raw, ...] = ()


class Send(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A new message, to a chat or to a user's direct chat."""

    chat_id: str = ""
    thread_id: str = ""
    """A thread of the chat; none for the chat itself."""
    user_id: str = ""
    text: str = ""
    media: tuple[Media, ...] = ()
    buttons: tuple[Button, ...] = ()
    reply_to: str = ""
    idempotency_key: str = ""
    stream: bool = False
    """Whether the message is still being written, and takes updates for a while."""


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted message. `duplicate` is set if its key was used before."""

    message_id: str
    chat_id: str
    duplicate: bool = False


class Replied(msgspec.Struct, frozen=True, kw_only=True):
    """The response to an event that expects a reply: messages to show immediately."""

    messages: tuple[Send, ...] = ()


class Shown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The response to a click with a card."""

    card: str = ""
    """The text that the message with the button has from now on, without buttons; without one, it stays as it is."""
    notice: str = ""
    """A text that only the person who pressed the button sees."""


class Edit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A new text and new buttons for a message of the bot. Without a text, the old one stays."""

    chat_id: str = ""
    user_id: str = ""
    message_id: str
    text: str = ""
    buttons: tuple[Button, ...] = ()
    stream: bool = False
    """Whether it is an update of a message that is being written, and no change of one that was sent."""


class Typing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The typing notice of a chat or a thread."""

    chat_id: str = ""
    thread_id: str = ""
    user_id: str = ""
    on: bool = True


class Delete(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message of the bot to delete."""

    chat_id: str = ""
    user_id: str = ""
    message_id: str


class AnswerClick(msgspec.Struct, frozen=True, kw_only=True):
    """A short text that only the person who pressed the button sees."""

    callback_id: str
    text: str = ""


class Private(msgspec.Struct, frozen=True, kw_only=True):
    """A text that only the sender of an event sees, in the chat of the event."""

    reply_token: str
    text: str


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the menu."""

    name: str
    description: str


class Commands(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A menu, for all scopes and languages or for one."""

    commands: tuple[Command, ...]
    scope: Literal["", "direct", "group", "admins"] = ""
    locale: str = ""


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """The URL and the secret of the webhook. Without a URL it is disabled."""

    url: str
    secret: str = ""


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """The bot's own account."""

    user_id: str
    handle: str
    text_limit: int


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The reason why a call was not accepted."""

    code: str
    message: str
    retry_after: float | None = None
    scope: Literal["chat", "bot"] = "chat"


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of every error."""

    error: Problem
