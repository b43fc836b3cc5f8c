"""People name their conversations, and find them again by what the list has shown."""

from typing import Any

import pytest

from frontdesk import ChannelCommand
from frontdesk_testing import EchoAgent
from tests.scenarios.messages.chat import MessagesHost, open_chat


class Talk:
    """What one person says in a chat, and what the bot answers."""

    def __init__(self, chat: MessagesHost, name: str) -> None:
        self.chat, self.name, self.count = chat, name, 0

    async def __call__(self, text: str) -> str:
        if not self.count:
            self.person = await self.chat.platform.user(self.name)
        self.count += 1
        await self.chat.platform.say(self.person, text)
        return (await self.chat.wait_for_answers(self.person.chat_id, self.count))[-1]


def _strip_times(listed: str) -> list[str]:
    """What each line of a list says without the time."""
    parts = [line.split(", ") for line in listed.splitlines()]
    return [", ".join(part for part in line if "UTC" not in part and " 20" not in part) for line in parts]


async def test_a_session_is_shown_by_its_title_or_by_its_first_words() -> None:
    async with open_chat(EchoAgent()) as chat:
        ada = Talk(chat, "Ada")
        assert await ada("/name Too early") == "There is no conversation yet."
        await ada("what about\n\na room " + "with a view " * 20)
        await ada("/new")
        await ada("hello")
        assert await ada("/name  Holiday\u200b\n plans ") == "This conversation is called “Holiday plans” now."
        assert _strip_times(await ada("/sessions")) == [
            "1 - “Holiday plans”, 2 messages, this one",
            "2 - “what about a room with a view with a vi…”, 2 messages",
        ]
        assert await ada("/name") == "Say the title, such as /name Holiday plans; /name - removes it."
        assert await ada(f"/name {'x' * 101}") == "A title can have at most 100 characters."
        # The next turn leaves the title alone.
        await ada("and breakfast?")
        assert _strip_times(await ada("/sessions"))[0] == "1 - “Holiday plans”, 4 messages, this one"
        assert await ada("/name -") == "This conversation has no title now."
        assert _strip_times(await ada("/sessions"))[0] == "1 - “hello”, 4 messages, this one"


async def test_a_number_means_what_the_person_saw() -> None:
    """A place in a list led to another conversation when the list had changed meanwhile."""
    agent = EchoAgent()
    async with open_chat(agent) as chat:
        ada = Talk(chat, "Ada")
        for text in ("one", "/new", "two"):
            await ada(text)
        assert _strip_times(await ada("/sessions")) == ["1 - “two”, 2 messages, this one", "2 - “one”, 2 messages"]
        for text in ("/new", "three"):
            await ada(text)
        # By now it would be the third.
        assert await ada("/resume 2") == "We go on where we were, after 2 messages."
        await ada("four")
        for word in ("3", "0", "-1", "²", "02", "99"):
            assert (await ada(f"/resume {word}")).startswith("I don't know that conversation.")
    assert [message.text for message in agent.seen[-1]] == ["one", "one", "four"]


async def test_what_an_earlier_version_has_shown_still_names_a_session() -> None:
    """Earlier versions have shown the end of a session's id, and that is still in people's chats."""
    ids: list[str] = []

    async def note(call: Any) -> None:
        ids.append(call.session.session_id)
        await call.reply("noted")

    async with open_chat(EchoAgent(), commands=[ChannelCommand("note", "Note", note)]) as chat:
        ada = Talk(chat, "Ada")
        for text in ("one", "/note", "/new"):
            await ada(text)
        for word in (ids[0][-6:], ids[0][-6:].upper(), ids[0]):
            assert await ada(f"/resume {word}") == "We go on where we were, after 2 messages."


@pytest.mark.parametrize("scope", ["per_user", "per_user_per_conversation", "per_conversation"])
async def test_titles_in_a_group_are_those_of_its_sessions(scope: str) -> None:
    async with open_chat(EchoAgent(), conversation_scope=scope, accept_in_group="all") as chat:
        ada, ben = await chat.platform.user("Ada"), await chat.platform.user("Ben")
        group, said = (await chat.platform.group("Friends", ada, ben)).chat_id, [""]
        asked = [(ada, "hello"), (ada, "/name Ours"), (ben, "hi"), (ben, "/sessions")]
        for number, (who, text) in enumerate(asked, 1):
            await chat.platform.say(who, text, chat_id=group)
            said = await chat.wait_for_answers(group, number)
        own = "1 - “Ours”, 4 messages, this one" if scope == "per_conversation" else "1 - “hi”, 2 messages, this one"
        assert _strip_times(said[3]) == [own]
