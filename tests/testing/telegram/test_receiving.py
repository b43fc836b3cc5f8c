"""Updates come by polling or by a webhook, each until it was confirmed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from frontdesk_testing.telegram import FakeTelegram, MovableClock
from frontdesk_testing.telegram.schema.values import check_value
from frontdesk_testing.telegram.server import serve_on
from frontdesk_testing.telegram.updates import CLICK_LIFETIME_SECONDS, LIFETIME_SECONDS, QUIET_WEEK_SECONDS
from frontdesk_testing.telegram.webhooks import pause_before
from tests.testing.telegram.starting import BotClient, telegram_and_bot


def still() -> FakeTelegram:
    return FakeTelegram(clock=MovableClock(running=False))


def texts(updates: list[Any]) -> list[str]:
    return [update["message"]["text"] for update in updates]


async def test_an_offset_confirms_what_is_below_it() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        for word in ("one", "two", "three"):
            telegram.say(ann, word)
        first = await bot.call("getUpdates", limit=2)
        assert texts(first) == ["one", "two"]
        assert texts(await bot.call("getUpdates")) == ["one", "two", "three"]
        assert texts(await bot.call("getUpdates", offset=first[-1]["update_id"] + 1)) == ["three"]
        assert texts(await bot.call("getUpdates")) == ["three"]
        ids = [update["update_id"] for update in first]
        assert ids == sorted(ids)


async def test_a_negative_offset_forgets_what_is_older() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        for word in ("one", "two", "three"):
            telegram.say(ann, word)
        assert texts(await bot.call("getUpdates", offset=-1)) == ["three"]
        assert texts(await bot.call("getUpdates")) == ["three"]


async def test_a_poll_waits_for_an_update_or_for_its_timeout() -> None:
    async with telegram_and_bot(still()) as (telegram, bot):
        ann = telegram.user("Ann")
        poll = asyncio.create_task(bot.call("getUpdates", timeout=30))
        await telegram.until(lambda: telegram.calls)
        telegram.say(ann, "hello")
        assert texts(await poll) == ["hello"]
        await bot.updates()
        poll = asyncio.create_task(bot.call("getUpdates", timeout=1000))
        await telegram.until(lambda: telegram.bot.updates.is_polled)
        telegram.clock.advance(49.9)
        assert telegram.bot.updates.is_polled
        telegram.clock.advance(0.2)
        assert await poll == []


async def test_a_second_poll_ends_the_one_that_waits_after_three_seconds() -> None:
    async with telegram_and_bot(still()) as (telegram, bot):
        ann = telegram.user("Ann")
        first = asyncio.create_task(bot.read_refusal("getUpdates", timeout=30))
        await telegram.until(lambda: telegram.bot.updates.is_polled)
        second = asyncio.create_task(bot.call("getUpdates", timeout=30))
        await telegram.until(lambda: len(telegram.calls) == 2)
        telegram.say(ann, "hello")
        assert texts(await second) == ["hello"]
        assert not first.done()
        telegram.clock.advance(3)
        assert await first == (
            "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
        )


async def test_polling_and_a_webhook_exclude_each_other() -> None:
    async with telegram_and_bot(still()) as (telegram, bot):
        poll = asyncio.create_task(bot.read_refusal("getUpdates", timeout=30))
        await telegram.until(lambda: telegram.bot.updates.is_polled)
        await bot.call("setWebhook", url="http://127.0.0.1:1/")
        telegram.clock.advance(3)
        assert await poll == "Conflict: terminated by setWebhook request"
        answer = await bot.ask("getUpdates")
        assert answer["error_code"] == 409
        assert answer["description"].startswith("Conflict: can't use getUpdates method while webhook is active")
        await bot.call("deleteWebhook")
        assert await bot.call("getUpdates") == []


async def test_updates_that_were_not_asked_for_do_not_come() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        await bot.call("getUpdates", allowed_updates=["edited_message", "no_such_kind"])
        said = telegram.say(ann, "one")
        telegram.edit(said, "two")
        (update,) = await bot.updates()
        assert update["edited_message"]["text"] == "two"
        await bot.call("getUpdates", allowed_updates=[])
        telegram.say(ann, "three")
        assert texts(await bot.updates()) == ["three"]


async def test_old_updates_are_gone_and_ids_are_drawn_anew_after_a_quiet_week() -> None:
    async with telegram_and_bot(still()) as (telegram, bot):
        ann = telegram.user("Ann")
        telegram.say(ann, "one")
        sent = await bot.call(
            "sendMessage",
            chat_id=ann.id,
            text="x",
            reply_markup={"inline_keyboard": [[{"text": "b", "callback_data": "b"}]]},
        )
        telegram.press(ann, telegram.private(ann).messages[sent["message_id"]], "b")
        first = await bot.call("getUpdates")
        assert [len(first), "callback_query" in first[-1]] == [2, True]
        telegram.clock.advance(CLICK_LIFETIME_SECONDS)
        assert len(await bot.call("getUpdates")) == 1
        telegram.clock.advance(LIFETIME_SECONDS)
        assert await bot.call("getUpdates") == []
        telegram.clock.advance(QUIET_WEEK_SECONDS)
        telegram.say(ann, "later")
        (update,) = await bot.call("getUpdates")
        assert abs(update["update_id"] - first[-1]["update_id"]) > 10


def test_pauses_grow_to_a_minute() -> None:
    assert [pause_before(retry) for retry in range(1, 9)] == [0, 2, 4, 8, 16, 32, 60, 60]
    assert pause_before(100_000) == 60


class Receiver:
    """A webhook that answers as it is told."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[Any] = []
        self.secrets: list[str | None] = []
        self.answers: list[Response] = []
        self.open = asyncio.Event()
        self.open.set()
        self.active = self.most_active = 0
        self.two_active = asyncio.Event()

    async def receive(self, request: Request) -> Response:
        body = await request.json()
        check_value("Update", body)
        self.bodies.append(body)
        self.secrets.append(request.headers.get("x-telegram-bot-api-secret-token"))
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        if self.active == 2:
            self.two_active.set()
        await self.open.wait()
        self.active -= 1
        return self.answers.pop(0) if self.answers else Response()


