"""From the messages of the chat kit to the platform's calls. Pure."""

from frontdesk.chat.commands import Menu
from frontdesk.chat.messages import Card, Destination, OutboundMessage
from frontdesk_testing.messages.wire import Button, Command, Commands, Delete, Edit, Media, Send, Shown, Typing


def send_call(message: OutboundMessage, destination: Destination, key: str) -> Send:
    """Return the call that sends a message."""
    return Send(
        chat_id=destination.chat_id,
        thread_id=destination.thread_id,
        user_id=destination.user_id,
        text=message.text,
        media=tuple(Media(media_type=file.media_type, data=file.data, name=file.name) for file in message.media),
        buttons=_buttons(message),
        reply_to=message.reply_to,
        idempotency_key=key,
        stream=message.live,
    )


def edit_call(message_id: str, message: OutboundMessage, destination: Destination) -> Edit:
    """Return the call that changes a message."""
    return Edit(
        chat_id=destination.chat_id,
        user_id=destination.user_id,
        message_id=message_id,
        text=message.text,
        buttons=_buttons(message),
        stream=message.live,
    )


def delete_call(message_id: str, destination: Destination) -> Delete:
    """Return the call that removes a message."""
    return Delete(chat_id=destination.chat_id, user_id=destination.user_id, message_id=message_id)


def build_typing(destination: Destination, *, on: bool) -> Typing:
    """Return the call that shows whether the bot is writing."""
    spot = {"chat_id": destination.chat_id, "thread_id": destination.thread_id, "user_id": destination.user_id}
    return Typing(**spot, on=on)


def menu_call(menu: Menu) -> Commands:
    """Return the call that sets a menu."""
    commands = tuple(Command(name=command.name, description=command.description) for command in menu.commands)
    return Commands(commands=commands, scope=menu.scope or "", locale=menu.locale or "")


def build_shown(card: Card) -> Shown:
    """Return the response to a click."""
    return Shown(card=card.card, notice=card.notice)


def _buttons(message: OutboundMessage) -> tuple[Button, ...]:
    return tuple(Button(text=button.text, data=button.data) for button in message.buttons)
