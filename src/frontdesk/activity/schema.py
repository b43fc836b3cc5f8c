"""The activities that Bot Service sends: the supported types and fields. Others are ignored."""

from typing import Annotated, Any

import msgspec

from frontdesk.errors import InvalidRequestError

MAX_ID_LENGTH = 512
Id = Annotated[str, msgspec.Meta(max_length=MAX_ID_LENGTH)]

MESSAGE = "message"
INVOKE = "invoke"
TEAMS = "msteams"


class Account(msgspec.Struct, frozen=True, rename="camel"):
    """A person, a bot, or another member of a conversation."""

    id: Id | None = None
    name: str | None = None
    aad_object_id: Id | None = None
    role: str | None = None


class Conversation(msgspec.Struct, frozen=True, rename="camel"):
    id: Id | None = None
    name: str | None = None
    is_group: bool | None = None
    conversation_type: str | None = None
    """`personal`, `groupChat` or `channel` on Teams; other platforms have `is_group` alone."""
    tenant_id: Id | None = None


class Entity(msgspec.Struct, frozen=True, rename="camel"):
    """A mention, or information about the product in which a person writes."""

    type: str | None = None
    text: str | None = None
    mentioned: Account | None = None
    id: Any = None


class Attachment(msgspec.Struct, frozen=True, rename="camel"):
    content_type: str | None = None
    content_url: str | None = None
    name: str | None = None
    content: Any = None


class Named(msgspec.Struct, frozen=True):
    id: Id | None = None


class ChannelData(msgspec.Struct, frozen=True, rename="camel"):
    tenant: Named | None = None
    team: Named | None = None
    channel: Named | None = None
    event_type: str | None = None


class Reaction(msgspec.Struct, frozen=True):
    type: str | None = None


class Activity(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    type: str
    id: Id | None = None
    timestamp: str | None = None
    channel_id: Id | None = None
    service_url: Annotated[str, msgspec.Meta(max_length=2048)] | None = None
    sender: Account | None = msgspec.field(default=None, name="from")
    recipient: Account | None = None
    conversation: Conversation | None = None
    reply_to_id: Id | None = None
    text: str | None = None
    text_format: str | None = None
    locale: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    entities: tuple[Entity, ...] | None = None
    attachments: tuple[Attachment, ...] | None = None
    value: Any = None
    name: str | None = None
    action: str | None = None
    delivery_mode: str | None = None
    # Web chat writes what it likes into it; only Teams has the fields that are read.
    channel_data: msgspec.Raw = msgspec.Raw(b"null")
    members_added: tuple[Account, ...] | None = None
    members_removed: tuple[Account, ...] | None = None
    reactions_added: tuple[Reaction, ...] | None = None
    reactions_removed: tuple[Reaction, ...] | None = None

    @property
    def data(self) -> ChannelData:
        """Return the channel data. It is empty where the platform has data of another form."""
        try:
            return msgspec.json.decode(self.channel_data, type=ChannelData | None) or ChannelData()
        except msgspec.DecodeError:
            return ChannelData()

    @property
    def tenant_id(self) -> str:
        """Return the tenant in which an activity happened, or an empty string.

        Two fields that name different tenants raise an error.
        """
        tenant, data = self.conversation and self.conversation.tenant_id, self.data.tenant
        named = {each.lower() for each in (tenant, data and data.id) if each}
        if len(named) > 1:
            raise InvalidRequestError("The activity names two tenants.")
        return named.pop() if named else ""


_activity = msgspec.json.Decoder(Activity)


def decode_activity(body: bytes) -> Activity:
    """Parse an activity. Raise `InvalidRequestError` if it is none."""
    try:
        return _activity.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestError(f"The activity is invalid: {error}.") from None


class Reference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored reference with which a conversation is reached."""

    url: str
    """The service URL. It is verified before every call."""
    channel: str
    """The platform behind Bot Service, such as `msteams` or `webchat`."""
    conversation: str = ""
    """The id of the conversation, with its thread; empty if the direct chat has still to be created."""
    bot: str = ""
    user: str = ""
    """The id of the person on the platform, in a direct chat."""
    tenant: str = ""
    kind: str = ""
    """The type of the conversation on Teams."""
    locale: str = ""
    audience: str = ""
    """The app id of the bot that has called this one as a skill; our token is for it."""
    emulator: bool = False
    """Whether it is a conversation of the emulator on this machine."""


class Created(msgspec.Struct, frozen=True):
    """The response to an activity or a conversation that was created. Teams may send an empty one."""

    id: str | None = None


class Problem(msgspec.Struct, frozen=True):
    code: str | None = None
    message: str | None = None


class Refusal(msgspec.Struct, frozen=True):
    error: Problem | None = None
