"""The whole state of the platform: bots, people, chats and files, and updates."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from frontdesk_testing.telegram.bots import Bot
from frontdesk_testing.telegram.clock import MovableClock
from frontdesk_testing.telegram.errors import ApiError
from frontdesk_testing.telegram.files import Files
from frontdesk_testing.telegram.flood import FloodControl, FloodLimits
from frontdesk_testing.telegram.privacy import sees
from frontdesk_testing.telegram.records import Chat, ChatKind, Json, Member, Message, Status, User
from frontdesk_testing.telegram.updates import UpdateQueue
from frontdesk_testing.telegram.webhooks import Webhooks

FIRST_UPDATE = 100_000_001


class World:
    """The state of the platform."""

    def __init__(self, clock: MovableClock, limits: FloodLimits | None = None) -> None:
        self.clock = clock
        self.flood = FloodControl(limits)
        self.files = Files()
        self.users: dict[int, User] = {}
        self.bots: dict[str, Bot] = {}
        """The bots, by their tokens."""
        self.chats: dict[int, Chat] = {}
        """The groups, by their ids; private chats are those of a bot."""
        self.closed = False
        """Whether the platform is about to end."""
        self.changes = 0
        self._changed = asyncio.Event()
        self._ids = count(1)
        self.webhooks = Webhooks(clock, self.change)

    def change(self) -> None:
        """Signal that something has changed."""
        self.changes += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, condition: Callable[[], Any], *, within: float = 60.0) -> None:
        """Wait until a condition holds. It is checked after every change."""
        async with asyncio.timeout(within):
            while True:
                changed = self._changed
                if condition():
                    return
                await changed.wait()

    def now(self) -> int:
        """Return the time as dates of the Bot API have it."""
        return int(self.clock.now())

    def new_id(self, subject: str) -> int:
        """Return a new id. Ids are deterministic."""
        number = next(self._ids)
        digest = hashlib.blake2b(f"{subject}:{number}".encode(), digest_size=4).digest()
        return int.from_bytes(digest) % 900_000 * 1_000 + 1_000_000 + number

    def add_bot(self, name: str, username: str, *, token: str = "", privacy: bool = True, topics: bool = False) -> Bot:
        """Add a bot. Without a token it gets one."""
        given = token.partition(":")[0]
        user = User(int(given) if given.isdigit() else self.new_id("bot"), name, username=username, is_bot=True)
        secret = hashlib.blake2b(username.encode(), digest_size=18).hexdigest()[:35]
        bot = Bot(user, token or f"{user.id}:{secret}", UpdateQueue(self.clock, FIRST_UPDATE), privacy, topics)
        self.users[user.id] = user
        self.bots[bot.token] = bot
        self.change()
        return bot

    def add_user(self, user: User) -> User:
        """Add a person."""
        self.users[user.id] = user
        self.change()
        return user

    def add_chat(self, kind: ChatKind, title: str, members: Iterable[Member], *, forum: bool = False) -> Chat:
        """Add a group."""
        number = self.new_id(kind)
        chat_id = -1_000_000_000_000 - number if kind == "supergroup" else -number
        chat = Chat(chat_id, kind, title=title, is_forum=forum)
        chat.members = {member.user.id: member for member in members}
        self.chats[chat.id] = chat
        self.change()
        return chat

    def private_chat(self, bot: Bot, user: User) -> Chat:
        """Return the chat of a person with a bot. It exists once the person has started it."""
        if user.id not in bot.private:
            chat = Chat(user.id, "private", person=user, is_forum=bot.has_topics)
            chat.members = {user.id: Member(user), bot.user.id: Member(bot.user)}
            bot.private[user.id] = chat
            self.change()
        return bot.private[user.id]

    def list_bots(self, chat: Chat) -> list[Bot]:
        """Return the bots that are in a chat."""
        if chat.kind == "private":
            return [bot for bot in self.bots.values() if bot.private.get(chat.id) is chat]
        return [bot for bot in self.bots.values() if chat.get_status(bot.user.id) not in ("left", "kicked")]

    def post(self, chat: Chat, sender: User, content: Json, **details: Any) -> Message:
        """Add a message, and the updates of the bots that see it. `details` are the other fields of `Message`."""
        number = self.next_message_id(chat)
        (self.list_bots(chat)[0] if chat.kind == "private" else chat).last_message_id = number
        message = Message(number, chat, sender, self.now(), content, **details)
        chat.messages[message.message_id] = message
        if sender.is_bot:
            chat.last_bot = sender.id
            chat.actions.pop((sender.id, message.thread_id), None)
            chat.drafts.pop((sender.id, message.thread_id), None)
        self.show("message", message)
        self.change()
        return message

    def next_message_id(self, chat: Chat) -> int:
        """Return the id of the next message: private chats share those of their bot."""
        return (self.list_bots(chat)[0] if chat.kind == "private" else chat).last_message_id + 1

    def show(self, kind: str, message: Message) -> None:
        """Add an update about a message for every bot that sees it."""
        for bot in self.list_bots(message.chat):
            if sees(bot, message):
                bot.updates.add(kind, message.as_json(), f"chat:{message.chat.id}")

    def set_status(self, chat: Chat, by: User, user: User, status: Status, *, anonymous: bool = False) -> None:
        """Change the status of a user in a chat, with its updates."""
        before = chat.members.get(user.id) or Member(user, "left")
        after = Member(user, status, anonymous)
        audience = self.list_bots(chat)
        chat.members[user.id] = after
        change: Json = {"chat": chat.as_json(), "from": by.as_json(), "date": self.now()}
        change |= {"old_chat_member": before.as_json(), "new_chat_member": after.as_json()}
        for bot in {bot.token: bot for bot in [*audience, *self.list_bots(chat)]}.values():
            if bot.user is user or chat.kind == "private":
                bot.updates.add("my_chat_member", change, f"chat:{chat.id}")
            elif chat.is_admin(bot.user.id):
                bot.updates.add("chat_member", change, f"chat:{chat.id}")
        self.change()

    def build_migration_error(self, chat: Chat) -> ApiError:
        """Return the error of a call to a group that has become a supergroup."""
        description = "Bad Request: group chat was upgraded to a supergroup chat"
        return ApiError(400, description, migrate_to_chat_id=chat.migrated_to or 0)
