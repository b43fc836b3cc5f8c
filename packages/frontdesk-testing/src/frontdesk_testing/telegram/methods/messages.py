"""Texts: sending, streaming, editing and deleting them."""

from frontdesk_testing.telegram.errors import bad_request
from frontdesk_testing.telegram.methods.call import (
    Call,
    Method,
    caption_content,
    find_markup,
    find_text,
    find_thread,
    send,
    text_content,
)
from frontdesk_testing.telegram.methods.rich import extract_text, rich_content
from frontdesk_testing.telegram.records import DRAFT_SECONDS, TYPING_SECONDS, Chat, Draft, Json, Message

DELETABLE_SECONDS = 48 * 3600
_ACTIONS = {
    *("typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice", "upload_document"),
    *("choose_sticker", "find_location", "record_video_note", "upload_video_note"),
}
_NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a current content"
    " and reply markup of the message"
)


def send_message(call: Call) -> Json:
    """Send a text."""
    return send(call, lambda: text_content(find_text(call))).as_json()


def send_rich(call: Call) -> Json:
    """Send blocks."""
    return send(call, lambda: rich_content(call)).as_json()


def send_draft(call: Call) -> bool:
    """Show a partial message for a while."""
    return _show_draft(call, find_text(call, empty=True).text)


def send_rich_draft(call: Call) -> bool:
    """Show partial blocks for a while."""
    return _show_draft(call, extract_text(rich_content(call, draft=True)))


def _show_draft(call: Call, text: str) -> bool:
    if not call.given["draft_id"]:
        raise bad_request("draft identifier must be non-zero")
    chat = call.chat(writing=True)
    if chat.kind != "private":
        raise bad_request("message drafts can be sent only to private chats")
    thread_id = find_thread(call, chat).get("thread_id")
    until = call.world.clock.now() + DRAFT_SECONDS
    stop, keep = bool(call.get("can_stop")), bool(call.get("keep_on_stop"))
    chat.drafts[call.bot.user.id, thread_id] = Draft(call.given["draft_id"], text, until, stop, keep)
    call.world.change()
    return True


def send_chat_action(call: Call) -> bool:
    """Show a chat action for some seconds."""
    chat = call.chat(writing=True)
    if call.given["action"] not in _ACTIONS:
        raise bad_request("wrong parameter action in request")
    thread_id = find_thread(call, chat).get("thread_id")
    until = call.world.clock.now() + TYPING_SECONDS
    chat.actions[call.bot.user.id, thread_id] = (call.given["action"], until)
    call.world.change()
    return True


def _editable(call: Call) -> tuple[Chat, Message]:
    if "inline_message_id" in call.given:
        raise bad_request("MESSAGE_ID_INVALID")
    for name in ("chat_id", "message_id"):
        if name not in call.given:
            raise bad_request("chat_id is empty" if name == "chat_id" else "message identifier is not specified")
    chat = call.chat(writing=True)
    message = call.message(chat, "edit")
    if message.sender is not call.bot.user:
        raise bad_request("message can't be edited")
    return chat, message


def _edit(call: Call, chat: Chat, message: Message, content: Json) -> Json:
    markup = find_markup(call)
    if content == message.content and markup == message.markup:
        raise bad_request(_NOT_MODIFIED)
    call.world.flood.count(call.bot.user.id, chat, call.world.clock.now())
    message.content, message.markup, message.edit_date = content, markup, call.world.now()
    call.world.change()
    return message.as_json()


def edit_text(call: Call) -> Json:
    """Change the text of a message."""
    chat, message = _editable(call)
    if "rich_message" in call.given and "text" in call.given:
        raise bad_request("text and rich_message can't be used together")
    content = rich_content(call) if "rich_message" in call.given else text_content(find_text(call))
    if not message.content.keys() & {"text", "rich_message"}:
        raise bad_request("there is no text in the message to edit")
    return _edit(call, chat, message, content)


def edit_caption(call: Call) -> Json:
    """Change the caption of a message."""
    chat, message = _editable(call)
    if message.content.keys() & {"text", "rich_message"}:
        raise bad_request("there is no caption in the message to edit")
    text = find_text(call, "caption", "caption_entities", empty=True)
    kept = {name: value for name, value in message.content.items() if not name.startswith("caption")}
    return _edit(call, chat, message, {**kept, **caption_content(text)})


def edit_markup(call: Call) -> Json:
    """Change the keyboard under a message."""
    chat, message = _editable(call)
    return _edit(call, chat, message, message.content)


def delete_message(call: Call) -> bool:
    """Delete a message."""
    chat = call.chat()
    message = call.message(chat, "delete")
    if reason := _explain_kept(call, chat, message):
        raise bad_request(reason)
    message.deleted = True
    call.world.change()
    return True


def delete_messages(call: Call) -> bool:
    """Delete several messages. Skip those that can't be deleted."""
    chat = call.chat()
    for message_id in call.given["message_ids"]:
        message = chat.messages.get(message_id)
        if message is not None and not message.deleted and not _explain_kept(call, chat, message):
            message.deleted = True
    call.world.change()
    return True


def _explain_kept(call: Call, chat: Chat, message: Message) -> str:
    """Return the reason why a message can't be deleted, or None."""
    if call.world.now() - message.date >= DELETABLE_SECONDS:
        return "message can't be deleted for everyone"
    own = message.sender is call.bot.user
    return "" if own or chat.kind == "private" or chat.is_admin(call.bot.user.id) else "message can't be deleted"


METHODS: dict[str, Method] = {
    "sendMessage": send_message,
    "sendRichMessage": send_rich,
    "sendMessageDraft": send_draft,
    "sendRichMessageDraft": send_rich_draft,
    "sendChatAction": send_chat_action,
    "editMessageText": edit_text,
    "editMessageCaption": edit_caption,
    "editMessageReplyMarkup": edit_markup,
    "deleteMessage": delete_message,
    "deleteMessages": delete_messages,
}
