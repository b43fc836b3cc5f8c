"""What is sent: within the limits of the Bot API, and with the same words."""

import asyncio
import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import ChannelCommand
from frontdesk.channels.telegram.render import (
    ApiCall,
    draft_call,
    edit_call,
    media_calls,
    menu_call,
    remove_buttons_call,
    send_calls,
)
from frontdesk.chat.commands import Menu
from frontdesk.chat.messages import Button, Destination, OutboundFile, OutboundMessage
from frontdesk.chat.rendering import Renderer
from frontdesk.markdown import Entities, parse, split, to_blocks
from frontdesk_testing.telegram import FakeTelegram
from tests.examples import examples
from tests.markdown.samples import ANY_TEXTS, list_shown_words, words

HERE = Destination(chat_id="-100", thread_id="5", kind="group")


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def file(media_type: str = "image/png", name: str = "", data: bytes = b"x") -> OutboundFile:
    return OutboundFile(media_type=media_type, name=name, data=base64.b64encode(data).decode())


def only(calls: list[ApiCall]) -> ApiCall:
    (call,) = calls
    return call


def check(call: ApiCall) -> None:
    """Hold a call against the limits."""
    text, caption = call.params.get("text", ""), call.params.get("caption", "")
    assert units(text) <= 4096
    assert units(caption) <= 1024
    entities = call.params.get("entities") or call.params.get("caption_entities") or []
    assert len(entities) <= 100
    for entity in entities:
        assert entity["length"] > 0
        assert 0 <= entity["offset"] <= units(text or caption) - entity["length"]
    for row in call.params.get("reply_markup", {}).get("inline_keyboard", []):
        assert 1 <= len(row) <= 8
        assert all(("url" in button) or 1 <= len(button["callback_data"].encode()) <= 64 for button in row)


@examples(60)
@given(ANY_TEXTS)
def test_the_platform_accepts_any_markdown(text: str) -> None:
    fake = FakeTelegram()
    ada = fake.user("Ada")
    chat = fake.private(ada)
    place = Destination(chat_id=str(ada.id))
    for part in split(parse(text), Entities(), 4096, unit="utf16"):
        (call,) = send_calls(OutboundMessage(text=part.text, entities=part.entities), place)
        record = asyncio.run(fake.api.call(fake.bot, call.method, call.params, {}))
        # The platform takes no message without anything that can be seen.
        assert record.error is None or "text must be non-empty" in str(record.error)
    rest = iter(words(" ".join(fake.shown(chat).answers)))
    assert all(word in rest for word in list_shown_words(text))


@given(ANY_TEXTS)
def test_any_markdown_is_calls_within_the_limits_with_the_same_words(text: str) -> None:
    said: list[str] = []
    for part in split(parse(text), Entities(), 4096, unit="utf16"):
        for call in send_calls(OutboundMessage(text=part.text, entities=part.entities), HERE):
            check(call)
            msgspec.json.encode(call.params)
            said += words(call.params["text"])
    rest = iter(said)
    assert all(word in rest for word in list_shown_words(text))


@given(
    text=st.text(max_size=2000),
    media=st.lists(st.sampled_from(["image/png", "audio/ogg", "text/plain", "video/mp4", "audio/mpeg"]), max_size=25),
    buttons=st.lists(
        st.builds(Button, text=st.text(max_size=40), data=st.text(max_size=70), url=st.sampled_from(["", "https://a"])),
        max_size=12,
    ),
)
def test_any_message_is_calls_within_the_limits(text: str, media: list[str], buttons: list[Button]) -> None:
    message = OutboundMessage(text=text, media=tuple(map(file, media)), buttons=tuple(buttons), reply_to="9")
    calls = send_calls(message, HERE)
    for call in calls:
        check(call)
        assert (call.params["chat_id"], call.params["message_thread_id"]) == (-100, 5)
        if call.method == "sendMediaGroup":
            assert 2 <= len(call.params["media"]) == len(call.files) <= 10
    assert [("reply_parameters" in call.params) for call in calls] == [True, *[False] * (len(calls) - 1)]
    assert sum(len(call.files) for call in calls) == len(media)
    words = [call.params.get("text") or call.params.get("caption") or "" for call in calls]
    words += [item.get("caption", "") for call in calls for item in call.params.get("media", [])]
    assert [word for word in words if word] == ([text] if text else [])


