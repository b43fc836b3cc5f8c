"""Every way in which the platform fails is an error that says what to do next."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from frontdesk.errors import PushError, PushLimitedError, PushRefusedError, PushUnknownError
from frontdesk.outbound.platform import PlatformResponse
from frontdesk.secret import Secret
from frontdesk_testing import TcpProxy
from frontdesk_testing.messages import MessagePlatform, Person
from frontdesk_testing.messages.client import PlatformClient, failure
from frontdesk_testing.messages.config import MessageConfig
from frontdesk_testing.messages.wire import Button, Edit, Media, Send
from tests.scenarios.desk import until
from tests.testing.messages.starting import new_platform


@pytest.fixture
async def platform() -> AsyncIterator[MessagePlatform]:
    async with new_platform() as one:
        yield one


def client_of(platform: MessagePlatform, *, url: str = "", seconds: float = 5.0, token: str = "") -> PlatformClient:
    config = MessageConfig(
        platform_url=url or platform.url, token=Secret(token or platform.token), call_timeout=seconds
    )
    return PlatformClient(config)


async def build_error(call: Any) -> PushError:
    with pytest.raises(PushError) as caught:
        await call
    return caught.value


def read_error(error: PushError) -> tuple[type[PushError], str, float | None, bool, bool, bool]:
    return type(error), error.code, error.retry_after, error.permanent, error.unknown, error.everywhere


FAILURES: dict[str, Any] = {
    # How it fails, what the error says, and whether the message was accepted all the same.
    "blocked": ({}, (PushRefusedError, "blocked", None, True, False, False), False),
    "not_found": ({}, (PushRefusedError, "not_found", None, True, False, False), False),
    "bad_request": ({}, (PushRefusedError, "bad_request", None, True, False, False), False),
    "flood": ({"retry_after": 7}, (PushLimitedError, "flood", 7.0, False, False, False), False),
    "error": ({}, (PushError, "error", None, False, False, False), False),
    "unavailable": ({"retry_after": 3}, (PushError, "unavailable", 3.0, False, False, False), False),
    "timeout_before": ({}, (PushUnknownError, "push_unknown", None, False, True, False), False),
    "timeout_after": ({}, (PushUnknownError, "push_unknown", None, False, True, False), True),
    "cut_before": ({}, (PushUnknownError, "push_unknown", None, False, True, False), False),
    "cut_after": ({}, (PushUnknownError, "push_unknown", None, False, True, False), True),
}


@pytest.mark.parametrize("kind", FAILURES)
async def test_a_failure_says_what_to_do_next(kind: Any, platform: MessagePlatform) -> None:
    rule, expected, accepted = FAILURES[kind]
    client = client_of(platform, seconds=0.3)
    ada = await platform.user("Ada")
    await platform.fail(kind, method="send", user_id=ada.user_id, times=1, **rule)
    assert read_error(await build_error(client.send(Send(chat_id=ada.chat_id, text="hello")))) == expected
    assert [one.text for one in platform.log_on_disk()] == (["hello"] if accepted else [])
    # The next one is not taken for the answer to the last.
    assert (await client.send(Send(chat_id=ada.chat_id, text="again"))).chat_id == ada.chat_id
    assert platform.log_on_disk()[-1].text == "again"


async def test_a_limit_of_the_whole_bot(platform: MessagePlatform) -> None:
    await platform.fail("flood", scope="bot", retry_after=2, times=1)
    error = await build_error(client_of(platform).send(Send(chat_id="c", text="hello")))
    assert read_error(error) == (PushLimitedError, "flood", 2.0, False, False, True)


async def test_nobody_is_there(platform: MessagePlatform) -> None:
    error = await build_error(client_of(platform, url="http://127.0.0.1:1").send(Send(chat_id="c", text="hello")))
    assert read_error(error) == (PushError, "unreachable", None, False, False, False)


async def test_a_wrong_token_is_told_to_nobody(platform: MessagePlatform) -> None:
    error = await build_error(client_of(platform, token="a-wrong-token").me())
    assert read_error(error) == (PushRefusedError, "unauthorized", None, True, False, False)
    assert "a-wrong-token" not in f"{error!r} {error}"


async def test_a_connection_that_breaks_is_not_used_again(platform: MessagePlatform) -> None:
    port = int(platform.url.rpartition(":")[2])
    async with TcpProxy(("127.0.0.1", port)) as proxy:
        client = client_of(platform, url=f"http://127.0.0.1:{proxy.port}")
        ada = await platform.user("Ada")
        for number in range(3):
            await client.send(Send(chat_id=ada.chat_id, text=str(number)))
            (kept,) = client._connections._idle
            proxy.cut()
            await until(lambda kept=kept: not kept.reusable)
    assert [one.text for one in platform.log_on_disk()] == ["0", "1", "2"]


async def test_many_at_once(platform: MessagePlatform) -> None:
    client = client_of(platform)
    people = [await platform.user(str(number)) for number in range(5)]

    async def talk(who: Person) -> None:
        for number in range(100):
            sent = await client.send(Send(chat_id=who.chat_id, text=f"{who.name} {number}"))
            assert sent.chat_id == who.chat_id

    await asyncio.gather(*map(talk, people))
    for who in people:
        assert [one.text for one in await platform.chat(who.chat_id)] == [f"{who.name} {n}" for n in range(100)]


BAD: dict[str, Any] = {
    "empty_message": Send(text=" \n"),
    "text_too_long": Send(text="x" * 4097),
    "bad_button": Send(text="x", buttons=(Button(text="x", data="y" * 65),)),
    "too_many_buttons": Send(text="x", buttons=(Button(text="x", data="y"),) * 9),
    "media_too_large": Send(media=(Media(media_type="image/png", data="x" * (1024 * 1024 + 1)),)),
    "reply_not_found": Send(text="x", reply_to="m"),
    "key_too_long": Send(text="x", idempotency_key="k" * 129),
}


@pytest.mark.parametrize("code", BAD)
async def test_the_platform_is_strict(code: str, platform: MessagePlatform) -> None:
    ada = await platform.user("Ada")
    error = await build_error(client_of(platform).send(msgspec.structs.replace(BAD[code], user_id=ada.user_id)))
    assert (error.code, error.permanent) == (code, True)
    assert platform.log_on_disk() == []


async def test_edits_are_of_our_own_messages(platform: MessagePlatform) -> None:
    client, ada = client_of(platform), await platform.user("Ada")
    theirs = await platform.say(ada, "mine")
    ours = await client.send(Send(chat_id=ada.chat_id, text="ours"))
    assert theirs.message is not None
    edit = Edit(chat_id=ada.chat_id, message_id=theirs.message.message_id, text="changed")
    assert (await build_error(client.edit(edit))).code == "message_not_found"
    same = Edit(chat_id=ada.chat_id, message_id=ours.message_id, text="ours")
    assert (await build_error(client.edit(same))).code == "not_modified"
    await client.edit(Edit(chat_id=ada.chat_id, message_id=ours.message_id, text="changed"))
    assert [one.text for one in await platform.answers(ada.chat_id)] == ["changed"]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *((status, PushRefusedError) for status in (400, 401, 403, 404, 422)),
        *((status, PushUnknownError) for status in (408, 504)),
        *((status, PushError) for status in (500, 502, 503)),
        (429, PushLimitedError),
    ],
)
@pytest.mark.parametrize("body", [b"", b"<html>", b'{"error":{}}', b'{"error":{"code":"x","message":"y"}}'])
def test_every_status_is_an_error_of_its_kind(status: int, expected: type[PushError], body: bytes) -> None:
    error = failure(PlatformResponse(status, {}, body))
    assert type(error) is expected
    assert error.code in ("x", f"status_{status}")
