"""Platform-independent chat messages: people, destinations, inbound events and outbound messages."""

from collections.abc import Mapping
from typing import Any, Literal, Self

import msgspec

from frontdesk.markdown.dialect import Entity
from frontdesk.models.delivery import DestinationKind


class BotIdentity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The bot's own account on the platform."""

    id: str
    name: str = ""
    """The name by which commands such as `/new@name` are addressed to it."""


class Destination(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The target of a message: a chat, optionally a thread in it, or the direct chat of a user."""

    chat_id: str = ""
    thread_id: str = ""
    user_id: str = ""
    """The person in whose direct chat it is said, where the platform takes that instead of a chat."""
    kind: DestinationKind = "direct"
    reference: Mapping[str, Any] = {}
    """The platform's own data for reaching the place: see `ChannelRequest.reference`."""

    @property
    def conversation_id(self) -> str:
        """Return the conversation ID: the id of the chat, or JSON for a thread."""
        if not self.thread_id and not self.chat_id.startswith("["):
            return self.chat_id
        return msgspec.json.encode((self.chat_id, self.thread_id)).decode()

    @classmethod
    def from_conversation_id(
        cls, conversation_id: str, *, kind: DestinationKind = "direct", reference: Mapping[str, Any] | None = None
    ) -> Self:
        chat_id, thread_id = conversation_id, ""
        if conversation_id.startswith("["):
            chat_id, thread_id = msgspec.json.decode(conversation_id, type=tuple[str, str])
        return cls(chat_id=chat_id, thread_id=thread_id, kind=kind, reference=reference or {})


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What a channel has verified about a request of its platform. A subclass may have more."""

    claims: Mapping[str, Any] = {}
    """The claims of a verified token."""


class Sender(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    """The id that the platform never gives to anybody else."""
    name: str = ""
    locale: str = ""
    """The language of the person's app, such as `de`."""
    is_bot: bool = False
    admin: bool = False
    """Whether the person is an administrator of the group."""
    attributes: Mapping[str, Any] = {}
    """More about the person, for hooks and lists of who may come in."""
    claims: Mapping[str, Any] = {}
    """Verified claims about the person, such as `oid` and `tid`: only what the channel's `verify` has proved.

    Ignored unless the channel has `emits_verified_claims`.
    """


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command, such as `/new@desk later`."""

    name: str
    args: str = ""
    bot: str = ""
    """The name of the bot that it is addressed to; empty if it names none."""


class Click(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    data: str
    """The data of the button."""
    callback_id: str = ""
    """The platform's name for the click, with which something can be shown to the person who pressed."""
    message_id: str = ""
    """The message with the button; empty if the platform does not say."""
    expects_card: bool = False
    """Whether the platform shows what is in the response to the event."""


class InboundFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An image or file attached to a message. It is fetched only after the sender has been admitted."""

    media_type: str = "application/octet-stream"
    name: str = ""
    size: int | None = None
    """The number of bytes, where the platform says it."""
    file_id: str = ""
    """The platform's name for the file."""
    url: str = ""
    """The URL of the file, if the platform gives one instead."""
    data: str = ""
    """The file itself, in base64, where it came with the event."""


class Quote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The message that another message replies to."""

    message_id: str = ""
    sender_id: str = ""
    text: str = ""


class InboundMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user's message, command or button press."""

    event_id: str
    """The id that stays the same however often the platform sends the event."""
    at: float
    """When it happened, by the platform's clock, in seconds."""
    sender: Sender
    place: Destination
    text: str = ""
    """The text, without the mention of the bot."""
    message_id: str = ""
    mentioned: bool = False
    """Whether the bot was addressed: by a mention, or by an answer to one of its messages."""
    command: Command | None = None
    """The command, where the platform says that it is one; otherwise it is looked for in the text."""
    click: Click | None = None
    media: tuple[InboundFile, ...] = ()
    quote: Quote | None = None
    edited: bool = False
    """Whether it changes a message that was sent before."""
    album: str = ""
    """The platform's name for the album that its media belong to; the messages of an album are answered in one turn."""
    album_position: int = 0
    """Its place among the messages of its album, which may come in another order."""
    reply_token: str = ""
    """With it, something can be shown to the sender alone, for a while; secret."""
    expects_reply: bool = False
    """Whether the platform takes the answer in the response to the event."""
    unsupported: str = ""
    """The platform's name for its content, such as `story`, if the channel reads nothing of it; the sender is told."""
    attributes: Mapping[str, Any] = {}
    """More about the message, kept with the request."""


class DeliveryReceipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A later status report of the platform about a message that it has accepted."""

    message_id: str
    at: float
    delivered: bool = True
    reason: str = ""
    """Why it was not delivered."""


class ConversationMove(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the id of a chat."""

    old: Destination
    new: Destination


class MembershipChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The bot was added to a chat, or has lost access to it."""

    event_id: str
    """The id that stays the same however often the platform sends the event."""
    at: float
    """When it happened, by the platform's clock, in seconds; what is sent from then on is not given up."""
    place: Destination
    present: bool
    """Whether the bot can write there from now on."""
    reason: str = ""
    """Why it can't, as the code of the error with which the platform refuses a message there."""
    by: Sender | None = None
    """The person who has done it; `None` if nobody in particular has."""


class InboundFeedback(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's opinion of one of our messages: a button of the platform, or a reaction."""

    at: float
    sender: Sender
    place: Destination
    message_id: str
    value: Literal["up", "down"]
    reason: str = ""
    """What the person has written about it."""


class Invoke(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event whose HTTP response is the answer, such as a dialog that a person opens. It is not stored."""

    event_id: str
    at: float
    sender: Sender
    place: Destination
    name: str
    """The platform's name of the operation."""
    value: Any = None
    """Its arguments."""


class InvokeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The HTTP response to an `Invoke`."""

    status: int = 200
    body: bytes = b"{}"
    """The body as JSON."""


Inbound = InboundMessage | DeliveryReceipt | ConversationMove | MembershipChange | InboundFeedback | Invoke
"""The kinds that a platform's event can be read as."""


class Button(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    text: str
    data: str = ""
    """The data that the platform sends back when it is pressed; 64 bytes at most."""
    url: str = ""
    """The page that it opens instead."""


class OutboundFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An image or file to send. `data` is base64."""

    media_type: str
    data: str
    name: str = ""


class OutboundMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message to send, in the platform's dialect and within its limits."""

    text: str = ""
    entities: tuple[Entity, ...] = ()
    """The styles of the text, for a dialect that keeps them apart from it."""
    blocks: tuple[Mapping[str, Any], ...] = ()
    """The same as the platform's own blocks, where it has these; the text is sent where it takes no blocks."""
    media: tuple[OutboundFile, ...] = ()
    buttons: tuple[Button, ...] = ()
    reply_to: str = ""
    """The message that it answers."""
    live: bool = False
    """Whether it is still being written, and more of it follows as an edit."""
    sequence: int = 0
    """The number of this state of a live message, from 1: each is above those before it, also of another process."""
    answers: str = msgspec.field(default="", name="chat_id")
    """The conversation of the message that it answers; elsewhere it is no reply."""
    asks: str = ""
    """The question that it tells of without buttons, because others answer it; not sent."""


class Whisper(msgspec.Struct, frozen=True, kw_only=True):
    """An ephemeral text for one user: the one that pressed a button, or the sender of the event."""

    callback_id: str
    text: str


class Card(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A card that is shown in response to a click."""

    card: str = ""
    """The text that the message with the button has from now on, without buttons; without one, it stays as it is."""
    notice: str = ""
    """A text that only the person who pressed the button sees."""
