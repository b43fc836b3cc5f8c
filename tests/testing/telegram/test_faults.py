"""Flood control and faults, as a test sets them."""

import asyncio

import httpx
import pytest

from frontdesk_testing.telegram import FakeTelegram, FloodLimits, MovableClock
from tests.testing.telegram.starting import telegram_and_bot


def build_flooding(**limits: tuple[int, float]) -> FakeTelegram:
    return FakeTelegram(flood=FloodLimits(**limits), clock=MovableClock(running=False))


async def test_a_private_chat_takes_one_message_in_a_second_and_edits_count() -> None:
    async with telegram_and_bot(build_flooding()) as (telegram, bot):
        ann = telegram.user("Ann")
        telegram.private(ann)
        sent = await bot.call("sendMessage", chat_id=ann.id, text="1")
        answer = await bot.ask("sendMessage", chat_id=ann.id, text="2")
        assert answer == {
            "ok": False,
            "error_code": 429,
            "description": "Too Many Requests: retry after 1",
            "parameters": {"retry_after": 1},
        }
        telegram.clock.advance(1)
        await bot.call("editMessageText", chat_id=ann.id, message_id=sent["message_id"], text="2")
        assert (await bot.ask("sendMessage", chat_id=ann.id, text="3"))["error_code"] == 429
        await bot.call("sendChatAction", chat_id=ann.id, action="typing")


async def test_a_group_takes_twenty_messages_in_a_minute() -> None:
    async with telegram_and_bot(build_flooding()) as (telegram, bot):
        group = telegram.group("G", telegram.user("Ann"))
        for _ in range(20):
            await bot.call("sendMessage", chat_id=group.id, text="x")
        answer = await bot.ask("sendMessage", chat_id=group.id, text="x")
        assert answer["parameters"] == {"retry_after": 60}
        telegram.clock.advance(59.5)
        answer = await bot.ask("sendMessage", chat_id=group.id, text="x")
        assert answer["parameters"] == {"retry_after": 1}
        telegram.clock.advance(0.5)
        await bot.call("sendMessage", chat_id=group.id, text="x")


async def test_all_chats_together_have_a_limit() -> None:
    async with telegram_and_bot(build_flooding(overall=(2, 1.0))) as (telegram, bot):
        people = [telegram.user(name) for name in ("Ann", "Bob", "Eve")]
        for person in people:
            telegram.private(person)
        for person in people[:2]:
            await bot.call("sendMessage", chat_id=person.id, text="x")
        assert (await bot.ask("sendMessage", chat_id=people[2].id, text="x"))["error_code"] == 429


async def test_a_webhook_is_set_once_in_a_second() -> None:
    async with telegram_and_bot(build_flooding()) as (telegram, bot):
        await bot.call("setWebhook", url="http://127.0.0.1:1/")
        assert await bot.read_refusal("setWebhook", url="http://127.0.0.1:1/") == "Too Many Requests: retry after 1"
        telegram.clock.advance(1)
        await bot.call("setWebhook", url="http://127.0.0.1:1/")


async def test_an_error_is_set_for_the_next_calls() -> None:
    async with telegram_and_bot() as (telegram, bot):
        telegram.fail_next("getMe", 502, "Bad Gateway", times=2)
        telegram.fail_next("*", 429, "Too Many Requests: retry after 5", retry_after=5)
        assert [await bot.read_refusal("getMe") for _ in range(2)] == ["Bad Gateway"] * 2
        assert (await bot.ask("getMyCommands"))["parameters"] == {"retry_after": 5}
        await bot.call("getMe")
        assert [call.error is None for call in telegram.calls] == [False, False, False, True]


@pytest.mark.parametrize("acted", [True, False])
async def test_a_connection_is_closed_before_or_after_the_call_was_acted_on(acted: bool) -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        telegram.private(ann)
        telegram.drop_next("sendMessage", acted=acted)
        with pytest.raises(httpx.RemoteProtocolError):
            await bot.ask("sendMessage", chat_id=ann.id, text="x")
        assert telegram.shown(telegram.private(ann)).texts == (["x"] if acted else [])
        await bot.call("sendMessage", chat_id=ann.id, text="y")


async def test_a_call_is_held_until_it_is_released() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        telegram.private(ann)
        hold = telegram.hold_next("sendMessage")
        sending = asyncio.create_task(bot.call("sendMessage", chat_id=ann.id, text="x"))
        await hold.reached.wait()
        assert telegram.shown(telegram.private(ann)).texts == []
        hold.release()
        assert (await sending)["text"] == "x"
        telegram.fail_next("*", 500, "Internal Server Error")
        telegram.faults.clear()
        await bot.call("getMe")


async def test_a_clock_that_runs_can_be_moved_too() -> None:
    clock = MovableClock(start=1000.0)
    assert clock.now() >= 1000.0
    waiting = asyncio.create_task(clock.sleep(3600))
    await asyncio.sleep(0)
    clock.advance(3600)
    await waiting
    event = asyncio.Event()
    event.set()
    assert await clock.wait(event, 3600)
    assert not await clock.wait(asyncio.Event(), 0)
