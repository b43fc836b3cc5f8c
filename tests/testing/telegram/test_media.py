"""Files go up, are sent again by their ids, and come down within an hour."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk_testing.telegram import FakeTelegram, MovableClock, Upload
from frontdesk_testing.telegram.bodies import read_multipart, read_parameters
from frontdesk_testing.telegram.errors import ApiError
from tests.testing.telegram.starting import check_result, telegram_and_bot

KINDS = [
    ("sendPhoto", "photo"),
    ("sendDocument", "document"),
    ("sendAudio", "audio"),
    ("sendVoice", "voice"),
    ("sendVideo", "video"),
    ("sendAnimation", "animation"),
    ("sendVideoNote", "video_note"),
    ("sendSticker", "sticker"),
]


async def test_every_kind_of_file_is_sent_once_by_upload_and_again_by_its_id() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        chat = telegram.private(ann)
        for method, kind in KINDS:
            answer = await bot.http.post(
                f"{bot.url}/{method}", data={"chat_id": str(ann.id)}, files={kind: ("a.bin", kind.encode())}
            )
            message = answer.json()["result"]
            check_result(method, message)
            sizes = message[kind]
            file = sizes[-1] if isinstance(sizes, list) else sizes
            again = await bot.call(method, chat_id=ann.id, **{kind: file["file_id"]})
            assert again[kind] == sizes
            path = (await bot.call("getFile", file_id=file["file_id"]))["file_path"]
            content = await bot.http.get(f"{telegram.url}/file/bot{telegram.token}/{path}")
            assert content.content == kind.encode()
        assert [message.media for message in telegram.shown(chat).messages] == [kind for _, kind in KINDS for _ in "12"]


async def test_captions_have_a_limit_of_their_own() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        telegram.private(ann)
        photo = {"chat_id": ann.id, "photo": "https://a.b/c.jpg"}
        sent = await bot.call("sendPhoto", **photo, caption="*x*" + "y" * 1023, parse_mode="MarkdownV2")
        assert sent["caption_entities"] == [{"type": "bold", "offset": 0, "length": 1}]
        assert (
            await bot.read_refusal("sendPhoto", **photo, caption="😀" * 513)
            == "Bad Request: message caption is too long"
        )


async def test_files_that_are_refused() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        telegram.private(ann)
        told = await bot.read_refusal("sendPhoto", chat_id=ann.id, photo="nonsense")
        assert "wrong remote file identifier specified" in told
        said = telegram.say(ann, media=("voice", Upload(b"v")))
        voice = said.content["voice"]["file_id"]
        assert await bot.read_refusal("sendPhoto", chat_id=ann.id, photo=voice) == (
            "Bad Request: can't use file of type voice as photo"
        )
        told = await bot.read_refusal("sendDocument", chat_id=ann.id, document="attach://nothing")
        assert "not found in the multipart form" in told
        empty = await bot.http.post(
            f"{bot.url}/sendDocument", data={"chat_id": str(ann.id)}, files={"document": ("a", b"")}
        )
        assert empty.json()["description"] == "Bad Request: file must be non-empty"
        assert await bot.read_refusal("getFile", file_id="x") == "Bad Request: invalid file_id"
        large = telegram.say(ann, media=("document", Upload(b"x", size=20 * 1024 * 1024 + 1)))
        told = await bot.read_refusal("getFile", file_id=large.content["document"]["file_id"])
        assert told == "Bad Request: file is too big"


async def test_uploads_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk_testing.telegram.methods.media.MAX_PHOTO_BYTES", 10)
    monkeypatch.setattr("frontdesk_testing.telegram.methods.media.MAX_UPLOAD_BYTES", 50)
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        telegram.private(ann)

        async def told(method: str, kind: str, size: int) -> str:
            files = {kind: ("a", b"x" * size)}
            answer = await bot.http.post(f"{bot.url}/{method}", data={"chat_id": str(ann.id)}, files=files)
            return answer.json()["description"]

        assert await told("sendPhoto", "photo", 11) == "Bad Request: too big for a photo"
        assert await told("sendDocument", "document", 51) == "Request Entity Too Large"


async def test_a_link_to_a_file_ends_after_an_hour() -> None:
    async with telegram_and_bot(FakeTelegram(clock=MovableClock(running=False))) as (telegram, bot):
        ann = telegram.user("Ann")
        said = telegram.say(ann, "look", media=("photo", Upload(b"bytes")))
        assert said.content["caption"] == "look"
        path = (await bot.call("getFile", file_id=said.content["photo"][-1]["file_id"]))["file_path"]
        address = f"{telegram.url}/file/bot{telegram.token}/{path}"
        assert (await bot.http.get(address)).content == b"bytes"
        telegram.clock.advance(3600)
        assert (await bot.http.get(address)).status_code == 404


async def test_an_album_is_several_messages_of_one_group() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        chat = telegram.private(ann)
        files = {"one": ("1.jpg", b"1"), "two": ("2.jpg", b"2")}
        media = '[{"type":"photo","media":"attach://one","caption":"c"},{"type":"photo","media":"attach://two"}]'
        answer = await bot.http.post(
            f"{bot.url}/sendMediaGroup", data={"chat_id": str(ann.id), "media": media}, files=files
        )
        messages = answer.json()["result"]
        check_result("sendMediaGroup", messages)
        assert len({message["media_group_id"] for message in messages}) == 1
        assert [message.text for message in telegram.shown(chat).messages] == ["c", ""]
        assert telegram.calls[-1].files == {"one": "1.jpg", "two": "2.jpg"}
        url = "https://a.b/c"
        mixed = [{"type": "photo", "media": url}, {"type": "document", "media": url}]
        assert "can't mix" in await bot.read_refusal("sendMediaGroup", chat_id=ann.id, media=mixed)


async def test_places_and_contacts() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        telegram.private(ann)
        sent = await bot.call("sendLocation", chat_id=ann.id, latitude=48.2, longitude=16.4)
        assert sent["location"] == {"latitude": 48.2, "longitude": 16.4}
        told = await bot.read_refusal("sendLocation", chat_id=ann.id, latitude=91, longitude=0)
        assert told == "Bad Request: wrong location specified"
        sent = await bot.call("sendContact", chat_id=ann.id, phone_number="+43", first_name="Bob")
        assert sent["contact"]["first_name"] == "Bob"
        telegram.share_location(ann, 1, 2)
        telegram.share_contact(ann, "+1", "Eve")
        kinds = [message.media for message in telegram.shown(telegram.private(ann)).messages]
        assert kinds == ["location", "contact", "location", "contact"]
        await bot.updates()


PARTS = st.dictionaries(st.text("abc_", min_size=1, max_size=5), st.text(max_size=20), min_size=1, max_size=4)


def form(fields: dict[str, str], files: dict[str, bytes]) -> bytes:
    parts = [
        f'--xyz\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n' for name, text in fields.items()
    ]
    body = "".join(parts).encode("utf-8", "replace")
    for name, content in files.items():
        head = f'--xyz\r\nContent-Disposition: form-data; name="{name}"; filename="f.bin"\r\nContent-Type: a/b\r\n\r\n'
        body += head.encode() + content + b"\r\n"
    return body + b"--xyz--\r\n"


@given(PARTS, st.dictionaries(st.sampled_from(["f1", "f2"]), st.binary(max_size=30)))
def test_a_form_of_several_parts_is_read_as_it_was_written(fields: dict[str, str], files: dict[str, bytes]) -> None:
    got, uploads = read_multipart("multipart/form-data; boundary=xyz", form(fields, files))
    assert got == {name: text.encode("utf-8", "replace").decode() for name, text in fields.items()}
    assert {name: upload.content for name, upload in uploads.items()} == files


@given(st.binary(max_size=80), st.sampled_from(["multipart/form-data; boundary=x", "application/json", "a/b", ""]))
def test_no_body_breaks_the_reader(body: bytes, content_type: str) -> None:
    with contextlib.suppress(ApiError):
        read_parameters("a=1", content_type, body)
