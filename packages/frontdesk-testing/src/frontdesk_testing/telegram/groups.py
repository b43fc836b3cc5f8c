"""Groups and their members."""

from collections.abc import Iterable

from frontdesk_testing.telegram.bots import Bot
from frontdesk_testing.telegram.people import People
from frontdesk_testing.telegram.records import Chat, ChatKind, Member, Message, Topic, User


class Groups(People):
    """Acts for people in groups."""

    def group(
        self,
        title: str,
        *people: User,
        admins: Iterable[User] = (),
        bots: Iterable[Bot] | None = None,
        bot_is_admin: bool = False,
        kind: ChatKind = "group",
        forum: bool = False,
    ) -> Chat:
        """Add a group. The first person is its owner, and adds the bots."""
        if not people:
            raise ValueError("a group has somebody in it")
        owner, leading = people[0], set(admins)
        members = [Member(user, "administrator" if user in leading else "member") for user in people]
        members[0].status = "creator"
        chat = self.world.add_chat(kind, title, members, forum=forum)
        for bot in [self.bot] if bots is None else bots:
            self.add_bot(chat, bot, by=owner, admin=bot_is_admin)
        return chat

    def supergroup(self, title: str, *people: User, forum: bool = False, bot_is_admin: bool = False) -> Chat:
        """Add a supergroup with the first bot in it. With `forum` it has topics."""
        return self.group(title, *people, kind="supergroup", forum=forum, bot_is_admin=bot_is_admin)

    def add_bot(self, chat: Chat, bot: Bot, *, by: User, admin: bool = False) -> None:
        """Add a bot to a group."""
        self.world.set_status(chat, by, bot.user, "administrator" if admin else "member")
        self.world.post(chat, by, {"new_chat_members": [bot.user.as_json()]})

    def promote(self, chat: Chat, user: User, *, by: User, anonymous: bool = False) -> None:
        """Make somebody an administrator. An anonymous one writes in the name of the group."""
        owner = chat.get_status(user.id) == "creator"
        self.world.set_status(chat, by, user, "creator" if owner else "administrator", anonymous=anonymous)

    def join(self, chat: Chat, user: User) -> Message:
        """Let a person join a group."""
        self.world.set_status(chat, user, user, "member")
        return self.world.post(chat, user, {"new_chat_members": [user.as_json()]})

    def leave(self, chat: Chat, user: User) -> Message:
        """Let a person leave a group."""
        message = self.world.post(chat, user, {"left_chat_member": user.as_json()})
        self.world.set_status(chat, user, user, "left")
        return message

    def kick(self, chat: Chat, user: User, *, by: User) -> None:
        """Remove a person or a bot from a group for good."""
        self.world.set_status(chat, by, user, "kicked")
        self.world.post(chat, by, {"left_chat_member": user.as_json()})

    def block(self, user: User, *, bot: Bot | None = None) -> None:
        """Block a bot."""
        bot = bot or self.bot
        bot.blocked_by.add(user.id)
        self.world.set_status(self.private(user, bot=bot), user, bot.user, "kicked")

    def unblock(self, user: User, *, bot: Bot | None = None) -> None:
        """Unblock a bot."""
        bot = bot or self.bot
        bot.blocked_by.discard(user.id)
        self.world.set_status(self.private(user, bot=bot), user, bot.user, "member")

    def deactivate(self, user: User) -> None:
        """Delete the account of a person."""
        user.deactivated, user.first_name = True, ""
        self.world.change()

    def topic(self, chat: Chat, name: str, *, by: User) -> Topic:
        """Create a topic. Its id is that of its service message."""
        if not chat.is_forum:
            raise ValueError("this chat has no topics")
        topic = Topic(0, name)
        content = {"forum_topic_created": {"name": name, "icon_color": topic.icon_color}}
        topic.thread_id = self.world.next_message_id(chat)
        self.world.post(chat, by, content, thread_id=topic.thread_id, is_topic=True)
        chat.topics[topic.thread_id] = topic
        return topic

    def migrate(self, chat: Chat, *, by: User) -> Chat:
        """Convert a group to a supergroup: an empty chat with another id."""
        members = [Member(member.user, member.status, member.anonymous) for member in chat.members.values()]
        new = self.world.add_chat("supergroup", chat.title, members)
        self.world.post(chat, by, {"migrate_to_chat_id": new.id})
        chat.migrated_to = new.id
        self.world.post(new, by, {"migrate_from_chat_id": chat.id})
        return new
