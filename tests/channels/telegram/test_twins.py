"""The same intent through python-telegram-bot and through the channel reaches the platform as the same call."""

from typing import Any

import pytest
import telegram as ptb

from frontdesk_testing.telegram import FakeTelegram
from tests.channels.telegram.twins import CHAT, OURS, Theirs, our_call, their_call

NO_PREVIEW = ptb.LinkPreviewOptions(is_disabled=True)
STYLES = [ptb.MessageEntity("bold", 0, 4), ptb.MessageEntity("text_link", 5, 4, url="https://a.example/b")]
KEYS = ptb.InlineKeyboardMarkup(
    [[ptb.InlineKeyboardButton("Yes", callback_data="ok:1"), ptb.InlineKeyboardButton("No", callback_data="no:1")]]
)
TEXT: dict[str, Any] = {"entities": STYLES, "link_preview_options": NO_PREVIEW}
ALBUM = [(b"1", "a.png"), (b"2", "b.png")]

THEIRS: dict[str, Theirs] = {
    "a text": lambda bot, sent: bot.send_message(CHAT, "bold link", **TEXT),
    "a reply with buttons": lambda bot, sent: bot.send_message(
        CHAT,
        "bold link",
        **TEXT,
        reply_markup=KEYS,
        reply_parameters=ptb.ReplyParameters(sent, allow_sending_without_reply=True),
    ),
    "an edit": lambda bot, sent: bot.edit_message_text("bold link", CHAT, sent, **TEXT, reply_markup=KEYS),
    "buttons off": lambda bot, sent: bot.edit_message_reply_markup(CHAT, sent),
    "a removal": lambda bot, sent: bot.delete_message(CHAT, sent),
    "a photo with a caption": lambda bot, sent: bot.send_photo(
        CHAT, b"1", caption="bold link", caption_entities=STYLES, filename="a.png"
    ),
    "a document": lambda bot, sent: bot.send_document(CHAT, b"1", filename="a.csv"),
    "an album": lambda bot, sent: bot.send_media_group(
        CHAT, [ptb.InputMediaPhoto(data, filename=name) for data, name in ALBUM]
    ),
    "typing": lambda bot, sent: bot.send_chat_action(CHAT, "typing"),
    "a menu": lambda bot, sent: bot.set_my_commands(
        [("new", "Neu")], scope=ptb.BotCommandScopeAllPrivateChats(), language_code="de"
    ),
}


def test_every_intent_has_a_twin() -> None:
    assert THEIRS.keys() == OURS.keys()


@pytest.mark.parametrize("name", OURS)
async def test_twins_make_the_same_call(name: str) -> None:
    async def carry_out(fake: FakeTelegram, sent: int) -> None:
        async with ptb.Bot(fake.token, base_url=f"{fake.url}/bot") as bot:
            await THEIRS[name](bot, sent)

    assert await their_call(name, carry_out) == await our_call(name)