@asynccontextmanager
async def open_receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    async with serve_on(Starlette(routes=[Route("/hook", receiver.receive, methods=["POST"])]), 0) as url:
        receiver.url = f"{url}/hook"
        yield receiver


async def wait_for_failures(telegram: FakeTelegram, count: int) -> None:
    await telegram.until(lambda: telegram.bot.webhook.failures == count)


async def empty(telegram: FakeTelegram) -> None:
    await telegram.until(lambda: not telegram.bot.updates.list_pending())


async def test_a_webhook_gets_updates_with_its_secret() -> None:
    async with open_receiver() as hook, telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        telegram.say(ann, "before")
        answer = await bot.ask("setWebhook", url=hook.url, secret_token="a-Secret_1")
        assert answer == {"ok": True, "result": True, "description": "Webhook was set"}
        telegram.say(ann, "after")
        await empty(telegram)
        assert texts(hook.bodies) == ["before", "after"]
        assert hook.secrets == ["a-Secret_1"] * 2
        info = await bot.call("getWebhookInfo")
        assert (info["url"], info["pending_update_count"], info["max_connections"]) == (hook.url, 0, 40)


async def test_an_update_is_sent_again_with_growing_pauses_and_holds_up_its_chat_only() -> None:
    async with open_receiver() as hook, telegram_and_bot(still()) as (telegram, bot):
        ann, bob = telegram.user("Ann"), telegram.user("Bob")
        await bot.call("setWebhook", url=hook.url)
        hook.answers = [Response(status_code=500)] * 3
        telegram.say(ann, "one")
        telegram.say(ann, "two")
        await wait_for_failures(telegram, 2)
        telegram.clock.advance(2)
        await wait_for_failures(telegram, 3)
        info = await bot.call("getWebhookInfo")
        assert info["last_error_message"] == "Wrong response from the webhook: 500 Internal Server Error"
        assert info["pending_update_count"] == 2
        telegram.say(bob, "other")
        await telegram.until(lambda: len(telegram.bot.updates.list_pending()) == 2)
        telegram.clock.advance(4)
        await empty(telegram)
        assert texts(hook.bodies) == ["one", "one", "one", "other", "one", "two"]


async def test_a_webhook_says_how_long_to_wait() -> None:
    async with open_receiver() as hook, telegram_and_bot(still()) as (telegram, bot):
        await bot.call("setWebhook", url=hook.url)
        hook.answers = [Response(status_code=429, headers={"retry-after": "30"})]
        telegram.say(telegram.user("Ann"), "one")
        await wait_for_failures(telegram, 1)
        telegram.clock.advance(29)
        assert len(hook.bodies) == 1
        telegram.clock.advance(1)
        await empty(telegram)
        assert len(hook.bodies) == 2


async def test_a_webhook_that_is_gone_for_23_hours_is_removed() -> None:
    async with open_receiver() as hook, telegram_and_bot(still()) as (telegram, bot):
        await bot.call("setWebhook", url=hook.url)
        hook.answers = [Response(status_code=410)] * 3
        telegram.say(telegram.user("Ann"), "one")
        await wait_for_failures(telegram, 2)
        telegram.clock.advance(23 * 3600)
        await telegram.until(lambda: not telegram.bot.webhook.url)
        assert texts(await bot.updates()) == ["one"]