def test_a_text_goes_to_its_topic_as_it_is() -> None:
    call = only(send_calls(OutboundMessage(text="<b>*hi*"), HERE))
    assert call == ApiCall(
        "sendMessage",
        {
            "chat_id": -100,
            "message_thread_id": 5,
            "text": "<b>*hi*",
            "entities": [],
            "link_preview_options": {"is_disabled": True},
        },
    )


def test_a_direct_chat_has_no_topic() -> None:
    call = only(send_calls(OutboundMessage(text="hi"), Destination(user_id="7"), link_previews=True))
    assert (call.params["chat_id"], call.params["link_preview_options"]) == (7, {"is_disabled": False})
    assert "message_thread_id" not in call.params


@pytest.mark.parametrize(
    ("media_type", "method", "name"),
    [
        ("image/png", "sendPhoto", "photo.png"),
        ("image/gif", "sendAnimation", "animation.gif"),
        ("image/svg+xml", "sendDocument", "document.svg"),
        ("video/mp4", "sendVideo", "video.mp4"),
        ("audio/mpeg", "sendAudio", "audio.mp3"),
        ("audio/ogg", "sendVoice", None),
        ("application/pdf", "sendDocument", "document.pdf"),
        ("x/y", "sendDocument", "document"),
    ],
)
def test_a_file_goes_by_the_method_of_its_kind(media_type: str, method: str, name: str | None) -> None:
    call = only(send_calls(OutboundMessage(media=(file(media_type, data=b"1234"),)), HERE))
    sent = call.files[0]
    assert (call.method, sent.data, sent.media_type) == (method, b"1234", media_type)
    assert call.params[method.removeprefix("send").lower()] == f"attach://{sent.field}"
    assert name is None or sent.name == name


def test_a_large_picture_is_a_document() -> None:
    assert only(media_calls([file(data=bytes(10_000_001))])).method == "sendDocument"
    assert only(media_calls([file()], as_documents=True)).method == "sendDocument"


def test_what_can_be_shown_together_is_an_album() -> None:
    media = (file(), file("video/mp4"), file("text/plain"), file("text/plain"), file("audio/ogg"))
    calls = send_calls(OutboundMessage(media=media), HERE)
    assert [call.method for call in calls] == ["sendMediaGroup", "sendMediaGroup", "sendVoice"]
    assert [item["type"] for item in calls[0].params["media"]] == ["photo", "video"]


def test_a_caption_is_short_and_a_longer_text_a_message() -> None:
    call = only(send_calls(OutboundMessage(text="look", media=(file(),)), HERE))
    assert (call.method, call.params["caption"]) == ("sendPhoto", "look")
    album = only(send_calls(OutboundMessage(text="look", media=(file(), file())), HERE))
    assert [item.get("caption") for item in album.params["media"]] == ["look", None]
    calls = send_calls(OutboundMessage(text="😀" * 513, media=(file(),)), HERE)
    assert [call.method for call in calls] == ["sendPhoto", "sendMessage"]


def test_buttons_are_laid_out_in_rows() -> None:
    buttons = tuple(Button(text=text, data=text) for text in ("Approve", "Reject", "Something rather long", "No"))
    call = only(send_calls(OutboundMessage(text="May I?", buttons=buttons), HERE))
    rows = call.params["reply_markup"]["inline_keyboard"]
    assert [[button["text"] for button in row] for row in rows] == [
        ["Approve", "Reject"],
        ["Something rather long", "No"],
    ]


def test_a_growing_answer_can_be_stopped_and_a_whole_one_not() -> None:
    growing = OutboundMessage(text="Once", live=True)
    stop = {"inline_keyboard": [[{"text": "Stop", "callback_data": "stop"}]]}
    assert only(send_calls(growing, HERE, stop="Stop")).params["reply_markup"] == stop
    assert edit_call("3", growing, HERE, stop="Stop").params["reply_markup"] == stop
    assert "reply_markup" not in edit_call("3", OutboundMessage(text="Once upon"), HERE, stop="Stop").params
    assert "reply_markup" not in only(send_calls(growing, HERE)).params


