"""The wire format of the Bot API: the supported objects and fields. Others are ignored."""

from typing import Annotated, Any

import msgspec

Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class User(msgspec.Struct, frozen=True):
    id: Integer
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""
    language_code: str = ""
    can_read_all_group_messages: bool = False


class Chat(msgspec.Struct, frozen=True):
    id: Integer
    type: str = ""
    title: str = ""


class MessageEntity(msgspec.Struct, frozen=True):
    """A marked range of a text, in UTF-16 code units."""

    type: str
    offset: Integer
    length: Integer
    user: User | None = None


class File(msgspec.Struct, frozen=True):
    file_id: str
    file_size: Integer | None = None
    file_name: str = ""
    mime_type: str = ""
    width: Integer = 0
    height: Integer = 0


class Sticker(msgspec.Struct, frozen=True):
    file_id: str
    file_size: Integer | None = None
    is_animated: bool = False
    is_video: bool = False
    emoji: str = ""


class Location(msgspec.Struct, frozen=True):
    latitude: float
    longitude: float


class Venue(msgspec.Struct, frozen=True):
    location: Location
    title: str = ""
    address: str = ""


class Contact(msgspec.Struct, frozen=True):
    phone_number: str
    first_name: str = ""
    last_name: str = ""


class PollOption(msgspec.Struct, frozen=True):
    text: str


class Poll(msgspec.Struct, frozen=True):
    question: str
    options: tuple[PollOption, ...] = ()


class Dice(msgspec.Struct, frozen=True):
    emoji: str = ""
    value: Integer = 0


class TextQuote(msgspec.Struct, frozen=True):
    """The range of a message that a reply quotes."""

    text: str


class MessageOrigin(msgspec.Struct, frozen=True):
    """The origin of a forwarded message."""

    sender_user: User | None = None
    sender_user_name: str = ""
    sender_chat: Chat | None = None
    chat: Chat | None = None


class RichMessage(msgspec.Struct, frozen=True):
    blocks: tuple[dict[str, Any], ...] = ()


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message. An inaccessible message has a date of 0 and no content."""

    message_id: Integer
    chat: Chat
    date: Integer = 0
    edit_date: Integer | None = None
    sender: User | None = msgspec.field(default=None, name="from")
    sender_chat: Chat | None = None
    via_bot: User | None = None
    message_thread_id: Integer | None = None
    is_topic_message: bool = False
    forward_origin: MessageOrigin | None = None
    reply_to_message: "Message | None" = None
    quote: TextQuote | None = None
    media_group_id: str = ""
    text: str = ""
    entities: tuple[MessageEntity, ...] = ()
    rich_message: RichMessage | None = None
    caption: str = ""
    caption_entities: tuple[MessageEntity, ...] = ()
    photo: tuple[File, ...] = ()
    animation: File | None = None
    audio: File | None = None
    document: File | None = None
    video: File | None = None
    video_note: File | None = None
    voice: File | None = None
    sticker: Sticker | None = None
    location: Location | None = None
    venue: Venue | None = None
    contact: Contact | None = None
    poll: Poll | None = None
    dice: Dice | None = None
    migrate_to_chat_id: Integer | None = None
    migrate_from_chat_id: Integer | None = None
    forum_topic_created: Any = None
    # Only whether they are there is read.
    story: Any = None
    game: Any = None
    checklist: Any = None
    paid_media: Any = None
    invoice: Any = None
    giveaway: Any = None
    giveaway_winners: Any = None


class CallbackQuery(msgspec.Struct, frozen=True):
    """A button click. The message may be missing if it is inline or too old."""

    id: str
    sender: User = msgspec.field(name="from")
    message: Message | None = None
    data: str = ""


class ChatMember(msgspec.Struct, frozen=True):
    status: str = ""
    is_member: bool = True
    """Whether one who is restricted is in the chat."""


class ChatMemberUpdated(msgspec.Struct, frozen=True):
    """A change of the bot's own role in a chat."""

    chat: Chat
    sender: User = msgspec.field(name="from")
    old_chat_member: ChatMember
    new_chat_member: ChatMember
    date: Integer = 0


class GenerationStopped(msgspec.Struct, frozen=True):
    """A draft stopped by a person. Only private chats have drafts."""

    chat: Chat
    message_thread_id: Integer | None = None


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """An update: its number, and exactly one of the other fields."""

    update_id: Integer
    message: Message | None = None
    edited_message: Message | None = None
    callback_query: CallbackQuery | None = None
    stopped_message_generation: GenerationStopped | None = None
    my_chat_member: ChatMemberUpdated | None = None


ALLOWED_UPDATES = ("message", "edited_message", "callback_query", "stopped_message_generation", "my_chat_member")
"""The kinds of updates that are asked for; without the list, the platform keeps the one that it had."""


class Parameters(msgspec.Struct, frozen=True):
    """The part of a refusal that determines how to continue."""

    migrate_to_chat_id: Integer | None = None
    retry_after: float | None = None


class Answer(msgspec.Struct, frozen=True):
    ok: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    error_code: Integer = 0
    description: str = ""
    parameters: Parameters = Parameters()


class RemoteFile(msgspec.Struct, frozen=True):
    """A file that can be downloaded for one hour."""

    file_path: str = ""
    file_size: Integer | None = None


class SentMessage(msgspec.Struct, frozen=True):
    message_id: Integer
