"""The client of the Bot API: what it sends, and that its token is seen nowhere; against a real server on loopback."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from frontdesk.channels.telegram.client import BotClient, FloodWaits
from frontdesk.errors import PushError, PushLimitedError, PushRefusedError, PushUnknownError
from frontdesk.outbound.platform import FormFile
from frontdesk.secret import Secret
from tests.outbound.origin import Origin, ok, serve_origin

TOKEN = "4839574812:AAFD39kkdpWt3ywyRZergyOLMaJhac60qcK"
BOT = f"/bot{TOKEN}"


@asynccontextmanager
async def open_client(**settings: Any) -> AsyncIterator[tuple[BotClient, Origin]]:
    async with serve_origin() as origin:
        url = f"http://127.0.0.1:{origin.port}"
        client = BotClient(Secret(TOKEN), api_url=url, allow_private=True, **settings)
        try:
            yield client, origin
        finally:
            await client.close()


def build_answer(result: Any) -> bytes:
    return ok(json.dumps({"ok": True, "result": result}).encode(), "Connection: close")


def build_refusal(status: str, description: str, **parameters: int) -> bytes:
    body = {"ok": False, "error_code": int(status[:3]), "description": description, "parameters": parameters}
    return ok(json.dumps(body).encode(), "Connection: close", status=status)


async def test_a_call_returns_its_result() -> None:
    async with open_client() as (client, origin):
        origin.answers[f"{BOT}/getMe"] = build_answer({"id": 7, "is_bot": True, "first_name": "B", "username": "b_bot"})
        me = await client.get_me()
    assert (me.id, me.username) == (7, "b_bot")
    assert origin.heads[0].startswith(f"POST {BOT}/getMe ")


async def test_the_token_is_in_no_error_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with open_client() as (client, origin):
        origin.answers[f"{BOT}/getMe"] = build_refusal("401 Unauthorized", "Unauthorized")
        origin.answers[f"{BOT}/getFile"] = build_answer({"file_path": "documents/file_1.txt"})
        origin.answers[f"/file{BOT}/documents/file_1.txt"] = ok(b"no", "Connection: close", status="404 Not Found")
        origin.answers[f"{BOT}/unknown"] = b""
        errors: list[BaseException] = []
        for call in (client.get_me(), client.download("f", max_bytes=10), client.call("unknown", {})):
            with pytest.raises(PushError) as caught:
                await call
            errors.append(caught.value)
    seen = "".join(f"{error!r}{error.__cause__!r}{error.__context__!r}" for error in errors) + caplog.text
    assert TOKEN not in seen
    assert TOKEN.partition(":")[2] not in seen
    assert TOKEN not in repr(vars(client))


async def test_a_send_without_a_response_is_unknown() -> None:
    async with open_client() as (client, origin):
        origin.answers[f"{BOT}/sendMessage"] = b""
        with pytest.raises(PushUnknownError):
            await client.send("sendMessage", {"chat_id": 1, "text": "hi"})


async def test_a_platform_that_is_away_took_nothing() -> None:
    away = BotClient(Secret(TOKEN), api_url="http://127.0.0.1:1", allow_private=True)
    with pytest.raises(PushError) as caught:
        await away.send("sendMessage", {"chat_id": 1, "text": "hi"})
    assert (caught.value.code, caught.value.unknown) == ("unreachable", False)


async def test_an_album_has_the_ids_of_its_messages() -> None:
    async with open_client() as (client, origin):
        origin.answers[f"{BOT}/sendMediaGroup"] = build_answer([{"message_id": 5}, {"message_id": 6}])
        files = [FormFile("a", "a.png", "image/png", b"1"), FormFile("b", "b.png", "image/png", b"2")]
        assert await client.send("sendMediaGroup", {"chat_id": 1, "media": [{"type": "photo"}]}, files) == (5, 6)
    assert "multipart/form-data; boundary=" in origin.heads[0]


async def test_updates_come_with_their_numbers() -> None:
    async with open_client() as (client, origin):
        origin.answers[f"{BOT}/getUpdates"] = build_answer([{"update_id": 3, "message": {}}, {"update_id": 4}])
        updates = await client.get_updates(3, 0)
    assert [number for number, _ in updates] == [3, 4]
    assert json.loads(updates[1][1]) == {"update_id": 4}


@pytest.mark.parametrize("result", [b'[{"update_id": "x"}]', b"[{}]", b"[" * 3000 + b"]" * 3000])
async def test_updates_that_make_no_sense_are_an_error_of_the_platform(result: bytes) -> None:
    async with open_client() as (client, origin):
        origin.answers[f"{BOT}/getUpdates"] = ok(b'{"ok": true, "result": ' + result + b"}", "Connection: close")
        with pytest.raises(PushUnknownError) as failure:
            await client.get_updates(3, 0)
    assert failure.value.code == "unreadable_response"


@pytest.mark.parametrize(
    ("file", "content", "code"),
    [
        ({"file_path": "a/b.txt", "file_size": 11}, b"", "too_large"),
        ({"file_path": "a/b.txt"}, b"01234567890", "too_large"),
        ({}, b"", "no_file_path"),
        ({"file_path": "../../bot1:x/getMe"}, b"", "no_file_path"),
    ],
)
async def test_a_file_is_bounded_and_below_the_bots_own_files(file: dict[str, Any], content: bytes, code: str) -> None:
    async with open_client() as (client, origin):
        origin.answers[f"{BOT}/getFile"] = build_answer(file)
        origin.answers[f"/file{BOT}/a/b.txt"] = ok(content, "Connection: close")
        with pytest.raises(PushRefusedError) as caught:
            await client.download("f", max_bytes=10)
    assert caught.value.code == code


async def test_a_file_is_downloaded() -> None:
    async with open_client() as (client, origin):
        origin.answers[f"{BOT}/getFile"] = build_answer({"file_path": "a/b c.txt"})
        origin.answers[f"/file{BOT}/a/b%20c.txt"] = ok(b"hello", "Connection: close")
        assert await client.download("f", max_bytes=10) == b"hello"


async def test_a_second_chat_that_has_to_wait_makes_it_the_wait_of_the_bot() -> None:
    floods = FloodWaits()
    first = floods.note(PushLimitedError(retry_after=600.0), "1")
    again = floods.note(PushLimitedError(retry_after=600.0), "1")
    other = floods.note(PushLimitedError(retry_after=600.0), "2")
    assert [error.everywhere for error in (first, again, other)] == [False, False, True]
    assert floods.note(PushLimitedError(retry_after=1.0), "").everywhere
