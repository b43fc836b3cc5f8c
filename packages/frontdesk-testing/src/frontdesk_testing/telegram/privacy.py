"""Privacy mode: which messages of a group a bot receives. Pure."""

from frontdesk_testing.telegram.bots import Bot
from frontdesk_testing.telegram.records import Json, Message

_SERVICE = (
    *("new_chat_members", "left_chat_member", "group_chat_created", "supergroup_chat_created", "new_chat_title"),
    *("migrate_to_chat_id", "migrate_from_chat_id", "forum_topic_created", "forum_topic_edited"),
    *("forum_topic_closed", "forum_topic_reopened", "pinned_message"),
)


def sees(bot: Bot, message: Message) -> bool:
    """Return True if a bot gets a message as an update."""
    if message.sender is bot.user or (message.sender.is_bot and not is_service(message.content)):
        return False
    if message.chat.kind == "private":
        return True
    member = message.chat.members.get(bot.user.id)
    if member is None or not member.is_present:
        return False
    return not bot.privacy or member.is_admin or is_service(message.content) or _is_meant_for(bot, message)


def is_service(content: Json) -> bool:
    """Return True for a service message."""
    return any(name in content for name in _SERVICE)


def _is_meant_for(bot: Bot, message: Message) -> bool:
    if message.reply_to is not None and message.reply_to.sender is bot.user:
        return True
    handle = f"@{bot.user.username}".lower()
    for kind, text, user_id in mentions(message.content):
        if kind == "text_mention" and user_id == bot.user.id:
            return True
        if kind == "mention" and text.lower() == handle:
            return True
        if kind == "bot_command":
            _, at, name = text.partition("@")
            # A command without a name is for the bot that wrote last.
            if f"@{name}".lower() == handle if at else message.chat.last_bot in (0, bot.user.id):
                return True
    return False


def mentions(content: Json) -> list[tuple[str, str, int]]:
    """Return the type of every entity of a message, with the text and the user that it has."""
    text = content.get("text") or content.get("caption") or ""
    encoded = text.encode("utf-16-le", "surrogatepass")
    shown: list[tuple[str, str, int]] = []
    for entity in content.get("entities") or content.get("caption_entities") or ():
        begin, end = 2 * entity["offset"], 2 * (entity["offset"] + entity["length"])
        part = encoded[begin:end].decode("utf-16-le", "surrogatepass")
        shown.append((entity["type"], part, entity.get("user", {}).get("id", 0)))
    return shown
