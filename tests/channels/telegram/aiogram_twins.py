"""The same intents through aiogram, which knows the newest Bot API: `make twins`, in a virtual environment of its own.

It prints a line for each intent, and ends with 1 if the calls of one differ. aiogram reads the updates of the fake too.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, cast

from frontdesk.channels.telegram.wire import ALLOWED_UPDATES
from frontdesk_testing.telegram import FakeTelegram, Upload, fake_telegram
from tests.channels.telegram.twins import CHAT, NEWER, OURS, Theirs, our_call, their_call


def _theirs(types: Any) -> dict[str, Theirs]:
    """Return the intents as aiogram carries them out; its types are there only where it is installed."""
    entity, button, file = types.MessageEntity, types.InlineKeyboardButton, types.BufferedInputFile
    styles = [
        entity(type="bold", offset=0, length=4),
        entity(type="text_link", offset=5, length=4, url="https://a.example/b"),
    ]
    keys = types.InlineKeyboardMarkup(
        inline_keyboard=[[button(text="Yes", callback_data="ok:1"), button(text="No", callback_data="no:1")]]
    )
    text = {"entities": styles, "link_preview_options": types.LinkPreviewOptions(is_disabled=True)}
    photos = [types.InputMediaPhoto(media=file(data, name)) for data, name in ((b"1", "a.png"), (b"2", "b.png"))]
    return {
        "a text": lambda bot, sent: bot.send_message(CHAT, "bold link", **text),
        "a reply with buttons": lambda bot, sent: bot.send_message(
            CHAT,
            "bold link",
            **text,
            reply_markup=keys,
            reply_parameters=types.ReplyParameters(message_id=sent, allow_sending_without_reply=True),
        ),
        "an edit": lambda bot, sent: bot.edit_message_text(
            text="bold link", chat_id=CHAT, message_id=sent, **text, reply_markup=keys
        ),
        "buttons off": lambda bot, sent: bot.edit_message_reply_markup(chat_id=CHAT, message_id=sent),
        "a removal": lambda bot, sent: bot.delete_message(CHAT, sent),
        "a photo with a caption": lambda bot, sent: bot.send_photo(
            CHAT, file(b"1", "a.png"), caption="bold link", caption_entities=styles
        ),
        "a document": lambda bot, sent: bot.send_document(CHAT, file(b"1", "a.csv")),
        "an album": lambda bot, sent: bot.send_media_group(CHAT, photos),
        "typing": lambda bot, sent: bot.send_chat_action(CHAT, "typing"),
        "a menu": lambda bot, sent: bot.set_my_commands(
            [types.BotCommand(command="new", description="Neu")],
            scope=types.BotCommandScopeAllPrivateChats(),
            language_code="de",
        ),
        **_newer(types, styles),
    }


def _newer(types: Any, styles: list[Any]) -> dict[str, Theirs]:
    report = types.InputRichMessage(blocks=_report(types), skip_entity_detection=True)
    updates = ["message", "edited_message", "callback_query", "stopped_message_generation", "my_chat_member"]
    return {
        "a draft": lambda bot, sent: bot.send_message_draft(
            chat_id=CHAT, draft_id=1, text="bold link", entities=styles, can_stop=True
        ),
        "a rich message": lambda bot, sent: bot.send_rich_message(chat_id=CHAT, rich_message=report),
        "a rich draft": lambda bot, sent: bot.send_rich_message_draft(
            chat_id=CHAT, draft_id=1, rich_message=report, can_stop=True
        ),
        "an edit to a rich message": lambda bot, sent: bot.edit_message_text(
            chat_id=CHAT, message_id=sent, rich_message=report
        ),
        "a webhook": lambda bot, sent: bot.set_webhook(
            "http://127.0.0.1:8443/telegram/events",
            secret_token="a-secret-of-the-webhook",
            allowed_updates=updates,
            max_connections=40,
        ),
    }


def _report(types: Any) -> list[Any]:
    """Return the blocks of `REPORT`, written by hand."""

    def paragraph(text: str) -> Any:
        return types.InputRichBlockParagraph(text=text)

    def cell(text: Any, align: str, **fields: Any) -> Any:
        return types.RichBlockTableCell(text=text, align=align, valign="top", **fields)

    header = [cell("a", "left", is_header=True), cell("b", "right", is_header=True)]
    row = [cell("1", "left"), cell(types.RichTextBold(text="2"), "right")]
    items = [("one", 1), ("two", 2)]
    return [
        types.InputRichBlockSectionHeading(text="Report", size=1),
        types.InputRichBlockTable(cells=[header, row], is_bordered=True),
        types.InputRichBlockList(
            items=[
                types.InputRichBlockListItem(blocks=[paragraph(text)], value=number, type="1") for text, number in items
            ]
        ),
        types.InputRichBlockBlockQuotation(blocks=[paragraph("said")]),
        types.InputRichBlockDivider(),
        types.InputRichBlockPreformatted(text="x", language="py"),
    ]


async def differences(show: Callable[[str], object]) -> list[str]:
    """Carry every intent out twice; return the names of those whose calls differ."""
    aiogram: Any = import_module("aiogram")
    server: Any = import_module("aiogram.client.telegram").TelegramAPIServer
    session: Any = import_module("aiogram.client.session.aiohttp").AiohttpSession
    theirs, wrong = _theirs(aiogram.types), list[str]()
    if theirs.keys() != OURS.keys() | NEWER.keys():
        raise ValueError(f"intents without a twin: {theirs.keys() ^ (OURS.keys() | NEWER.keys())}")
    for name, intent in theirs.items():

        async def carry_out(fake: FakeTelegram, sent: int, intent: Theirs = intent) -> None:
            async with aiogram.Bot(fake.token, session=session(api=server.from_base(fake.url))) as bot:
                await intent(bot, sent)

        own, other = await our_call(name), await their_call(name, carry_out)
        show(f"{name}: the same {own[0]}" if own == other else f"{name}: {own}\n    aiogram: {other}")
        wrong += [] if own == other else [name]
    return wrong


async def unreadable(show: Callable[[str], object]) -> list[str]:
    """Let people do what they can on the fake; return the kinds of updates that aiogram can't read."""
    update: Any = import_module("aiogram").types.Update
    wrong: dict[str, None] = {}
    async with fake_telegram(FakeTelegram(privacy=False, topics=True)) as fake:
        fake.bot.updates.allow([*ALLOWED_UPDATES, "chat_member"])
        _act(fake)
        for shown in (pending.as_json() for pending in fake.bot.updates.list_pending()):
            (kind,) = shown.keys() - {"update_id"}
            try:
                unknown = list(_unknown(update.model_validate(shown)))
            except ValueError as error:
                unknown = [str(error)]
            if unknown:
                show(f"an update of {kind}: {', '.join(unknown)}")
                wrong[kind] = None
    return list(wrong)


