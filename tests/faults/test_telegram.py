"""What goes wrong on Telegram: doubled updates, floods, restarts, moved groups, blocks, two pollers, lost answers."""

import logging
from pathlib import Path
from typing import Any

import pytest

from frontdesk import PostgresStateStore
from frontdesk.interfaces.chat import PushTerms
from frontdesk_testing import EchoAgent, GatedAgent
from frontdesk_testing.internals import get_store
from frontdesk_testing.telegram import Upload, fake_telegram
from tests.scenarios.desk import until
from tests.scenarios.telegram.bot import SECRET, TelegramHost, open_bot

HEADER = "x-telegram-bot-api-secret-token"


async def deliveries(bot: TelegramHost) -> list[tuple[str, str | None]]:
    """Return the status and the reason of all that was sent."""
    return [(delivery.status, delivery.error) for delivery in await get_store(bot.host).outbox.find()]


def update(user_id: int, text: str) -> dict[str, Any]:
    person = {"id": user_id, "is_bot": False, "first_name": "Ada"}
    chat = {"id": user_id, "type": "private"}
    return {"update_id": 5, "message": {"message_id": 1, "date": 1, "chat": chat, "from": person, "text": text}}


async def test_an_update_that_came_twice_is_answered_once() -> None:
    agent = EchoAgent()
    async with open_bot(agent) as bot:
        ada = bot.fake.user("Ada")
        chat = bot.fake.private(ada)
        for _ in range(3):
            answer = await bot.http.post("/telegram/events", json=update(ada.id, "one"), headers={HEADER: SECRET})
            assert answer.status_code == 200
        await bot.says(chat, "one")
        assert await bot.ask(ada, "two") == "two"
        assert len(agent.seen) == 2


@pytest.mark.parametrize("headers", [{}, {HEADER: ""}, {HEADER: "another-secret-of-a-webhook"}])
async def test_what_does_not_bring_the_secret_is_refused(headers: dict[str, str]) -> None:
    agent = EchoAgent()
    async with open_bot(agent) as bot:
        answer = await bot.http.post("/telegram/events", json=update(1, "let me in"), headers=headers)
        assert answer.status_code == 401
        assert agent.seen == []


async def test_an_update_that_nobody_can_read_does_not_come_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    async with open_bot(EchoAgent()) as bot:
        for body in ({"update_id": 1, "message": {"text": 5}}, {"message": "?"}, []):
            answer = await bot.http.post("/telegram/events", json=body, headers={HEADER: SECRET})
            assert answer.status_code == 200
        assert caplog.text.count("event skipped: channel=telegram") == 3


async def test_a_flood_waits_and_sends_nothing_twice() -> None:
    async with open_bot(EchoAgent()) as bot:
        ada = bot.fake.user("Ada")
        bot.fake.fail_next("sendMessage", 429, "Too Many Requests: retry after 0", times=3, retry_after=0)
        assert await bot.ask(ada, "one") == "one"
        await bot.wait_for_ends()
        assert await deliveries(bot) == [("accepted", None)]
        assert bot.fake.shown(bot.fake.private(ada)).answers == ["one"]


async def test_an_answer_that_may_have_arrived_is_unknown_and_not_sent_again() -> None:
    async with open_bot(EchoAgent()) as bot:
        ada = bot.fake.user("Ada")
        bot.fake.drop_next("sendMessage", acted=True)
        assert await bot.ask(ada, "one") == "one"
        await bot.wait_for_ends()
        assert [status for status, _ in await deliveries(bot)] == ["unknown"]
        assert bot.fake.shown(bot.fake.private(ada)).answers == ["one"]


async def test_who_blocks_the_bot_gets_nothing_and_is_answered_again_later() -> None:
    agent = GatedAgent()
    async with open_bot(agent) as bot:
        ada = bot.fake.user("Ada")
        bot.fake.say(ada, "one")
        await agent.started.wait()
        bot.fake.block(ada)
        agent.release.set()
        await bot.wait_for_ends()
        assert await deliveries(bot) == [("dead", "blocked")]
        bot.fake.unblock(ada)
        assert await bot.ask(ada, "two") == "two"


