"""The calls of the bot on the platform. An accepted call is logged before it is visible."""

from typing import Any

import msgspec

from frontdesk_testing.messages.platform.journal import Entry, Journal
from frontdesk_testing.messages.platform.records import Place, PrivateText, RefusedError, Said
from frontdesk_testing.messages.platform.world import World
from frontdesk_testing.messages.wire import (
    AnswerClick,
    Button,
    Command,
    Commands,
    Delete,
    Edit,
    Private,
    Send,
    Sent,
    Typing,
)

_MAX_KEY_LENGTH = 128


class Bot:
    """Checks the calls of the bot, and accepts them."""

    def __init__(self, world: World, journal: Journal) -> None:
        self._world = world
        self.journal = journal
        self._menus: dict[tuple[str, str], tuple[Command, ...]] = {}
        self.duplicates = 0
        self._keys: dict[str, Sent] = {}

    async def send(self, send: Send) -> Sent:
        """Accept a message of the bot."""
        place = self._world.place(self._world.direct(send.user_id) if send.user_id else send.chat_id)
        key = send.idempotency_key
        if key and self._world.settings.dedupe and key in self._keys:
            self.duplicates += 1
            await self.journal.wait_until_written()
            return msgspec.structs.replace(self._keys[key], duplicate=True)
        self._check(send, place)
        message = Said(
            message_id=self._world.new_id("msg"),
            user_id=self._world.me.user_id,
            text=send.text,
            media=send.media,
            buttons=send.buttons,
            reply_to=send.reply_to,
            thread_id=send.thread_id,
            at=self._world.now(),
        )
        sent = Sent(message_id=message.message_id, chat_id=place.chat.chat_id)
        if key:
            # Noted at once, because the same key may come again while this is written.
            self._keys[key] = sent
        await self._accept(
            "send",
            chat_id=sent.chat_id,
            thread_id=send.thread_id,
            message_id=sent.message_id,
            text=send.text,
            media=tuple(media.media_type for media in send.media),
            buttons=send.buttons,
            reply_to=send.reply_to,
            idempotency_key=key,
        )
        place.messages[message.message_id] = message
        self._world.change()
        return sent

    def get_sent(self, key: str) -> Sent:
        """Return the messages accepted under a key, for a sender that received no response."""
        if key not in self._keys:
            raise RefusedError(404, "message_not_found", "Nothing was sent with this key.")
        return self._keys[key]

    def _check(self, send: Send, place: Place) -> None:
        if not send.text.strip() and not send.media:
            raise RefusedError(400, "empty_message", "A message needs a text or media.")
        if len(send.idempotency_key) > _MAX_KEY_LENGTH:
            raise RefusedError(400, "key_too_long", "The idempotency key is too long.")
        if send.reply_to and send.reply_to not in place.messages:
            raise RefusedError(400, "reply_not_found", "The message to reply to is not in this chat.")
        self._check_thread(place, send.thread_id)
        if sum(len(media.data) for media in send.media) > self._world.settings.media_limit:
            raise RefusedError(400, "media_too_large", "The media are too large.")
        self._check_text(send.text, send.buttons)

    def _check_thread(self, place: Place, thread_id: str) -> None:
        # People begin threads.
        if thread_id and all(message.thread_id != thread_id for message in place.messages.values()):
            raise RefusedError(404, "thread_not_found", "There is no such thread in this chat.")

    def _check_text(self, text: str, buttons: tuple[Button, ...]) -> None:
        if len(text) > self._world.settings.text_limit:
            raise RefusedError(
                400, "text_too_long", f"A text has {self._world.settings.text_limit} characters at most."
            )
        if len(buttons) > self._world.settings.most_buttons:
            raise RefusedError(400, "too_many_buttons", "There are too many buttons.")
        if any(len(button.data.encode()) > self._world.settings.data_limit or not button.data for button in buttons):
            raise RefusedError(400, "bad_button", f"A button has 1 to {self._world.settings.data_limit} bytes of data.")

    async def edit(self, edit: Edit) -> Sent:
        """Change a message of the bot."""
        place, message = self._own(edit)
        self._check_stream(edit, message)
        if edit.text and not edit.text.strip():
            raise RefusedError(400, "empty_message", "A message needs a text.")
        text = edit.text or message.text
        if (message.text, message.buttons) == (text, edit.buttons):
            raise RefusedError(400, "not_modified", "The message is the same as before.")
        self._check_text(text, edit.buttons)
        sent = Sent(message_id=edit.message_id, chat_id=place.chat.chat_id)
        await self._accept("edit", chat_id=sent.chat_id, message_id=sent.message_id, text=text, buttons=edit.buttons)
        message.text, message.buttons, message.edits = text, edit.buttons, message.edits + 1
        self._world.change()
        return sent

    def _check_stream(self, edit: Edit, message: Said) -> None:
        longest = self._world.settings.stream_seconds
        if edit.stream and longest is not None and self._world.now() - message.at >= longest:
            raise RefusedError(400, "stream_expired", "The message takes no more updates.")

    async def delete(self, delete: Delete) -> None:
        """Remove a message of the bot."""
        place, message = self._own(delete)
        await self._accept("delete", chat_id=place.chat.chat_id, message_id=message.message_id)
        place.messages.pop(message.message_id, None)
        self._world.change()

    async def set_typing(self, typing: Typing) -> None:
        """Show that the bot is writing, or that it is not."""
        place = self._world.place(self._world.direct(typing.user_id) if typing.user_id else typing.chat_id)
        self._check_thread(place, typing.thread_id)
        shown = {"chat_id": place.chat.chat_id, "thread_id": typing.thread_id}
        await self._accept("typing", **shown, text="on" if typing.on else "off")
        self._world.change()

    def _own(self, change: Edit | Delete) -> tuple[Place, Said]:
        """Return a message of the bot that can be changed, and its chat."""
        place = self._world.place(self._world.direct(change.user_id) if change.user_id else change.chat_id)
        message = place.messages.get(change.message_id)
        if message is None or message.user_id != self._world.me.user_id:
            raise RefusedError(404, "message_not_found", "There is no such message of yours.")
        oldest = self._world.settings.edit_seconds
        if oldest is not None and self._world.now() - message.at >= oldest:
            raise RefusedError(400, "too_old", "The message is too old to be changed.")
        return place, message

    async def answer(self, answer: AnswerClick) -> None:
        """Show a text to the person who pressed a button."""
        if answer.callback_id not in self._world.clicks:
            raise RefusedError(404, "click_not_found", "Nobody pressed that.")
        longest = self._world.settings.click_seconds
        if longest is not None and self._world.now() >= self._world.clicked_at[answer.callback_id] + longest:
            raise RefusedError(400, "click_too_old", "The button was pressed too long ago.")
        await self._accept("answer", callback_id=answer.callback_id, text=answer.text)
        self._world.clicks[answer.callback_id] = answer.text
        self._world.change()

    async def show_privately(self, private: Private) -> None:
        """Show a text to the sender of an event only."""
        event, until = self._world.tokens.get(private.reply_token, (None, 0.0))
        if event is None or self._world.now() >= until:
            raise RefusedError(404, "token_not_found", "There is no such token any more.")
        chat_id, user_id = event.chat.chat_id, event.sender.user_id
        await self._accept("private", chat_id=chat_id, user_id=user_id, text=private.text)
        self._world.private.append(PrivateText(chat_id=chat_id, user_id=user_id, text=private.text))
        self._world.change()

    async def publish(self, commands: Commands) -> None:
        """Set a menu."""
        await self._accept("commands", commands=commands.commands, scope=commands.scope, locale=commands.locale)
        self._menus[commands.scope, commands.locale] = commands.commands
        self._world.change()

    def menu(self, scope: str, locale: str) -> tuple[Command, ...]:
        """Return the menu that is shown in a scope and a language: the most specific one."""
        for place in ((scope, locale), (scope, ""), ("", locale)):
            if place in self._menus:
                return self._menus[place]
        return self._menus.get(("", ""), ())

    async def _accept(self, method: str, **fields: Any) -> None:
        await self.journal.add(Entry(number=self.journal.next_number(), at=self._world.now(), method=method, **fields))
