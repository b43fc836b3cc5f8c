"""Actions of people on the platform."""

import re
from collections.abc import Sequence
from typing import Any

from frontdesk_testing.telegram.bots import Bot, Callback
from frontdesk_testing.telegram.files import Upload, render_media
from frontdesk_testing.telegram.markup.entities import format_text
from frontdesk_testing.telegram.markup.text import FormattedText
from frontdesk_testing.telegram.methods.account import menu
from frontdesk_testing.telegram.methods.call import caption_content, text_content
from frontdesk_testing.telegram.records import Chat, Json, Message, User
from frontdesk_testing.telegram.transcript import ShownMessage, Transcript, transcript
from frontdesk_testing.telegram.world import World

_PAYLOAD = re.compile(r"[A-Za-z0-9_-]{0,64}")
Media = tuple[str, Upload]
"""A kind of media, such as `photo`, and its file."""


class People:
    """Acts for people. Defaults are the first bot, and the person's chat with it."""

    def __init__(self, world: World, bot: Bot) -> None:
        self.world = world
        self.bot = bot

    def user(
        self,
        first_name: str,
        *,
        last_name: str = "",
        username: str = "",
        language_code: str = "",
        user_id: int | None = None,
    ) -> User:
        """Add a person."""
        number = self.world.new_id("user") if user_id is None else user_id
        return self.world.add_user(User(number, first_name, last_name, username, language_code))

    def private(self, user: User, *, bot: Bot | None = None) -> Chat:
        """Return the chat of a person with a bot, opened if needed."""
        return self.world.private_chat(bot or self.bot, user)

    def start(self, user: User, payload: str = "", *, bot: Bot | None = None) -> Message:
        """Press the start button, or follow a link with a payload."""
        if not _PAYLOAD.fullmatch(payload):
            raise ValueError("the payload of a link has up to 64 of A-Z, a-z, 0-9, _ and -")
        return self.say(user, f"/start {payload}".rstrip(), bot=bot)

    def say(
        self,
        user: User,
        text: str = "",
        chat: Chat | None = None,
        *,
        entities: Sequence[Json] | None = None,
        media: Media | None = None,
        reply_to: Message | None = None,
        thread: int | None = None,
        bot: Bot | None = None,
    ) -> Message:
        """Write as a person. With a file, the text is its caption."""
        written = format_text(text, None, entities)
        return self.post(user, self._content(written, media), chat, reply_to=reply_to, thread=thread, bot=bot)

    def _content(self, text: FormattedText, media: Media | None, **details: Any) -> Json:
        if media is None:
            return text_content(text)
        kind, upload = media
        return {**render_media(self.world.files.add(kind, upload), details), **caption_content(text)}

    def post(
        self,
        user: User,
        content: Json,
        chat: Chat | None = None,
        *,
        reply_to: Message | None = None,
        thread: int | None = None,
        bot: Bot | None = None,
        **details: Any,
    ) -> Message:
        """Send a message of any content as a person. `content` has fields of the object `Message`."""
        chat = chat or self.private(user, bot=bot)
        self._check_present(user, chat)
        fields: Json = {"reply_to": reply_to, "anonymous": _is_anonymous(chat, user), **details}
        if thread is not None:
            if thread not in chat.topics:
                raise ValueError(f"the chat has no topic {thread}")
            fields |= {"thread_id": thread, "is_topic": True}
        elif reply_to is not None and reply_to.is_topic:
            fields |= {"thread_id": reply_to.thread_id, "is_topic": True}
        elif reply_to is not None and chat.kind == "supergroup" and not chat.is_forum:
            fields["thread_id"] = reply_to.thread_id or reply_to.message_id
        return self.world.post(chat, user, content, **fields)

    def _check_present(self, user: User, chat: Chat) -> None:
        if chat.migrated_to is not None:
            raise ValueError("this group has become a supergroup")
        if chat.get_status(user.id) in ("left", "kicked"):
            raise ValueError(f"{user.first_name} is not in this chat")
        if chat.kind == "private" and any(chat.id in bot.blocked_by for bot in self.world.list_bots(chat)):
            raise ValueError(f"{user.first_name} has blocked the bot")

    def share_location(self, user: User, latitude: float, longitude: float, chat: Chat | None = None) -> Message:
        """Send a location."""
        return self.post(user, {"location": {"latitude": latitude, "longitude": longitude}}, chat)

    def share_contact(self, user: User, phone_number: str, first_name: str, chat: Chat | None = None) -> Message:
        """Send a phone number with a name."""
        return self.post(user, {"contact": {"phone_number": phone_number, "first_name": first_name}}, chat)

    def forward(self, user: User, message: Message, chat: Chat | None = None) -> Message:
        """Forward a message to a chat."""
        origin = {"type": "user", "date": message.date, "sender_user": message.sender.as_json()}
        return self.post(user, {**message.content, "forward_origin": origin}, chat)

    def send_album(
        self,
        user: User,
        files: Sequence[Media],
        chat: Chat | None = None,
        *,
        caption: str = "",
        thread: int | None = None,
    ) -> list[Message]:
        """Send several files as one album. The caption is that of the first."""
        group = str(self.world.new_id("album"))
        texts = [format_text(caption, None, None), *[FormattedText("")] * (len(files) - 1)]
        contents = [self._content(text, file) for text, file in zip(texts, files, strict=True)]
        return [self.post(user, content, chat, thread=thread, media_group_id=group) for content in contents]

    def edit(self, message: Message, text: str, *, entities: Sequence[Json] | None = None) -> Message:
        """Change the text or the caption of a message as the person who wrote it."""
        written = format_text(text, None, entities)
        names = ("text", "entities", "caption", "caption_entities")
        kept = {name: value for name, value in message.content.items() if name not in names}
        message.content = {**kept, **(text_content(written) if "text" in message.content else caption_content(written))}
        message.edit_date = self.world.now()
        self.world.show("edited_message", message)
        self.world.change()
        return message

    def delete(self, message: Message) -> None:
        """Delete a message. Bots receive no update."""
        message.deleted = True
        self.world.change()

    def press(self, user: User, message: Message | ShownMessage, button: str) -> Callback:
        """Press a button under a message, named by its label or its data. The callback has the bot's answer.

        The message may be one that `shown` has returned. A button that has changed since is pressed as it is now.
        """
        if isinstance(message, ShownMessage):
            message = self._get_message(message)
        data = _encode_data(message, button)
        bot = next(bot for bot in self.world.bots.values() if bot.user is message.sender)
        callback = Callback(str(self.world.new_id("callback")), user, data, self.world.clock.now())
        bot.callbacks[callback.id] = callback
        shown = message.as_json()
        if message.deleted:
            shown = {"chat": message.chat.as_json(), "message_id": message.message_id, "date": 0}
        body: Json = {"id": callback.id, "from": user.as_json(), "message": shown, "data": data}
        body["chat_instance"] = str(abs(message.chat.id))
        bot.updates.add("callback_query", body, f"click:{user.id}")
        self.world.change()
        return callback

    def _get_message(self, shown: ShownMessage) -> Message:
        groups = self.world.chats.get(shown.chat_id)
        privates = (
            bot.private.get(shown.chat_id) for bot in self.world.bots.values() if bot.user.id == shown.sender_id
        )
        chat = groups or next(privates, None)
        if chat is None or shown.message_id not in chat.messages:
            raise ValueError(f"there is no message {shown.message_id} of a bot in the chat {shown.chat_id}")
        return chat.messages[shown.message_id]

    def stop(self, user: User, *, thread: int | None = None, bot: Bot | None = None) -> None:
        """Press the button that stops the drafts of a bot."""
        bot = bot or self.bot
        chat = self.private(user, bot=bot)
        draft = chat.drafts.get((bot.user.id, thread))
        if draft is None or not draft.can_stop or draft.until <= self.world.clock.now():
            raise ValueError("there is no draft that can be stopped")
        if not draft.keep_on_stop:
            del chat.drafts[bot.user.id, thread]
        body: Json = {"chat": chat.as_json(), "draft_id": draft.draft_id}
        body |= {"message_thread_id": thread} if thread is not None else {}
        bot.updates.add("stopped_message_generation", body, f"chat:{chat.id}")
        self.world.change()

    def shown(self, chat: Chat, *, thread: int | None = None) -> Transcript:
        """Return the chat, or one of its topics, as a person sees it."""
        return transcript(chat, self.world.clock.now(), thread)

    def menu(self, user: User, chat: Chat | None = None, *, bot: Bot | None = None) -> dict[str, str]:
        """Return the descriptions of the commands that a person is offered, by their names."""
        commands = menu(bot or self.bot, chat or self.private(user, bot=bot), user)
        return {command["command"]: command["description"] for command in commands}


def _is_anonymous(chat: Chat, user: User) -> bool:
    return user.id in chat.members and chat.members[user.id].anonymous


def _encode_data(message: Message, button: str) -> str:
    rows: list[list[Json]] = (message.markup or {}).get("inline_keyboard", [])
    buttons = [shown for row in rows for shown in row if "callback_data" in shown]
    for shown in buttons:
        if button in (shown["text"], shown["callback_data"]):
            return shown["callback_data"]
    labels = [shown["text"] for shown in buttons]
    raise ValueError(f"there is no button {button!r}, only {labels}")
