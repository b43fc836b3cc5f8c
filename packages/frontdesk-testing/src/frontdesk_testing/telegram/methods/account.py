"""The bot itself: its account, its commands, and the buttons that were pressed."""

import re

from frontdesk_testing.telegram.bots import Bot, CommandKey
from frontdesk_testing.telegram.errors import bad_request
from frontdesk_testing.telegram.methods.call import Call, Method, find_chat
from frontdesk_testing.telegram.records import Chat, Json, User
from frontdesk_testing.telegram.updates import CLICK_LIFETIME_SECONDS

MAX_COMMANDS = 100
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_LANGUAGE = re.compile(r"(?:[a-z]{2})?")
_TOO_OLD = "query is too old and response timeout expired or query ID is invalid"


def get_me(call: Call) -> Json:
    """Return the account of the bot."""
    return call.bot.as_json()


def answer_callback_query(call: Call) -> bool:
    """Answer a callback query, which ends the button's waiting indicator."""
    callback = call.bot.callbacks.get(call.given["callback_query_id"])
    if callback is None or call.world.clock.now() - callback.at >= CLICK_LIFETIME_SECONDS:
        raise bad_request(_TOO_OLD)
    if not callback.answered:
        callback.answered, callback.text = True, call.get("text", "")
        callback.alert, callback.url = bool(call.get("show_alert")), call.get("url", "")
    call.world.change()
    return True


def _key(call: Call) -> CommandKey:
    scope: Json = call.get("scope") or {"type": "default"}
    language = call.get("language_code", "")
    if not _LANGUAGE.fullmatch(language):
        raise bad_request("invalid language code specified")
    chat_id = 0
    if "chat_id" in scope:
        chat_id = find_chat(call.world, call.bot, scope["chat_id"]).id
    return scope["type"], chat_id, scope.get("user_id", 0), language


def set_commands(call: Call) -> bool:
    """Set the commands of a scope and a language."""
    key, commands = _key(call), call.given["commands"]
    if len(commands) > MAX_COMMANDS:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    for command in commands:
        if not _COMMAND.fullmatch(command["command"].removeprefix("/")):
            raise bad_request("BOT_COMMAND_INVALID")
    call.bot.commands[key] = [{**command, "command": command["command"].removeprefix("/")} for command in commands]
    call.world.change()
    return True


def get_commands(call: Call) -> list[Json]:
    """Return the commands of a scope and a language."""
    return call.bot.commands.get(_key(call), [])


def delete_commands(call: Call) -> bool:
    """Remove the commands of a scope and a language."""
    call.bot.commands.pop(_key(call), None)
    call.world.change()
    return True


def menu(bot: Bot, chat: Chat, user: User) -> list[Json]:
    """Return the commands that a person sees in a chat: those of the most specific scope and language."""
    scopes = [("chat", chat.id, 0), ("all_private_chats", 0, 0), ("default", 0, 0)]
    if chat.kind != "private":
        admin = chat.is_admin(user.id)
        scopes = [("chat_member", chat.id, user.id)]
        scopes += [("chat_administrators", chat.id, 0)] if admin else []
        scopes += [("chat", chat.id, 0)]
        scopes += [("all_chat_administrators", 0, 0)] if admin else []
        scopes += [("all_group_chats", 0, 0), ("default", 0, 0)]
    for scope in scopes:
        for language in (user.language_code[:2], ""):
            if commands := bot.commands.get((*scope, language)):
                return commands
    return []


METHODS: dict[str, Method] = {
    "getMe": get_me,
    "answerCallbackQuery": answer_callback_query,
    "setMyCommands": set_commands,
    "getMyCommands": get_commands,
    "deleteMyCommands": delete_commands,
}