def _act(fake: FakeTelegram) -> None:
    ada, bob = fake.user("Ada", language_code="de"), fake.user("Bob", username="bob")
    picture = ("photo", Upload(b"x", "a.jpg", "image/jpeg"))
    said = fake.start(ada, "payload")
    fake.say(ada, "a reply", reply_to=said)
    fake.say(ada, "look", media=picture)
    fake.send_album(ada, [picture, picture], caption="two")
    fake.share_location(ada, 52.5, 13.25)
    fake.share_contact(ada, "+49", "Bob")
    fake.forward(ada, said)
    fake.edit(said, "changed")
    fake.block(ada)
    fake.unblock(ada)
    forum = fake.supergroup("Team", ada, bob, forum=True, bot_is_admin=True)
    topic = fake.topic(forum, "Plans", by=ada)
    fake.say(bob, "@frontdesk_bot here", forum, thread=topic.thread_id)
    fake.promote(forum, bob, by=ada, anonymous=True)
    fake.say(bob, "nobody", forum)
    carl = fake.user("Carl")
    fake.join(forum, carl)
    fake.leave(forum, carl)
    fake.kick(forum, fake.bot.user, by=ada)
    fake.migrate(fake.group("Small", ada), by=ada)


def _unknown(read: Any) -> Iterator[str]:
    """Yield the fields of an update that the models of aiogram do not have."""
    if isinstance(read, list):
        for part in cast("list[Any]", read):
            yield from _unknown(part)
    yield from getattr(read, "model_extra", None) or ()
    for name in getattr(type(read), "model_fields", ()):
        yield from _unknown(getattr(read, name))


async def judge() -> int:
    """Return how much is wrong."""
    differ, strange = await differences(print), await unreadable(print)
    print(f"{len(differ)} of the calls differ" if differ else "All calls are the same")
    print(f"aiogram can't read these: {', '.join(strange)}" if strange else "aiogram reads all updates of the fake")
    return len(differ) + len(strange)


def main() -> None:
    """Compare all, and end with 1 if something differs."""
    wrong = asyncio.run(judge())
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