async def test_a_topic_that_was_deleted_is_not_answered_elsewhere() -> None:
    agent = GatedAgent()
    async with open_bot(agent) as bot:
        ada = bot.fake.user("Ada")
        group = bot.fake.supergroup("Team", ada, forum=True)
        topic = bot.fake.topic(group, "Plans", by=ada)
        bot.fake.say(ada, "@frontdesk_bot one", group, thread=topic.thread_id)
        await agent.started.wait()
        del group.topics[topic.thread_id]
        agent.release.set()
        await bot.wait_for_ends()
        assert await deliveries(bot) == [("dead", "thread_not_found")]
        assert bot.fake.shown(group).answers == []


async def test_a_group_that_became_a_supergroup_keeps_its_conversation() -> None:
    agent = EchoAgent()
    async with open_bot(agent) as bot:
        ada = bot.fake.user("Ada")
        group = bot.fake.group("Team", ada)
        assert await bot.ask(ada, "@frontdesk_bot one", group) == "one"
        moved = bot.fake.migrate(group, by=ada)
        assert await bot.ask(ada, "@frontdesk_bot two", moved) == "two"
        assert [message.text for message in agent.seen[-1]] == ["one", "one", "two"]


@pytest.mark.parametrize("live", ["off", "auto"])
async def test_an_answer_to_a_group_that_moved_meanwhile_arrives_there(live: str) -> None:
    agent = GatedAgent()
    async with open_bot(agent, live=live) as bot:
        ada = bot.fake.user("Ada")
        group = bot.fake.group("Team", ada)
        bot.fake.say(ada, "@frontdesk_bot one two", group)
        await agent.started.wait()
        if live == "auto":
            await bot.says(group, "one")
        # The platform tells of the move by the error alone.
        await bot.channel.client.delete_webhook()
        moved = bot.fake.migrate(group, by=ada)
        agent.release.set()
        await bot.says(moved, "one two")
        await bot.wait_for_ends()
        assert [call for call in bot.fake.calls if call.error is not None and "supergroup" in str(call.error)]
        assert {status for status, _ in await deliveries(bot)} == {"accepted"}


async def test_a_restart_in_the_middle_of_an_answer_ends_it_in_the_same_message(tmp_path: Path) -> None:
    async with fake_telegram() as fake:
        ada = fake.user("Ada")
        chat = fake.private(ada)
        first = GatedAgent()
        settings: dict[str, Any] = {"fake": fake, "transport": "polling", "live": "auto", "state_dir": tmp_path}
        async with open_bot(first, **settings, shutdown_grace_seconds=0) as bot:
            fake.say(ada, "one two three")
            await bot.says(chat, "one")
        async with open_bot(EchoAgent(), **settings) as bot:
            await bot.says(chat, "one two three")
            await bot.wait_for_ends()
        assert fake.shown(chat).answers == ["one two three"]
        assert fake.shown(chat).messages[-1].buttons == ()
        assert len(fake.list_calls("sendMessage")) == 1


async def test_another_poller_ends_ours_and_nothing_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    async with open_bot(EchoAgent(), transport="polling") as bot:
        ada = bot.fake.user("Ada")
        assert await bot.ask(ada, "one") == "one"
        bot.fake.fail_next(
            "getUpdates", 409, "Conflict: terminated by other getUpdates request; make sure that only one …", times=2
        )
        assert await bot.ask(ada, "two") == "two"
        assert await bot.ask(ada, "three") == "three"
        assert "conflict" in caplog.text
        assert bot.fake.shown(bot.fake.private(ada)).answers == ["one", "two", "three"]


