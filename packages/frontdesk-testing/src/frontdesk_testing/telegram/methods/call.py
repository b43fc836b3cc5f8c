"""A call of a bot, and the objects of its parameters."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from frontdesk_testing.telegram.bots import Bot
from frontdesk_testing.telegram.errors import bad_request, forbidden
from frontdesk_testing.telegram.files import Upload
from frontdesk_testing.telegram.markup.entities import format_text
from frontdesk_testing.telegram.markup.text import FormattedText, units
from frontdesk_testing.telegram.records import Chat, Json, Message
from frontdesk_testing.telegram.world import World

TEXT_LIMIT = 4096
CAPTION_LIMIT = 1024
MAX_BUTTONS = 100
_LOOKS = {"text", "icon_custom_emoji_id", "style"}


@dataclass(frozen=True, slots=True)
class Call:
    """A call with parameters of valid types."""

    world: World
    bot: Bot
    method: str
    given: Json
    uploads: Mapping[str, Upload]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a parameter."""
        return self.given.get(name, default)

    def chat(self, *, writing: bool = False) -> Chat:
        """Return the chat that the call names."""
        return find_chat(self.world, self.bot, self.given["chat_id"], writing=writing)

    def message(self, chat: Chat, purpose: str) -> Message:
        """Return the message of the call. `purpose` is used in the error text."""
        message = chat.messages.get(self.given["message_id"])
        if message is None or message.deleted:
            raise bad_request(f"message to {purpose} not found")
        return message


Method = Callable[[Call], Any | Awaitable[Any]]
"""Acts on a call, and returns its result."""


def find_chat(world: World, bot: Bot, chat_id: int | str, *, writing: bool = False) -> Chat:
    """Return a chat that a bot can reach, and may write in."""
    if isinstance(chat_id, str):
        names = {f"@{chat.username}".lower(): chat for chat in world.chats.values() if chat.username}
        chat = names.get(chat_id.lower())
    else:
        chat = bot.private.get(chat_id) if chat_id > 0 else world.chats.get(chat_id)
    if chat is None:
        if chat_id in world.users:
            raise forbidden("bot can't initiate conversation with a user")
        raise bad_request("chat not found")
    if chat.migrated_to is not None:
        raise world.build_migration_error(chat)
    if chat.kind != "private" and bot.user.id not in chat.members:
        raise bad_request("chat not found")
    if writing:
        _check_may_write(bot, chat)
    return chat


def _check_may_write(bot: Bot, chat: Chat) -> None:
    if chat.person is not None:
        if chat.person.deactivated:
            raise forbidden("user is deactivated")
        if chat.id in bot.blocked_by:
            raise forbidden("bot was blocked by the user")
        return
    status = chat.get_status(bot.user.id)
    if status == "kicked":
        raise forbidden(f"bot was kicked from the {chat.kind} chat")
    if status == "left":
        raise forbidden(f"bot is not a member of the {chat.kind} chat")


def find_thread(call: Call, chat: Chat) -> Json:
    """Return the topic fields of a new message."""
    thread_id = call.get("message_thread_id")
    if not thread_id:
        return {}
    topic = chat.topics.get(thread_id)
    if not chat.is_forum or topic is None:
        raise bad_request("message thread not found")
    if topic.closed and not chat.is_admin(call.bot.user.id):
        raise bad_request("TOPIC_CLOSED")
    return {"thread_id": thread_id, "is_topic": True}


def find_reply(call: Call, chat: Chat, thread: Json) -> Json:
    """Return the reply fields of a new message."""
    given = call.get("reply_parameters")
    if not given or "message_id" not in given:
        return {}
    if given.get("chat_id", chat.id) != chat.id:
        raise bad_request("replies to messages of other chats are not covered by the fake")
    message = chat.messages.get(given["message_id"])
    if message is None or message.deleted:
        if given.get("allow_sending_without_reply"):
            return {}
        raise bad_request("message to be replied not found")
    fields: Json = {"reply_to": message}
    if not thread and message.is_topic:
        fields |= {"thread_id": message.thread_id, "is_topic": True}
    elif not chat.is_forum and chat.kind == "supergroup":
        fields["thread_id"] = message.thread_id or message.message_id
    if given.get("quote"):
        fields["quote"] = _quote(given, message)
    return fields


def _quote(given: Json, message: Message) -> Json:
    text = message.content.get("text") or message.content.get("caption") or ""
    quote = format_text(given["quote"], given.get("quote_parse_mode"), given.get("quote_entities"))
    place = text.find(quote.text)
    if place < 0:
        raise bad_request("QUOTE_TEXT_INVALID")
    body: Json = {"text": quote.text, "position": units(text[:place]), "is_manual": True}
    return {**body, "entities": list(quote.entities)} if quote.entities else body


def find_markup(call: Call) -> Json | None:
    """Return the keyboard of a call, or None if it is not supported."""
    markup = call.get("reply_markup")
    if not markup:
        return None
    rows: list[list[Json]] = markup.get("inline_keyboard", [])
    if "inline_keyboard" in markup and not any(rows):
        return None
    if sum(map(len, rows)) > MAX_BUTTONS:
        raise bad_request("REPLY_MARKUP_TOO_LONG")
    for button in (button for row in rows for button in row):
        actions = button.keys() - _LOOKS
        if not actions:
            raise bad_request("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
        if len(actions) > 1:
            raise bad_request("can't parse inline keyboard button: exactly one of the optional fields must be used")
        if not button["text"].strip():
            raise bad_request("BUTTON_TEXT_INVALID")
        if "url" in button and not button["url"].startswith(("http://", "https://", "tg://")):
            raise bad_request(f"inline keyboard button URL '{button['url']}' is invalid: Wrong HTTP URL")
    return markup


def find_text(call: Call, name: str = "text", entities: str = "entities", *, empty: bool = False) -> FormattedText:
    """Return the text of a call, parsed and within its limit."""
    text = format_text(call.get(name, ""), call.get("parse_mode"), call.get(entities))
    if not text.text and not empty:
        raise bad_request("message text is empty")
    limit = CAPTION_LIMIT if name == "caption" else TEXT_LIMIT
    if units(text.text) > limit:
        raise bad_request("message caption is too long" if name == "caption" else "message is too long")
    return text


def text_content(text: FormattedText) -> Json:
    """Return the fields of a message of text."""
    return {"text": text.text, "entities": list(text.entities)} if text.entities else {"text": text.text}


def caption_content(text: FormattedText) -> Json:
    """Return the fields of a caption."""
    if not text.text:
        return {}
    entities = {"caption_entities": list(text.entities)} if text.entities else {}
    return {"caption": text.text, **entities}


def send(call: Call, content: Callable[[], Json]) -> Message:
    """Post a message of the bot to the chat of the call. The content is checked last, as by the server."""
    chat = call.chat(writing=True)
    thread = find_thread(call, chat)
    reply = find_reply(call, chat, thread)
    markup = find_markup(call)
    made = content()
    call.world.flood.count(call.bot.user.id, chat, call.world.clock.now())
    protected = bool(call.get("protect_content"))
    return call.world.post(chat, call.bot.user, made, markup=markup, protected=protected, **thread, **reply)
