"""The same intent through python-telegram-bot and through the channel reaches the platform as the same call."""

import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import telegram as ptb

from frontdesk import ChannelCommand
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.kit.chat.commands import Menu
from frontdesk.kit.chat.markdown import Entity
from frontdesk.kit.chat.messages import Button, Destination, OutboundFile, OutboundMessage
from frontdesk.testing.telegram import FakeTelegram, fake_telegram

NO_PREVIEW = ptb.LinkPreviewOptions(is_disabled=True)
STYLES = [ptb.MessageEntity("bold", 0, 4), ptb.MessageEntity("text_link", 5, 4, url="https://a.example/b")]
OWN_STYLES = (Entity("bold", 0, 4), Entity("text_link", 5, 4, url="https://a.example/b"))
KEYS = [[ptb.InlineKeyboardButton("Yes", callback_data="ok:1"), ptb.InlineKeyboardButton("No", callback_data="no:1")]]
OWN_KEYS = (Button(text="Yes", data="ok:1"), Button(text="No", data="no:1"))
Ours = Callable[[TelegramChannel, Destination, int], Awaitable[Any]]
Theirs = Callable[[ptb.Bot, int, int], Awaitable[Any]]


def file(media_type: str, data: bytes, name: str) -> OutboundFile:
    return OutboundFile(media_type=media_type, data=base64.b64encode(data).decode(), name=name)


def said(**fields: Any) -> OutboundMessage:
    return OutboundMessage(**{"text": "bold link", "entities": OWN_STYLES, **fields})


TWINS: dict[str, tuple[Ours, Theirs]] = {
    "a text": (
        lambda channel, place, sent: channel.send(said(), place, "k"),
        lambda bot, chat, sent: bot.send_message(chat, "bold link", entities=STYLES, link_preview_options=NO_PREVIEW),
    ),
    "a reply with buttons": (
        lambda channel, place, sent: channel.send(said(buttons=OWN_KEYS, reply_to=str(sent)), place, "k"),
        lambda bot, chat, sent: bot.send_message(
            chat,
            "bold link",
            entities=STYLES,
            link_preview_options=NO_PREVIEW,
            reply_markup=ptb.InlineKeyboardMarkup(KEYS),
            reply_parameters=ptb.ReplyParameters(sent, allow_sending_without_reply=True),
        ),
    ),
    "an edit": (
        lambda channel, place, sent: channel.edit(str(sent), said(buttons=OWN_KEYS), place),
        lambda bot, chat, sent: bot.edit_message_text(
            "bold link",
            chat,
            sent,
            entities=STYLES,
            link_preview_options=NO_PREVIEW,
            reply_markup=ptb.InlineKeyboardMarkup(KEYS),
        ),
    ),
    "buttons off": (
        lambda channel, place, sent: channel.edit(str(sent), OutboundMessage(), place),
        lambda bot, chat, sent: bot.edit_message_reply_markup(chat, sent),
    ),
    "a removal": (
        lambda channel, place, sent: channel.delete(str(sent), place),
        lambda bot, chat, sent: bot.delete_message(chat, sent),
    ),
    "a photo with a caption": (
        lambda channel, place, sent: channel.send(said(media=(file("image/png", b"1", "a.png"),)), place, "k"),
        lambda bot, chat, sent: bot.send_photo(
            chat, b"1", caption="bold link", caption_entities=STYLES, filename="a.png"
        ),
    ),
    "a document": (
        lambda channel, place, sent: channel.send(
            OutboundMessage(media=(file("text/csv", b"1", "a.csv"),)), place, "k"
        ),
        lambda bot, chat, sent: bot.send_document(chat, b"1", filename="a.csv"),
    ),
    "an album": (
        lambda channel, place, sent: channel.send(
            OutboundMessage(media=(file("image/png", b"1", "a.png"), file("image/png", b"2", "b.png"))), place, "k"
        ),
        lambda bot, chat, sent: bot.send_media_group(
            chat, [ptb.InputMediaPhoto(b"1", filename="a.png"), ptb.InputMediaPhoto(b"2", filename="b.png")]
        ),
    ),
    "typing": (
        lambda channel, place, sent: channel.typing(place, on=True),
        lambda bot, chat, sent: bot.send_chat_action(chat, "typing"),
    ),
    "a menu": (
        lambda channel, place, sent: channel.publish(
            Menu("direct", "de", [ChannelCommand("new", "Neu", handler=lambda _: None)])
        ),
        lambda bot, chat, sent: bot.set_my_commands(
            [("new", "Neu")], scope=ptb.BotCommandScopeAllPrivateChats(), language_code="de"
        ),
    ),
}


async def recorded(fake: FakeTelegram, call: Awaitable[Any]) -> tuple[str, Any, list[str]]:
    """Return the last call that reached the platform: its method, its parameters and the names of its files."""
    await call
    last = fake.calls[-1]
    assert last.error is None, last.error
    return last.method, _unnamed(last.parameters), sorted(last.files.values())


def _unnamed(value: Any) -> Any:
    """Leave out the names of uploaded parts, which clients choose, and fields that are left empty."""
    if isinstance(value, dict):
        parts = {name: _unnamed(part) for name, part in value.items()}
        return {name: part for name, part in parts.items() if part not in ([], {})}
    if isinstance(value, list | tuple):
        return [_unnamed(part) for part in value]
    return "attach://" if isinstance(value, str) and value.startswith("attach://") else value


@pytest.mark.parametrize("name", TWINS)
async def test_twins_make_the_same_call(name: str) -> None:
    ours, theirs = TWINS[name]
    seen: list[Any] = []
    for own in (True, False):
        async with fake_telegram() as fake:
            ada = fake.user("Ada", user_id=42)
            fake.private(ada)
            channel = TelegramChannel(bot_token=fake.token, secret_token="a-secret-of-the-webhook", api_url=fake.url)
            sent = int(await channel.send(OutboundMessage(text="before"), Destination(chat_id="42"), "k") or 0)
            if name == "buttons off":
                await channel.edit(
                    str(sent), OutboundMessage(text="before", buttons=OWN_KEYS), Destination(chat_id="42")
                )
            async with ptb.Bot(fake.token, base_url=f"{fake.url}/bot") as bot:
                call = ours(channel, Destination(chat_id="42"), sent) if own else theirs(bot, 42, sent)
                seen.append(await recorded(fake, call))
            await channel.close()
    assert seen[0] == seen[1]
