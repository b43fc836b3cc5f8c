"""Texts are sent, edited and deleted as the server does it, and refused in its words."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontdesk_testing.telegram import FakeTelegram, MovableClock
from frontdesk_testing.telegram.records import Message, User
from tests.testing.telegram.starting import BotClient, telegram_and_bot

NOT_MODIFIED = (
    "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a"
    " current content and reply markup of the message"
)


@pytest.fixture
async def both() -> AsyncIterator[tuple[FakeTelegram, BotClient]]:
    async with telegram_and_bot(FakeTelegram(clock=MovableClock(running=False))) as pair:
        yield pair


@pytest.fixture
def telegram(both: tuple[FakeTelegram, BotClient]) -> FakeTelegram:
    return both[0]


@pytest.fixture
def bot(both: tuple[FakeTelegram, BotClient]) -> BotClient:
    return both[1]


@pytest.fixture
def ann(telegram: FakeTelegram) -> User:
    user = telegram.user("Ann", username="ann_b", language_code="de")
    telegram.start(user)
    return user


def keyboard(*labels: str) -> dict[str, Any]:
    return {"inline_keyboard": [[{"text": label, "callback_data": label.lower()} for label in labels]]}


def last(telegram: FakeTelegram, user: User) -> Message:
    return list(telegram.private(user).messages.values())[-1]


async def test_a_text_is_shown_with_its_entities_and_buttons(telegram: FakeTelegram, bot: BotClient, ann: User) -> None:
    sent = await bot.call(
        "sendMessage", chat_id=ann.id, text="<b>hi</b> @ann_b ", parse_mode="HTML", reply_markup=keyboard("Yes", "No")
    )
    assert (sent["message_id"], sent["text"]) == (2, "hi @ann_b")
    assert [entity["type"] for entity in sent["entities"]] == ["bold", "mention"]
    shown = telegram.shown(telegram.private(ann))
    assert shown.texts == ["/start", "hi @ann_b"]
    assert shown.messages[-1].buttons == (("Yes", "No"),)
    assert shown.messages[-1].by_bot


REFUSED_TEXTS = [
    ("", "", "Bad Request: message text is empty"),
    (" \n", "", "Bad Request: message text is empty"),
    ("x" * 4097, "", "Bad Request: message is too long"),
    ("😀" * 2049, "", "Bad Request: message is too long"),
    ("a.", "MarkdownV2", "can't parse entities: Character '.' is reserved"),
]


async def test_texts_that_are_refused(bot: BotClient, ann: User) -> None:
    for text, mode, told in REFUSED_TEXTS:
        more = {"parse_mode": mode} if mode else {}
        assert told in await bot.read_refusal("sendMessage", chat_id=ann.id, text=text, **more)


async def test_the_limit_is_counted_in_utf_16_after_parsing(bot: BotClient, ann: User) -> None:
    await bot.call("sendMessage", chat_id=ann.id, text="😀" * 2048)
    await bot.call("sendMessage", chat_id=ann.id, text="<b>" + "x" * 4096 + "</b>", parse_mode="HTML")


async def test_chats_that_cannot_be_written_to(telegram: FakeTelegram, bot: BotClient, ann: User) -> None:
    async def told(chat_id: int | str) -> str:
        return await bot.read_refusal("sendMessage", chat_id=chat_id, text="x")

    stranger = telegram.user("Bob")
    assert await told(12345) == "Bad Request: chat not found"
    assert await told("@nowhere") == "Bad Request: chat not found"
    assert await told(stranger.id) == "Forbidden: bot can't initiate conversation with a user"
    group, other = telegram.group("G", ann), telegram.supergroup("S", ann)
    telegram.kick(group, telegram.bot.user, by=ann)
    assert await told(group.id) == "Forbidden: bot was kicked from the group chat"
    await bot.call("leaveChat", chat_id=other.id)
    assert await told(other.id) == "Forbidden: bot is not a member of the supergroup chat"
    telegram.block(ann)
    assert await told(ann.id) == "Forbidden: bot was blocked by the user"
    telegram.unblock(ann)
    telegram.deactivate(ann)
    assert await told(ann.id) == "Forbidden: user is deactivated"


async def test_a_group_that_moved_names_its_new_id(telegram: FakeTelegram, bot: BotClient, ann: User) -> None:
    group = telegram.group("G", ann)
    new = telegram.migrate(group, by=ann)
    answer = await bot.ask("sendMessage", chat_id=group.id, text="x")
    assert answer["description"] == "Bad Request: group chat was upgraded to a supergroup chat"
    assert answer["parameters"] == {"migrate_to_chat_id": new.id}
    await bot.call("sendMessage", chat_id=new.id, text="x")


async def test_replies_and_quotes(telegram: FakeTelegram, bot: BotClient, ann: User) -> None:
    asked = telegram.say(ann, "what is 😀 this?")
    to = {"message_id": asked.message_id, "quote": "this"}
    sent = await bot.call("sendMessage", chat_id=ann.id, text="x", reply_parameters=to)
    assert sent["reply_to_message"]["text"] == "what is 😀 this?"
    assert sent["quote"] == {"text": "this", "position": 11, "is_manual": True}
    assert telegram.shown(telegram.private(ann)).messages[-1].reply_to == asked.message_id
    wrong = {"message_id": asked.message_id, "quote": "that"}
    told = await bot.read_refusal("sendMessage", chat_id=ann.id, text="x", reply_parameters=wrong)
    assert told == "Bad Request: QUOTE_TEXT_INVALID"
    telegram.delete(asked)
    told = await bot.read_refusal("sendMessage", chat_id=ann.id, text="x", reply_parameters=to)
    assert told == "Bad Request: message to be replied not found"
    sent = await bot.call(
        "sendMessage", chat_id=ann.id, text="x", reply_parameters={**to, "allow_sending_without_reply": True}
    )
    assert "reply_to_message" not in sent


REFUSED_ROWS: list[tuple[list[Any], str]] = [
    ([[{"text": "a"}]], "Text buttons are unallowed in the inline keyboard"),
    ([[{"text": "a", "url": "https://a.b", "callback_data": "x"}]], "exactly one of the optional fields"),
    ([[{"text": " ", "callback_data": "x"}]], "BUTTON_TEXT_INVALID"),
    ([[{"text": "a", "url": "nowhere"}]], "Wrong HTTP URL"),
    ([[{"text": "a", "callback_data": ""}]], "BUTTON_DATA_INVALID"),
    ([[{"text": "a", "callback_data": "x"}]] * 101, "REPLY_MARKUP_TOO_LONG"),
]


async def test_keyboards_that_are_refused(bot: BotClient, ann: User) -> None:
    for rows, told in REFUSED_ROWS:
        markup = {"inline_keyboard": rows}
        assert told in await bot.read_refusal("sendMessage", chat_id=ann.id, text="x", reply_markup=markup)


async def test_an_edit_changes_the_text_and_one_that_changes_nothing_is_an_error(
    telegram: FakeTelegram, bot: BotClient, ann: User
) -> None:
    sent = await bot.call("sendMessage", chat_id=ann.id, text="one", reply_markup=keyboard("Stop"))
    place = {"chat_id": ann.id, "message_id": sent["message_id"]}
    same = {**place, "text": "one ", "reply_markup": keyboard("Stop")}
    assert await bot.read_refusal("editMessageText", **same) == NOT_MODIFIED
    edited = await bot.call("editMessageText", **place, text="one")
    assert "reply_markup" not in edited
    assert await bot.read_refusal("editMessageReplyMarkup", **place) == NOT_MODIFIED
    await bot.call("editMessageReplyMarkup", **place, reply_markup=keyboard("Again"))
    shown = telegram.shown(telegram.private(ann)).messages[-1]
    assert (shown.text, shown.buttons, shown.edited) == ("one", (("Again",),), True)


async def test_edits_that_are_refused(telegram: FakeTelegram, bot: BotClient, ann: User) -> None:
    said = telegram.say(ann, "mine")
    photo = await bot.call("sendPhoto", chat_id=ann.id, photo="https://a.b/c.jpg", caption="c")
    text = await bot.call("sendMessage", chat_id=ann.id, text="t")

    async def told(message_id: int, method: str = "editMessageText", **more: Any) -> str:
        return await bot.read_refusal(method, chat_id=ann.id, message_id=message_id, **more)

    assert await told(999, text="x") == "Bad Request: message to edit not found"
    assert await told(said.message_id, text="x") == "Bad Request: message can't be edited"
    assert await told(photo["message_id"], text="x") == "Bad Request: there is no text in the message to edit"
    assert await told(text["message_id"], "editMessageCaption", caption="x") == (
        "Bad Request: there is no caption in the message to edit"
    )
    assert await told(photo["message_id"], "editMessageCaption", caption="c") == NOT_MODIFIED
    assert await bot.read_refusal("editMessageText", text="x", message_id=1) == "Bad Request: chat_id is empty"
    assert (
        await bot.read_refusal("editMessageText", text="x", inline_message_id="1") == "Bad Request: MESSAGE_ID_INVALID"
    )


async def test_what_can_be_deleted(telegram: FakeTelegram, bot: BotClient, ann: User) -> None:
    group = telegram.group("G", ann)
    said = telegram.say(ann, "mine", group)
    own = await bot.call("sendMessage", chat_id=group.id, text="t")
    told = await bot.read_refusal("deleteMessage", chat_id=group.id, message_id=said.message_id)
    assert told == "Bad Request: message can't be deleted"
    await bot.call("deleteMessages", chat_id=group.id, message_ids=[said.message_id, own["message_id"], 999])
    assert telegram.shown(group).texts == ["mine"]
    telegram.promote(group, telegram.bot.user, by=ann)
    await bot.call("deleteMessage", chat_id=group.id, message_id=said.message_id)
    told = await bot.read_refusal("deleteMessage", chat_id=group.id, message_id=said.message_id)
    assert told == "Bad Request: message to delete not found"
    old = await bot.call("sendMessage", chat_id=ann.id, text="old")
    telegram.clock.advance(48 * 3600)
    told = await bot.read_refusal("deleteMessage", chat_id=ann.id, message_id=old["message_id"])
    assert told == "Bad Request: message can't be deleted for everyone"


async def test_typing_is_shown_for_five_seconds_or_until_a_message_comes(
    telegram: FakeTelegram, bot: BotClient, ann: User
) -> None:
    chat = telegram.private(ann)
    await bot.call("sendChatAction", chat_id=ann.id, action="typing")
    assert telegram.shown(chat).actions == ("typing",)
    telegram.clock.advance(5)
    assert telegram.shown(chat).actions == ()
    await bot.call("sendChatAction", chat_id=ann.id, action="upload_document")
    await bot.call("sendMessage", chat_id=ann.id, text="x")
    assert telegram.shown(chat).actions == ()
    told = await bot.read_refusal("sendChatAction", chat_id=ann.id, action="thinking")
    assert told == "Bad Request: wrong parameter action in request"


async def test_a_draft_is_shown_for_half_a_minute_and_can_be_stopped(
    telegram: FakeTelegram, bot: BotClient, ann: User
) -> None:
    chat = telegram.private(ann)
    await bot.updates()
    await bot.call("sendMessageDraft", chat_id=ann.id, draft_id=7, text="par", can_stop=True)
    await bot.call("sendMessageDraft", chat_id=ann.id, draft_id=7, text="partial", can_stop=True)
    assert telegram.shown(chat).drafts == ("partial",)
    telegram.stop(ann)
    assert telegram.shown(chat).drafts == ()
    (update,) = await bot.updates()
    assert update["stopped_message_generation"] == {"chat": chat.as_json(), "draft_id": 7}
    await bot.call("sendMessageDraft", chat_id=ann.id, draft_id=8)
    assert telegram.shown(chat).drafts == ("",)
    with pytest.raises(ValueError, match="no draft"):
        telegram.stop(ann)
    telegram.clock.advance(30)
    assert telegram.shown(chat).drafts == ()
    assert "non-zero" in await bot.read_refusal("sendMessageDraft", chat_id=ann.id, draft_id=0, text="x")
    group = telegram.group("G", ann)
    assert "private" in await bot.read_refusal("sendMessageDraft", chat_id=group.id, draft_id=1, text="x")


async def test_a_method_that_the_fake_does_not_act_on_is_checked_and_then_not_implemented(bot: BotClient) -> None:
    answer = await bot.ask("getStickerSet", name="x")
    assert (answer["error_code"], answer["ok"]) == (501, False)
    answer = await bot.ask("sendMessage", chat_id=1, text="x", business_connection_id="b")
    assert answer["description"] == ("Not Implemented: the fake does not act on the parameter business_connection_id")
    assert await bot.read_refusal("getStickerSet") == 'Bad Request: parameter "name" is required'


async def test_calls_are_recorded_as_they_were_understood(telegram: FakeTelegram, bot: BotClient, ann: User) -> None:
    await bot.http.post(f"{bot.url}/SENDMESSAGE", data={"chat_id": str(ann.id), "text": "x"})
    await bot.read_refusal("sendMessage", chat_id=ann.id, text="")
    call, refused = telegram.calls
    assert (call.method, call.parameters) == ("sendMessage", {"chat_id": ann.id, "text": "x"})
    assert call.result["text"] == "x"
    assert refused.error is not None
    assert telegram.list_calls("sendMessage") == [call]


async def test_tokens_and_paths_that_are_wrong(bot: BotClient, telegram: FakeTelegram) -> None:
    async def answer(path: str) -> tuple[int, str]:
        got = await bot.http.get(telegram.url + path)
        return got.status_code, got.json()["description"]

    assert await answer("/bot1:abc/getMe") == (401, "Unauthorized")
    assert await answer("/botabc/getMe") == (404, "Not Found")
    assert await answer("/getMe") == (404, "Not Found")
    assert await answer(f"/bot{telegram.token}/getYou") == (404, "Not Found: method not found")
    assert await answer("/file/bot1:abc/photos/x") == (401, "Unauthorized")
