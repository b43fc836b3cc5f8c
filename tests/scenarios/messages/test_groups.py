"""Groups: what is meant for the bot, and whose conversation it is."""

from typing import Any

import pytest

from frontdesk_testing import EchoAgent
from frontdesk_testing.messages.wire import Send
from tests.scenarios.messages.chat import open_chat

SCOPES = {
    # What the agent hears of Ada and Bob, who talk by turns in one group, and of Ada alone in her own chat.
    "per_user": {"Ada": ["a1"], "Bob": ["b1"], "Ada again": ["a1", "a2"], "Ada alone": ["a1", "a2", "a3"]},
    "per_user_per_conversation": {"Ada": ["a1"], "Bob": ["b1"], "Ada again": ["a1", "a2"], "Ada alone": ["a3"]},
    "per_conversation": {"Ada": ["a1"], "Bob": ["a1", "b1"], "Ada again": ["a1", "b1", "a2"], "Ada alone": ["a3"]},
}


def _list_heard(agent: EchoAgent) -> list[str]:
    return [message.text for message in agent.seen[-1] if message.role == "user"]


@pytest.mark.parametrize("scope", SCOPES)
async def test_two_people_in_one_group(scope: Any) -> None:
    agent = EchoAgent()
    async with open_chat(agent, conversation_scope=scope) as chat:
        ada, bob = await chat.platform.user("Ada"), await chat.platform.user("Bob")
        group = await chat.platform.group("Friends", ada, bob)
        told: dict[str, list[str]] = {}
        for number, (name, who, text) in enumerate(
            [("Ada", ada, "a1"), ("Bob", bob, "b1"), ("Ada again", ada, "a2")], 1
        ):
            await chat.platform.say(who, f"@desk {text}", chat_id=group.chat_id)
            await chat.wait_for_answers(group.chat_id, number)
            told[name] = _list_heard(agent)
        await chat.platform.say(ada, "a3")
        await chat.wait_for_answers(ada.chat_id)
        told["Ada alone"] = _list_heard(agent)
    assert told == SCOPES[scope]


async def test_two_groups_are_two_conversations() -> None:
    agent = EchoAgent()
    async with open_chat(agent, conversation_scope="per_conversation") as chat:
        ada = await chat.platform.user("Ada")
        for title in ("Work", "Home"):
            group = await chat.platform.group(title, ada)
            await chat.platform.say(ada, f"@desk at {title.lower()}", chat_id=group.chat_id)
            await chat.wait_for_answers(group.chat_id)
    assert _list_heard(agent) == ["at home"]


HELP = "(help)"
RULES = {
    "mention_only": ["hello", HELP, "replied"],
    "command_only": [HELP, HELP],
    "mention_or_command": ["hello", HELP, HELP, "replied"],
    "all": ["hello", "chatter", "@other chatter", "with desk in it", HELP, HELP, "replied", "to somebody else"],
}


@pytest.mark.parametrize("rule", RULES)
async def test_what_is_meant_for_the_bot_in_a_group(rule: Any) -> None:
    async with open_chat(EchoAgent(), accept_in_group=rule) as chat:
        ada = await chat.platform.user("Ada")
        group = await chat.platform.group("Friends", ada)
        ours = await chat.channel.client.send(Send(chat_id=group.chat_id, text="I am here"))
        others = ""
        for text in (
            "@desk hello",
            "chatter",
            "@other chatter",
            "with desk in it",
            "/help",
            "/help@desk",
            "/help@other",
        ):
            event = await chat.platform.say(ada, text, chat_id=group.chat_id)
            others = event.message.message_id if event.message else ""
        await chat.platform.say(ada, "replied", chat_id=group.chat_id, reply_to=ours.message_id)
        await chat.platform.say(ada, "to somebody else", chat_id=group.chat_id, reply_to=others)
        await chat.platform.wait_for_acknowledged(*[one.event for one in await chat.platform.events()])
        heard = (await chat.wait_for_answers(group.chat_id, 1 + len(RULES[rule])))[1:]
        await chat.platform.say(ada, "the end")
        await chat.wait_for_answers(ada.chat_id)
        assert len(await chat.platform.answers(group.chat_id)) == 1 + len(RULES[rule])
    assert sorted(HELP if text.startswith("/new - ") else text for text in heard) == sorted(RULES[rule])


async def test_nothing_is_left_of_what_was_not_meant_for_the_bot() -> None:
    agent = EchoAgent()
    async with open_chat(agent) as chat:
        ada, bob = await chat.platform.user("Ada"), await chat.platform.user("Bob")
        group = await chat.platform.group("Friends", ada, bob)
        event = await chat.platform.say(ada, "a secret between us", chat_id=group.chat_id)
        await chat.platform.wait_for_acknowledged(event)
        await chat.platform.say(bob, "@desk what did Ada say?", chat_id=group.chat_id)
        await chat.wait_for_answers(group.chat_id)
    assert _list_heard(agent) == ["what did Ada say?"]


async def test_the_agent_knows_who_speaks_in_a_group() -> None:
    agent = EchoAgent()
    async with open_chat(agent, conversation_scope="per_conversation") as chat:
        ada, bob = await chat.platform.user("Ada"), await chat.platform.user("Bob")
        group = await chat.platform.group("Friends", ada, bob)
        for number, who in enumerate((ada, bob), 1):
            await chat.platform.say(who, "@desk me", chat_id=group.chat_id)
            await chat.wait_for_answers(group.chat_id, number)
    assert [one.author_name for one in agent.seen[-1] if one.role == "user"] == ["Ada", "Bob"]


async def test_an_answer_in_a_group_is_a_reply_to_whoever_asked() -> None:
    async with open_chat(EchoAgent()) as chat:
        ada = await chat.platform.user("Ada")
        group = await chat.platform.group("Friends", ada)
        event = await chat.platform.say(ada, "@desk hello", chat_id=group.chat_id)
        assert event.message is not None
        assert (await chat.last(group.chat_id, 1)).reply_to == event.message.message_id
        await chat.platform.say(ada, "hello")
        assert (await chat.last(ada.chat_id, 1)).reply_to == ""
