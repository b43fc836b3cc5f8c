"""Messages of types that the channel can't read: whoever sends one is told so, and the target never sees it."""

from typing import Any

import pytest
from agent_framework import Agent, Content, tool

from frontdesk import NativeIdAllowlist
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent
from frontdesk_testing.telegram import FakeTelegram
from tests.scenarios.telegram.bot import open_bot

SORRY = "I can't read this type of message. Please send it as a text, a picture or a file."
CONTENTS: dict[str, Any] = {
    "story": {"story": {"chat": {"id": -9, "type": "channel", "title": "News"}, "id": 3}},
    "game": {"game": {"title": "Chess", "description": "A game", "photo": []}},
    "checklist": {"checklist": {"title": "Shopping", "tasks": [{"id": 1, "text": "milk"}]}},
    "paid_media": {"paid_media": {"star_count": 5, "paid_media": [{"type": "preview"}]}},
    "invoice": {
        "invoice": {
            "title": "Tea",
            "description": "A cup",
            "start_parameter": "x",
            "currency": "EUR",
            "total_amount": 300,
        }
    },
    "giveaway": {"giveaway": {"chats": [], "winners_selection_date": 1_700_000_000, "winner_count": 1}},
    "giveaway_winners": {
        "giveaway_winners": {
            "chat": {"id": -9, "type": "channel", "title": "News"},
            "giveaway_message_id": 3,
            "winners_selection_date": 1_700_000_000,
            "winner_count": 1,
            "winners": [],
        }
    },
    "rich_message": {"rich_message": {"blocks": [{"type": "paragraph", "text": "good day"}]}},
}


@pytest.mark.parametrize("kind", CONTENTS)
async def test_a_message_of_this_type_was_not_answered(kind: str) -> None:
    agent = EchoAgent()
    async with open_bot(agent) as bot:
        ada, german = bot.fake.user("Ada"), bot.fake.user("Udo", language_code="de")
        chat = bot.fake.private(ada)
        bot.fake.post(ada, CONTENTS[kind])
        await bot.says(chat, SORRY)
        assert await bot.ask(ada, "and this?") == "and this?"
        assert len(agent.seen) == 1
        assert len(agent.seen[0]) == 1
        bot.fake.post(german, CONTENTS[kind])
        assert (await bot.answers(bot.fake.private(german)))[0].startswith("Diese Art von Nachricht")


async def test_a_caption_is_answered_although_its_media_are_not_read() -> None:
    async with open_bot(EchoAgent()) as bot:
        ada = bot.fake.user("Ada")
        bot.fake.post(ada, {**CONTENTS["paid_media"], "caption": "look"})
        await bot.says(bot.fake.private(ada), "look")


async def test_in_a_group_only_who_addresses_the_bot_is_told() -> None:
    agent = EchoAgent()
    async with open_bot(agent, fake=FakeTelegram(privacy=False)) as bot:
        ada = bot.fake.user("Ada")
        group = bot.fake.supergroup("Team", ada)
        bot.fake.post(ada, CONTENTS["checklist"], group)
        assert await bot.ask(ada, "@frontdesk_bot hello", group) == "hello"
        bot.fake.post(ada, CONTENTS["checklist"], group, reply_to=bot.last(group))
        await bot.says(group, "hello", SORRY)
        assert len(agent.seen) == 1


async def test_a_stranger_learns_nothing_about_types() -> None:
    async with open_bot(EchoAgent(), allowlist=NativeIdAllowlist({"1"})) as bot:
        ada = bot.fake.user("Ada")
        bot.fake.post(ada, CONTENTS["story"])
        (refusal,) = await bot.answers(bot.fake.private(ada))
        assert refusal != SORRY


async def test_among_messages_that_are_answered_together_one_reply_says_so() -> None:
    agent = EchoAgent()
    async with open_bot(agent, gather_seconds=0.3) as bot:
        ada = bot.fake.user("Ada")
        chat = bot.fake.private(ada)
        bot.fake.say(ada, "one")
        bot.fake.post(ada, CONTENTS["story"])
        bot.fake.say(ada, "two")
        await bot.until(lambda: {SORRY, "two"} <= set("\n".join(bot.fake.shown(chat).answers).split("\n")))
        await bot.wait_for_ends()
        assert bot.fake.shown(chat).answers.count(SORRY) == 1
        said = [message.text for messages in agent.seen for message in messages if message.role == "user"]
        assert "one" in "\n".join(said)


async def test_press_did_not_take_what_shown_returns() -> None:
    ran: list[str] = []

    @tool(approval_mode="always_require")
    def open_door() -> str:
        """Open the door."""
        ran.append("opened")
        return "open"

    call = Content.from_function_call("c1", "open_door", arguments="{}")
    answers = iter([[call], "It is open."])
    agent = Agent(ScriptedChatClient(lambda _: next(answers)), name="Desk", tools=[open_door])
    async with open_bot(agent) as bot:
        ada = bot.fake.user("Ada")
        group = bot.fake.supergroup("Team", ada)
        chat = bot.fake.private(ada)
        bot.fake.say(ada, "open it")
        await bot.until(lambda: any(message.buttons for message in bot.fake.shown(chat).messages))
        (asked,) = [message for message in bot.fake.shown(chat).messages if message.buttons]
        bot.fake.press(ada, asked, asked.buttons[0][0])
        await bot.until(lambda: "It is open." in bot.fake.shown(chat).answers)
        assert ran == ["opened"]
        bot.fake.say(ada, "hello", group)
        (mine,) = [message for message in bot.fake.shown(group).messages if not message.service]
        with pytest.raises(ValueError, match="no button"):
            bot.fake.press(ada, mine, "x")