def test_an_edit_names_no_topic_and_without_a_text_only_takes_the_buttons() -> None:
    edit = edit_call("3", OutboundMessage(text="Done"), HERE)
    assert (edit.method, edit.params["chat_id"], edit.params["message_id"]) == ("editMessageText", -100, 3)
    assert "message_thread_id" not in edit.params
    bare = remove_buttons_call("3", HERE)
    assert (bare.method, bare.params["reply_markup"]) == ("editMessageReplyMarkup", {"inline_keyboard": []})


def command(name: str, description: str = "") -> ChannelCommand:
    return ChannelCommand(name, description, handler=lambda _: None)


@pytest.mark.parametrize(
    ("scope", "locale", "expected"),
    [
        (None, None, {"scope": {"type": "default"}}),
        ("direct", "de", {"scope": {"type": "all_private_chats"}, "language_code": "de"}),
        ("group", None, {"scope": {"type": "all_group_chats"}}),
        ("admins", None, {"scope": {"type": "all_chat_administrators"}}),
    ],
)
def test_a_menu_is_for_its_scope_and_language(scope: Any, locale: str | None, expected: Any) -> None:
    commands = [command("new", "Start anew"), command("Größe"), command("x" * 33), command("help")]
    call = menu_call(Menu(scope, locale, commands))
    assert call is not None
    assert call.params.pop("commands") == [
        {"command": "new", "description": "Start anew"},
        {"command": "help", "description": "help"},
    ]
    assert call.params == expected


def test_a_language_that_the_platform_does_not_know_has_no_menu() -> None:
    assert menu_call(Menu(None, "pt-BR", [command("new")])) is None


def rich(text: str, **fields: Any) -> list[OutboundMessage]:
    renderer = Renderer(dialect=Entities(), limit=4096, unit="utf16", to_blocks=to_blocks)
    return [msgspec.structs.replace(message, **fields) for message in renderer.markdown(text)]


@examples(60)
@given(ANY_TEXTS)
def test_the_platform_accepts_any_markdown_as_a_rich_message(text: str) -> None:
    fake = FakeTelegram()
    ada = fake.user("Ada")
    chat = fake.private(ada)
    for message in rich(text):
        (call,) = send_calls(message, Destination(chat_id=str(ada.id)))
        record = asyncio.run(fake.api.call(fake.bot, call.method, call.params, {}))
        assert record.error is None or "must be non-empty" in str(record.error)
    rest = iter(words(" ".join(fake.shown(chat).answers)))
    assert all(word in rest for word in list_shown_words(text))


def test_a_rich_message_is_sent_changed_and_drafted_as_one() -> None:
    (message,) = rich("# Title\n\nwords", buttons=(Button(text="Yes", data="ok:1"),), reply_to="9")
    blocks = [{"type": "heading", "size": 1, "text": "Title"}, {"type": "paragraph", "text": "words"}]
    content = {"rich_message": {"blocks": blocks, "skip_entity_detection": True}}
    sent, edited = only(send_calls(message, HERE)), edit_call("7", message, HERE)
    assert (sent.method, edited.method) == ("sendRichMessage", "editMessageText")
    assert content.items() <= sent.params.items()
    assert content.items() <= edited.params.items()
    assert {"reply_markup", "reply_parameters"} <= sent.params.keys()
    assert not {"text", "entities", "link_preview_options"} & (sent.params.keys() | edited.params.keys())
    draft = draft_call(message, Destination(chat_id="1"))
    assert (draft.method, draft.params["rich_message"]) == ("sendRichMessageDraft", content["rich_message"])


def test_a_block_that_is_too_long_is_texts() -> None:
    messages = rich(f"# Title\n\n{'word ' * 2000}")
    assert [bool(message.blocks) for message in messages] == [False] * len(messages)
    assert len(messages) == 3
