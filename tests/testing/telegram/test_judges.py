"""A client that others wrote gets from the fake what it expects of Telegram."""

import asyncio
from io import BytesIO

import pytest
import telegram as ptb

from frontdesk_testing.telegram import FakeTelegram, MovableClock, Upload
from frontdesk_testing.telegram.records import User
from tests.testing.telegram.starting import telegram_and_bot


def open_chat(telegram: FakeTelegram) -> User:
    """Add a person who has started the bot, and whose first message was read."""
    ann = telegram.user("Ann", username="ann_b")
    telegram.start(ann)
    telegram.bot.updates.clear()
    return ann


def ptb_bot(telegram: FakeTelegram) -> ptb.Bot:
    return ptb.Bot(telegram.token, base_url=f"{telegram.url}/bot", base_file_url=f"{telegram.url}/file/bot")


async def test_python_telegram_bot_sends_edits_polls_and_fetches() -> None:
    async with telegram_and_bot() as (telegram, _):
        ann = open_chat(telegram)
        async with ptb_bot(telegram) as bot:
            assert bot.username == "frontdesk_bot"
            markup = ptb.InlineKeyboardMarkup([[ptb.InlineKeyboardButton("Go", callback_data="go")]])
            sent = await bot.send_message(ann.id, "<b>hi</b>", parse_mode="HTML", reply_markup=markup)
            assert sent.parse_entities() == {sent.entities[0]: "hi"}
            edited = await bot.edit_message_text("bye", ann.id, sent.message_id, reply_markup=markup)
            assert isinstance(edited, ptb.Message)
            assert edited.text == "bye"
            album = await bot.send_media_group(
                ann.id, [ptb.InputMediaPhoto(BytesIO(b"1")), ptb.InputMediaPhoto(BytesIO(b"2"), caption="two")]
            )
            assert [photo.caption for photo in album] == [None, "two"]
            telegram.say(ann, "look", media=("photo", Upload(b"bytes")))
            callback = telegram.press(ann, telegram.private(ann).messages[sent.message_id], "Go")
            said, pressed = await bot.get_updates(timeout=1)
            assert said.message is not None
            assert pressed.callback_query is not None
            assert bytes(await (await said.message.photo[-1].get_file()).download_as_bytearray()) == b"bytes"
            await pressed.callback_query.answer("Done")
            assert callback.text == "Done"
            await bot.set_my_commands([("help", "Help")])
            assert telegram.menu(ann) == {"help": "Help"}
            with pytest.raises(ptb.error.BadRequest, match="Message is not modified"):
                await bot.edit_message_text("bye", ann.id, sent.message_id, reply_markup=markup)


@pytest.mark.filterwarnings("ignore::telegram.warnings.PTBDeprecationWarning")
async def test_python_telegram_bot_knows_the_errors() -> None:
    async with telegram_and_bot(FakeTelegram(clock=MovableClock(running=False))) as (telegram, client):
        ann = open_chat(telegram)
        group = telegram.group("G", ann)
        async with ptb_bot(telegram) as bot:
            telegram.fail_next("sendMessage", 429, "Too Many Requests: retry after 7", retry_after=7)
            with pytest.raises(ptb.error.RetryAfter):
                await bot.send_message(ann.id, "x")
            new = telegram.migrate(group, by=ann)
            with pytest.raises(ptb.error.ChatMigrated) as moved:
                await bot.send_message(group.id, "x")
            assert moved.value.new_chat_id == new.id
            telegram.block(ann)
            with pytest.raises(ptb.error.Forbidden, match="bot was blocked by the user"):
                await bot.send_message(ann.id, "x")
            telegram.bot.updates.clear()
            polling = asyncio.create_task(bot.get_updates(timeout=20))
            await telegram.until(lambda: telegram.bot.updates.is_polled)
            second = asyncio.create_task(client.call("getUpdates", timeout=1))
            await telegram.until(lambda: telegram.list_calls("getUpdates")[-1].parameters["timeout"] == 1)
            telegram.clock.advance(3)
            with pytest.raises(ptb.error.Conflict):
                await polling
            assert await second == []


async def test_python_telegram_bot_reads_every_update_that_the_fake_makes() -> None:
    async with telegram_and_bot(FakeTelegram(privacy=False, topics=True)) as (telegram, bot):
        ann, bob = telegram.user("Ann"), telegram.user("Bob", language_code="en")
        for kind in ("photo", "document", "audio", "voice", "video", "animation", "video_note", "sticker"):
            telegram.say(ann, media=(kind, Upload(b"x", "a.b")))
        telegram.share_location(ann, 1, 2)
        telegram.forward(ann, telegram.share_contact(ann, "+1", "Eve"))
        forum = telegram.supergroup("F", ann, forum=True)
        topic = telegram.topic(forum, "T", by=ann)
        telegram.edit(telegram.say(ann, "@ann_b", forum, thread=topic.thread_id), "/new")
        telegram.join(forum, bob)
        telegram.promote(forum, bob, by=ann, anonymous=True)
        telegram.say(bob, "x", forum)
        telegram.migrate(telegram.group("G", ann, bob), by=ann)
        telegram.block(ann)
        updates = await bot.updates()
        assert len(updates) > 20
        for update in updates:
            read = ptb.Update.de_json(update, None)
            assert read.effective_chat is not None
            assert read.effective_user is not None
