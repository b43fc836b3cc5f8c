"""The people, chats and messages of the platform, and how the Bot API shows them."""

from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
ChatKind = Literal["private", "group", "supergroup"]
Status = Literal["creator", "administrator", "member", "left", "kicked"]

TYPING_SECONDS = 5.0
"""The time for which a chat action is shown."""
DRAFT_SECONDS = 30.0
"""The time for which a draft is shown."""


@dataclass(slots=True, eq=False)
class User:
    """A person, or the account of a bot."""

    id: int
    first_name: str
    last_name: str = ""
    username: str = ""
    language_code: str = ""
    is_bot: bool = False
    deactivated: bool = False

    def as_json(self) -> Json:
        """Return the object `User`."""
        body: Json = {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name}
        return {**body, **_collect_fields(self, "last_name", "username", "language_code")}


ANONYMOUS = User(1087968824, "Group", username="GroupAnonymousBot", is_bot=True)
"""The sender that is shown of an administrator who is anonymous."""

_RIGHTS = (
    *("can_manage_chat", "can_delete_messages", "can_manage_video_chats", "can_restrict_members"),
    *("can_promote_members", "can_change_info", "can_invite_users", "can_post_stories", "can_edit_stories"),
    *("can_delete_stories", "can_send_welcome_messages"),
)


@dataclass(slots=True, eq=False)
class Member:
    """A user in a chat, or one who was in it."""

    user: User
    status: Status = "member"
    anonymous: bool = False

    def as_json(self) -> Json:
        """Return the object `ChatMember`."""
        body: Json = {"status": self.status, "user": self.user.as_json()}
        if self.status == "creator":
            return {**body, "is_anonymous": self.anonymous}
        if self.status == "administrator":
            rights = dict.fromkeys((*_RIGHTS, "can_pin_messages", "can_manage_topics"), True)
            return {**body, "can_be_edited": False, "is_anonymous": self.anonymous, **rights}
        return {**body, "until_date": 0} if self.status == "kicked" else body

    @property
    def is_admin(self) -> bool:
        """Return True if the member may do what administrators may."""
        return self.status in ("creator", "administrator")

    @property
    def is_present(self) -> bool:
        """Return True if the member is in the chat."""
        return self.is_admin or self.status == "member"


@dataclass(slots=True, eq=False)
class Topic:
    """A topic of a forum, or of a private chat."""

    thread_id: int
    name: str
    icon_color: int = 7322096
    closed: bool = False

    def as_json(self) -> Json:
        """Return the object `ForumTopic`."""
        return {"message_thread_id": self.thread_id, "name": self.name, "icon_color": self.icon_color}


@dataclass(slots=True)
class Draft:
    """The partial message that a bot streams."""

    draft_id: int
    text: str
    until: float
    can_stop: bool = False
    keep_on_stop: bool = False


@dataclass(slots=True, eq=False)
class Chat:
    """A chat with its messages."""

    id: int
    kind: ChatKind
    title: str = ""
    username: str = ""
    is_forum: bool = False
    person: User | None = None
    """The person of a private chat."""
    members: dict[int, Member] = field(default_factory=dict[int, Member])
    messages: dict[int, "Message"] = field(default_factory=dict[int, "Message"])
    topics: dict[int, Topic] = field(default_factory=dict[int, Topic])
    migrated_to: int | None = None
    actions: dict[tuple[int, int | None], tuple[str, float]] = field(
        default_factory=dict[tuple[int, int | None], tuple[str, float]]
    )
    """The action that is shown of a bot in a topic, and until when."""
    drafts: dict[tuple[int, int | None], Draft] = field(default_factory=dict[tuple[int, int | None], Draft])
    """The draft that is shown of a bot in a topic."""
    last_message_id: int = 0
    last_bot: int = 0
    """The bot that was the last one to write."""

    def as_json(self) -> Json:
        """Return the object `Chat`."""
        body: Json = {"id": self.id, "type": self.kind}
        if self.person is not None:
            return {**body, **_collect_fields(self.person, "username", "first_name", "last_name")}
        body = {**body, **_collect_fields(self, "title", "username")}
        return {**body, "is_forum": True} if self.is_forum else body

    def get_status(self, user_id: int) -> Status:
        """Return the status of a user."""
        member = self.members.get(user_id)
        return "left" if member is None else member.status

    def is_admin(self, user_id: int) -> bool:
        """Return True if a user is an administrator."""
        return user_id in self.members and self.members[user_id].is_admin


@dataclass(slots=True, eq=False)
class Message:
    """The current state of a message."""

    message_id: int
    chat: Chat
    sender: User
    date: int
    content: Json
    """The fields of its content: `text`, `entities`, `photo`, and those of service messages."""
    anonymous: bool = False
    thread_id: int | None = None
    is_topic: bool = False
    reply_to: "Message | None" = None
    quote: Json | None = None
    markup: Json | None = None
    """The keyboard under it."""
    media_group_id: str = ""
    edit_date: int | None = None
    deleted: bool = False
    protected: bool = False

    def as_json(self, *, with_reply: bool = True) -> Json:
        """Return the object `Message`."""
        sender = ANONYMOUS if self.anonymous else self.sender
        body: Json = {"message_id": self.message_id, "from": sender.as_json(), "chat": self.chat.as_json()}
        body["date"] = self.date
        if self.anonymous:
            body["sender_chat"] = self.chat.as_json()
        if self.thread_id is not None:
            body["message_thread_id"] = self.thread_id
        if self.is_topic:
            body["is_topic_message"] = True
        if with_reply and self.reply_to is not None and not self.reply_to.deleted:
            body["reply_to_message"] = self.reply_to.as_json(with_reply=False)
        if self.quote is not None:
            body["quote"] = self.quote
        if self.edit_date is not None:
            body["edit_date"] = self.edit_date
        if self.media_group_id:
            body["media_group_id"] = self.media_group_id
        if self.protected:
            body["has_protected_content"] = True
        body.update(self.content)
        if self.markup is not None and "inline_keyboard" in self.markup:
            body["reply_markup"] = self.markup
        return body


def _collect_fields(record: object, *names: str) -> Json:
    return {name: value for name in names if (value := getattr(record, name))}