async def test_a_poll_that_is_silent_for_too_long_is_dead_and_followed_by_another() -> None:
    async with fake_telegram() as fake:
        silent = fake.hold_next("getUpdates")
        quick = {"poll_seconds": 0.1, "call_timeout": 0.5}
        async with open_bot(EchoAgent(), fake=fake, transport="polling", **quick) as bot:
            await silent.reached.wait()
            assert await bot.ask(fake.user("Ada"), "one") == "one"
        silent.release()


async def test_a_webhook_is_removed_for_polling_only_if_that_is_set(caplog: pytest.LogCaptureFixture) -> None:
    async with fake_telegram() as fake:
        ada = fake.user("Ada")
        async with open_bot(EchoAgent(), fake=fake):
            assert fake.bot.webhook.url
        caplog.set_level(logging.WARNING)
        async with open_bot(EchoAgent(), fake=fake, transport="polling") as bot:
            await bot.until(lambda: [call for call in fake.calls if call.method == "getUpdates"])
            assert fake.bot.webhook.url
        async with open_bot(EchoAgent(), fake=fake, transport="polling", remove_webhook=True) as bot:
            fake.say(ada, "one")
            await bot.says(fake.private(ada), "one")
            assert not fake.bot.webhook.url


async def test_of_two_hosts_one_polls_and_the_other_follows_it(postgres: str) -> None:
    agent = EchoAgent()
    async with fake_telegram() as fake:
        ada = fake.user("Ada")
        chat = fake.private(ada)
        settings: dict[str, Any] = {"fake": fake, "transport": "polling"}
        async with open_bot(agent, store=PostgresStateStore(postgres), **settings) as second:
            async with open_bot(agent, store=PostgresStateStore(postgres), **settings) as first:
                for number in range(5):
                    assert await first.ask(ada, f"{number}") == f"{number}"
            assert await second.ask(ada, "after") == "after"
        assert fake.shown(chat).answers == ["0", "1", "2", "3", "4", "after"]
        assert not [call for call in fake.calls if call.error is not None]


async def test_a_file_that_did_not_come_is_fetched_again() -> None:
    agent = EchoAgent()
    async with open_bot(agent) as bot:
        ada = bot.fake.user("Ada")
        bot.fake.fail_next("getFile", 500, "Internal Server Error")
        bot.fake.drop_next("getFile", acted=True)
        assert await bot.ask(ada, "look", media=("photo", Upload(b"x", "a.jpg", "image/jpeg"))) == "look"
        assert [content.type for content in agent.seen[-1][-1].contents] == ["text", "data"]


async def test_a_platform_that_is_away_at_the_start_is_asked_again() -> None:
    async with fake_telegram() as fake:
        fake.drop_next("getMe", acted=False, times=2)
        async with open_bot(EchoAgent(), fake=fake, transport="polling") as bot:
            assert await bot.ask(fake.user("Ada"), "one") == "one"


async def test_what_waits_for_hours_ends_when_the_bot_is_blocked_or_removed() -> None:
    async with open_bot(EchoAgent(), push_terms=PushTerms(longest_age=86_400.0)) as bot:
        ada = bot.fake.user("Ada")
        group = bot.fake.supergroup("Team", ada, forum=True)
        topic = bot.fake.topic(group, "Plans", by=ada)
        bot.fake.fail_next("sendMessage", 429, "Too Many Requests: retry after 9999", times=2, retry_after=9999)
        bot.fake.say(ada, "one")
        await bot.until(lambda: [call.method for call in bot.fake.calls].count("sendMessage") == 1)
        bot.fake.say(ada, "@frontdesk_bot two", group, thread=topic.thread_id)
        await until(lambda: _count(bot, "pending", 2))
        bot.fake.block(ada)
        bot.fake.kick(group, bot.fake.bot.user, by=ada)
        await until(lambda: _count(bot, "dead", 2))
        assert {reason for _, reason in await deliveries(bot)} == {"blocked", "kicked"}


async def _count(bot: TelegramHost, status: str, count: int) -> bool:
    return [found for found, _ in await deliveries(bot)].count(status) == count