async def test_a_webhook_is_called_so_often_at_once_as_it_allows() -> None:
    async with open_receiver() as hook, telegram_and_bot() as (telegram, bot):
        people = [telegram.user(name) for name in ("Ann", "Bob", "Eve")]
        for person in people:
            telegram.say(person, person.first_name)
        hook.open.clear()
        await bot.call("setWebhook", url=hook.url, max_connections=2)
        await hook.two_active.wait()
        hook.open.set()
        await empty(telegram)
        assert sorted(texts(hook.bodies)) == ["Ann", "Bob", "Eve"]
        assert hook.most_active == 2


async def test_a_webhook_that_nobody_serves_is_tried_again() -> None:
    async with telegram_and_bot(still()) as (telegram, bot):
        await bot.call("setWebhook", url="http://127.0.0.1:1/hook")
        telegram.say(telegram.user("Ann"), "one")
        await telegram.until(lambda: telegram.bot.webhook.last_error_message == "Connection refused")
        async with open_receiver() as hook:
            await bot.call("setWebhook", url=hook.url)
            await empty(telegram)
            assert texts(hook.bodies) == ["one"]


async def test_a_method_in_the_answer_of_a_webhook_is_acted_on() -> None:
    async with open_receiver() as hook, telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        await bot.call("setWebhook", url=hook.url)
        hook.answers = [JSONResponse({"method": "sendMessage", "chat_id": ann.id, "text": "at once"})]
        telegram.say(ann, "hello")
        await telegram.until(lambda: telegram.shown(telegram.private(ann)).answers)
        assert telegram.shown(telegram.private(ann)).texts == ["hello", "at once"]


async def test_a_click_overtakes_messages_that_wait() -> None:
    async with open_receiver() as hook, telegram_and_bot(still()) as (telegram, bot):
        ann = telegram.user("Ann")
        telegram.private(ann)
        markup = {"inline_keyboard": [[{"text": "Go", "callback_data": "go"}]]}
        sent = await bot.call("sendMessage", chat_id=ann.id, text="x", reply_markup=markup)
        await bot.call("setWebhook", url=hook.url)
        hook.answers = [Response(status_code=503)] * 2
        telegram.say(ann, "one")
        await wait_for_failures(telegram, 2)
        telegram.press(ann, telegram.private(ann).messages[sent["message_id"]], "Go")
        await telegram.until(lambda: len(telegram.bot.updates.list_pending()) == 1)
        assert "callback_query" in hook.bodies[-1]
        telegram.clock.advance(2)
        await empty(telegram)


REFUSED: list[tuple[dict[str, str], str]] = [
    ({"url": "http://example.com/x"}, "bad webhook: An HTTPS URL must be provided for webhook"),
    ({"url": "https://example.com:9000/x"}, "Webhook can be set up only on ports 80, 88, 443 or 8443"),
    ({"url": "https://"}, "invalid webhook URL specified"),
    ({"url": "https://x.y:port/"}, "invalid webhook URL specified"),
    ({"url": "https://x.y", "secret_token": "a b"}, "secret token contains unallowed characters"),
    ({"url": "https://x.y", "secret_token": "a" * 257}, "secret token is too long"),
]


async def test_webhooks_that_are_refused() -> None:
    async with telegram_and_bot() as (_, bot):
        for given, told in REFUSED:
            assert told in await bot.read_refusal("setWebhook", **given)


async def test_updates_that_wait_can_be_dropped() -> None:
    async with telegram_and_bot() as (telegram, bot):
        ann = telegram.user("Ann")
        telegram.say(ann, "one")
        await bot.call("deleteWebhook", drop_pending_updates=True)
        assert await bot.call("getUpdates") == []
        telegram.say(ann, "two")
        await bot.call("setWebhook", url="http://127.0.0.1:1/", drop_pending_updates=True)
        assert (await bot.call("getWebhookInfo"))["pending_update_count"] == 0
        await bot.call("setWebhook", url="")
        assert (await bot.call("getWebhookInfo"))["url"] == ""


async def test_two_bots_have_updates_of_their_own() -> None:
    async with telegram_and_bot() as (telegram, bot):
        other = telegram.world.add_bot("Other", "other_bot")
        ann = telegram.user("Ann")
        telegram.say(ann, "to the first")
        telegram.say(ann, "to the other", bot=other)
        second = BotClient(f"{telegram.url}/bot{other.token}", bot.http)
        assert texts(await bot.updates()) == ["to the first"]
        assert texts(await second.updates()) == ["to the other"]
