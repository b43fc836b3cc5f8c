"""People and a bot on Telegram: by webhook and by polling, in private chats, groups and topics."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agent_framework import AgentResponseUpdate, Content

from frontdesk import ChannelCommand
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.interfaces.chat import PushTerms
from frontdesk_testing import EchoAgent, GatedAgent
from frontdesk_testing.telegram import FakeTelegram, Upload, fake_telegram
from tests.scenarios.telegram.bot import open_bot


@pytest.mark.parametrize("transport", ["webhook", "polling"])
async def test_a_question_in_a_private_chat(transport: Any) -> None:
    async with open_bot(EchoAgent(), transport=transport) as bot:
        ada = bot.fake.user("Ada", language_code="de")
        assert await bot.ask(ada, "good day") == "good day"
        assert await bot.ask(ada, "**bold** and `code`") == "bold and code"
        entities = bot.last(bot.fake.private(ada)).content["entities"]
        assert [(entity["type"], entity["offset"], entity["length"]) for entity in entities] == [
            ("bold", 0, 4),
            ("code", 9, 4),
        ]
        assert await bot.ask(ada, "/start") == "Hallo! Schreib mir; /help zeigt, was ich verstehe."


async def test_a_question_in_a_topic_is_answered_there_and_typing_is_shown_there() -> None:
    agent = GatedAgent()
    async with open_bot(agent) as bot:
        ada = bot.fake.user("Ada")
        group = bot.fake.supergroup("Team", ada, forum=True)
        topic = bot.fake.topic(group, "Plans", by=ada)
        other = bot.fake.topic(group, "Food", by=ada)
        question = bot.fake.say(ada, "@frontdesk_bot one two", group, thread=topic.thread_id)
        await bot.until(lambda: bot.fake.shown(group, thread=topic.thread_id).actions == ("typing",))
        assert bot.fake.shown(group, thread=other.thread_id).actions == ()
        agent.release.set()
        await bot.says(group, "one two", thread=topic.thread_id)
        answer = bot.fake.shown(group, thread=topic.thread_id).messages[-1]
        assert answer.reply_to == question.message_id
        # A topic is a conversation of its own, and the General one has no number.
        bot.fake.say(ada, "@frontdesk_bot in general", group)
        await bot.answers(group, 2)
        assert bot.fake.shown(group).messages[-1].thread_id is None
        assert [len(said) for said in agent.seen] == [1, 1]


async def test_a_group_without_topics_is_one_conversation_whatever_is_replied_to() -> None:
    agent = EchoAgent()
    async with open_bot(agent, fake=FakeTelegram(privacy=False)) as bot:
        ada, bob = bot.fake.user("Ada"), bot.fake.user("Bob")
        group = bot.fake.supergroup("Team", ada, bob)
        assert await bot.ask(ada, "@frontdesk_bot one", group) == "one"
        first = bot.last(group)
        assert (await bot.ask(ada, "two", group, reply_to=first)).endswith("two")
        bot.fake.say(bob, "not for you", group)
        bot.fake.say(bob, "nor this @frontdesk_bot_dev", group)
        bot.fake.say(bob, "/help@other_bot", group)
        assert await bot.ask(ada, "@frontdesk_bot three", group) == "three"
        assert len(agent.seen[-1]) == 5
        assert len(bot.fake.shown(group).answers) == 3


async def test_an_anonymous_administrator_is_nobody_in_particular() -> None:
    agent = EchoAgent()
    async with open_bot(agent, accept_in_group="all", fake=FakeTelegram(privacy=False)) as bot:
        ada, bob = bot.fake.user("Ada"), bot.fake.user("Bob")
        group = bot.fake.supergroup("Team", ada, bob)
        bot.fake.promote(group, bob, by=ada, anonymous=True)
        bot.fake.say(bob, "who am I?", group)
        assert await bot.ask(ada, "hello", group) == "hello"
        assert len(agent.seen) == 1


async def test_private_chats_have_topics_too() -> None:
    agent = EchoAgent()
    async with open_bot(agent, fake=FakeTelegram(topics=True)) as bot:
        ada = bot.fake.user("Ada")
        chat = bot.fake.private(ada)
        plans = bot.fake.topic(chat, "Plans", by=ada)
        bot.fake.say(ada, "one", chat, thread=plans.thread_id)
        await bot.says(chat, "one", thread=plans.thread_id)
        assert bot.fake.shown(chat).messages[-1].thread_id == plans.thread_id


async def test_an_edit_is_answered_only_where_that_is_set() -> None:
    agent = EchoAgent()
    async with open_bot(agent) as bot:
        ada = bot.fake.user("Ada")
        message = bot.fake.say(ada, "one")
        await bot.answers(bot.fake.private(ada))
        bot.fake.edit(message, "two")
        assert await bot.ask(ada, "three") == "three"
        assert len(agent.seen) == 2
    async with open_bot(EchoAgent(), on_edit="answer") as bot:
        ada = bot.fake.user("Ada")
        message = bot.fake.say(ada, "one")
        await bot.answers(bot.fake.private(ada))
        bot.fake.edit(message, "two")
        await bot.says(bot.fake.private(ada), "one", "two")


async def test_a_file_reaches_the_agent_and_one_that_is_too_large_does_not() -> None:
    agent = EchoAgent()
    async with open_bot(agent) as bot:
        ada = bot.fake.user("Ada")
        photo = ("photo", Upload(b"a picture", "a.jpg", "image/jpeg"))
        assert await bot.ask(ada, "look", media=photo) == "look"
        (picture,) = [content for content in agent.seen[-1][-1].contents if content.type == "data"]
        assert picture.media_type == "image/jpeg"
        assert base64.b64decode((picture.uri or "").partition(";base64,")[2]) == b"a picture"
        large = ("document", Upload(b"x", "a.bin", size=21 * 1024 * 1024))
        assert "20 MB" in await bot.ask(ada, "and this", media=large)
        assert len(agent.seen) == 1


class Painter(EchoAgent):
    """Answers with a picture and a document."""

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        contents = [
            Content.from_text("Here it is."),
            Content.from_data(b"\x89PNG", media_type="image/png"),
            Content.from_data(b"a,b", media_type="text/csv"),
        ]
        yield AgentResponseUpdate(contents=contents, role="assistant")


async def test_pictures_and_documents_are_sent_and_a_refused_picture_is_a_document() -> None:
    async with open_bot(Painter()) as bot:
        ada = bot.fake.user("Ada")
        chat = bot.fake.private(ada)
        bot.fake.say(ada, "paint")
        await bot.answers(chat, 3)
        assert [shown.media for shown in bot.fake.shown(chat).messages if shown.by_bot] == ["", "photo", "document"]
        bot.fake.fail_next("sendPhoto", 400, "Bad Request: PHOTO_INVALID_DIMENSIONS")
        bot.fake.say(ada, "paint again")
        await bot.answers(chat, 6)
        sent = [shown.media for shown in bot.fake.shown(chat).messages if shown.by_bot]
        assert sent[3:] == ["", "document", "document"]


async def test_a_very_long_answer_is_its_beginning_and_a_file() -> None:
    text = "\n\n".join(f"{number} {'word ' * 100}" for number in range(40))
    async with open_bot(EchoAgent(), max_messages=2) as bot:
        ada = bot.fake.user("Ada")
        chat = bot.fake.private(ada)
        bot.fake.post(ada, {"text": text}, chat)
        await bot.answers(chat, 2)
        first, file = [shown for shown in bot.fake.shown(chat).messages if shown.by_bot]
        assert first.text.startswith("0 word")
        assert file.media == "document"
        await bot.wait_for_ends(2)
        assert len([shown for shown in bot.fake.shown(chat).messages if shown.by_bot]) == 2


async def test_an_album_is_one_turn() -> None:
    agent = GatedAgent()
    async with open_bot(agent, album_seconds=0.01) as bot:
        ada = bot.fake.user("Ada")
        bot.fake.say(ada, "wait")
        await agent.started.wait()
        files = [("photo", Upload(name.encode(), f"{name}.jpg", "image/jpeg")) for name in ("one", "two", "three")]
        bot.fake.send_album(ada, files, caption="my holidays")
        # All of it is there before its turn comes.
        await bot.until(lambda: not bot.fake.bot.updates.list_pending())
        agent.release.set()
        await bot.says(bot.fake.private(ada), "wait", "my holidays")
        contents = [content for message in agent.seen[1][2:] for content in message.contents]
        assert [content.type for content in contents] == ["text", "data", "data", "data"]
        assert len(agent.seen) == 2


async def test_the_rest_of_an_album_comes_with_the_picture_that_mentions_the_bot() -> None:
    agent = GatedAgent()
    async with open_bot(agent, fake=FakeTelegram(privacy=False), album_seconds=0.01) as bot:
        ada = bot.fake.user("Ada")
        group = bot.fake.group("Team", ada)
        bot.fake.say(ada, "@frontdesk_bot wait", group)
        await agent.started.wait()
        files = [("photo", Upload(name.encode(), f"{name}.jpg", "image/jpeg")) for name in ("one", "two")]
        bot.fake.send_album(ada, files, group, caption="not for bots")
        bot.fake.send_album(ada, files, group, caption="@frontdesk_bot look")
        await bot.until(lambda: not bot.fake.bot.updates.list_pending())
        agent.release.set()
        await bot.says(group, "wait", "look")
        assert await bot.ask(ada, "@frontdesk_bot bye", group) == "bye"
        contents = [content for message in agent.seen[1][2:] for content in message.contents]
        assert [content.type for content in contents] == ["text", "data", "data"]
        assert len(agent.seen) == 3
        # Of the album that was for others, no file was fetched.
        assert len(bot.fake.list_calls("getFile")) == 2


@pytest.mark.parametrize(
    ("privacy", "rule", "warned"), [(True, "all", 1), (False, "all", 0), (True, "mention_only", 0)]
)
async def test_a_bot_that_the_platform_hides_messages_from_is_told(
    privacy: bool, rule: str, warned: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_bot(EchoAgent(), fake=FakeTelegram(privacy=privacy), accept_in_group=rule):
        assert caplog.text.count("the privacy mode of the bot") == warned


async def test_menus_and_the_commands_of_administrators() -> None:
    async def close(call: Any) -> None:
        await call.reply("closed")

    command = ChannelCommand("close", "Close the desk", close, scopes=("admins",))
    async with open_bot(EchoAgent(), commands=[command]) as bot:
        ada, bob = bot.fake.user("Ada"), bot.fake.user("Bob", language_code="de")
        group = bot.fake.supergroup("Team", ada, bob)
        await bot.until(lambda: len(bot.fake.list_calls("setMyCommands")) == 8)
        assert {"start", "new", "cancel", "help", "sessions"} <= bot.fake.menu(bob).keys()
        assert bot.fake.menu(bob)["new"] == "Ein neues Gespräch beginnen"
        assert "close" not in bot.fake.menu(bob, group)
        assert bot.fake.menu(ada, group)["close"] == "Close the desk"
        assert await bot.ask(ada, "/close@frontdesk_bot", group) == "closed"
        assert await bot.ask(bob, "/close@frontdesk_bot", group) == (
            "In einer Gruppe ist /close für ihre Administratoren."
        )


async def test_two_bots_on_one_host_are_two_doors() -> None:
    async with fake_telegram() as fake:
        second = fake.world.add_bot("Second", "second_bot", token="700000002:another-token-of-the-fake-telegram")
        other = TelegramChannel(
            bot_token=second.token,
            api_url=fake.url,
            transport="polling",
            name="second",
            path="/second",
            live="off",
            push_terms=PushTerms(),
        )
        async with open_bot(EchoAgent(), fake=fake, transport="polling", channels=[other]) as bot:
            ada = fake.user("Ada")
            fake.say(ada, "to the second", bot=second)
            await bot.says(fake.private(ada, bot=second), "to the second")
            assert await bot.ask(ada, "to the first") == "to the first"


class Reporter(EchoAgent):
    """Answers with a report."""

    async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
        for text in ("# Report\n\n", "| room | guests |\n| - | -: |\n| blue | 2 |\n"):
            yield AgentResponseUpdate(contents=[Content.from_text(text)], role="assistant")


@pytest.mark.parametrize("live", ["off", "auto"])
async def test_an_answer_is_a_rich_message_with_a_table(live: Any) -> None:
    async with open_bot(Reporter(), rich_messages=True, live=live) as bot:
        ada = bot.fake.user("Ada")
        chat = bot.fake.private(ada)
        bot.fake.say(ada, "report")
        await bot.says(chat, "Report\nroom | guests\nblue | 2")
        (report,) = [message for message in bot.fake.shown(chat).messages if message.by_bot]
        assert [block["type"] for block in report.blocks] == ["heading", "table"]


async def test_a_rich_message_that_the_platform_refuses_is_a_text() -> None:
    async with open_bot(Reporter(), rich_messages=True) as bot:
        ada = bot.fake.user("Ada")
        bot.fake.fail_next("sendRichMessage", 400, "Bad Request: RICH_MESSAGE_INVALID")
        assert (await bot.ask(ada, "report")).startswith("Report\n\nroom")
        assert bot.fake.shown(bot.fake.private(ada)).messages[-1].blocks == ()
        assert (await bot.ask(ada, "report")).startswith("Report\nroom")


async def test_a_server_without_rich_messages_is_asked_once() -> None:
    async with open_bot(Reporter(), rich_messages=True) as bot:
        ada = bot.fake.user("Ada")
        bot.fake.fail_next("sendRichMessage", 404, "Not Found: method not found")
        for _ in range(2):
            assert "blue" in await bot.ask(ada, "report")
        assert [call.method for call in bot.fake.calls].count("sendRichMessage") == 1


async def test_a_reply_to_a_rich_message_quotes_its_words() -> None:
    agent = EchoAgent()
    async with open_bot(agent, rich_messages=True) as bot:
        ada = bot.fake.user("Ada")
        await bot.ask(ada, "**one**two")
        answer = bot.last(bot.fake.private(ada))
        bot.fake.say(ada, "why?", reply_to=answer)
        await bot.answers(bot.fake.private(ada), 2)
        assert agent.seen[-1][-1].text == "> onetwo\n\nwhy?"


async def test_an_album_that_addresses_nobody_in_a_group_is_not_answered() -> None:
    agent = EchoAgent()
    async with open_bot(agent, fake=FakeTelegram(privacy=False), album_seconds=0.01) as bot:
        ada = bot.fake.user("Ada")
        group = bot.fake.group("Team", ada)
        files = [("photo", Upload(name.encode(), f"{name}.jpg", "image/jpeg")) for name in ("one", "two")]
        bot.fake.send_album(ada, files, group, caption="our holidays")
        await bot.until(lambda: not bot.fake.bot.updates.list_pending())
        assert await bot.ask(ada, "@frontdesk_bot bye", group) == "bye"
        assert [message.text for message in agent.seen[0]] == ["bye"]
        assert (len(agent.seen), bot.fake.list_calls("getFile")) == (1, [])
        assert bot.fake.shown(group).answers == ["bye"]
