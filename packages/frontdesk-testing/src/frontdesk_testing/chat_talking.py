"""The contract of chat channels for messages: recipients, repetition and order of answers."""

import pytest

from frontdesk.access.allowlists import NativeIdAllowlist
from frontdesk.linkers.one_time_code import OneTimeCodeIdentityLinker
from frontdesk_testing.agents import EchoAgent, GatedAgent
from frontdesk_testing.chat_driver import ChatDriver


class ChatMessages(ChatDriver):
    """Messages in direct chats, groups and threads, and commands."""

    async def test_every_message_is_answered_once_and_in_order(self) -> None:
        async with self.chat() as chat:
            ada = await chat.platform.person("Ada")
            first = await chat.platform.say(ada, "one")
            assert await chat.texts(ada.chat_id, 1) == ["one"]
            await chat.platform.repeat(first)
            for text in ("two", "three"):
                await chat.platform.say(ada, text)
            await chat.platform.repeat(first)
            assert await chat.say_last_and_list(ada) == ["one", "two", "three", "the last word"]

    async def test_two_people_have_two_conversations(self) -> None:
        agent = EchoAgent()
        async with self.chat(agent) as chat:
            ada, bob = await chat.platform.person("Ada"), await chat.platform.person("Bob")
            await chat.platform.say(ada, "I am Ada")
            await chat.texts(ada.chat_id, 1)
            await chat.platform.say(bob, "I am Bob")
            assert await chat.texts(bob.chat_id, 1) == ["I am Bob"]
            assert await chat.texts(ada.chat_id, 1) == ["I am Ada"]
            assert len(await chat.sessions()) == 2

    @pytest.mark.parametrize(
        ("rule", "heard"),
        [
            ("mention_only", ["to the bot"]),
            ("all", ["among us", "to the bot"]),
        ],
    )
    async def test_a_group_is_answered_by_its_rule(self, rule: str, heard: list[str]) -> None:
        self.require_groups()
        async with self.chat(accept_in_group=rule) as chat:
            ada, bob = await chat.platform.person("Ada"), await chat.platform.person("Bob")
            group = await chat.platform.group(ada, bob)
            await chat.platform.say(bob, "among us", chat_id=group)
            await chat.platform.say(ada, f"{chat.platform.mention} to the bot", chat_id=group)
            shown = await chat.until_shown(group, *heard)
            # Whoever asked in a group is answered with a reply.
            assert all(message.reply_to for message in shown)
            assert await chat.platform.shown(ada.chat_id) == []

    async def test_an_answer_goes_back_into_its_thread(self) -> None:
        if not self.has_threads or not self.has_groups:
            pytest.skip("the platform has no threads")
        async with self.chat() as chat:
            ada = await chat.platform.person("Ada")
            group = await chat.platform.group(ada)
            await chat.platform.say(ada, f"{chat.platform.mention} inside", chat_id=group, thread_id="t-1")
            await chat.until_shown(group, "inside")
            await chat.platform.say(ada, f"{chat.platform.mention} outside", chat_id=group)
            shown = await chat.until_shown(group, "inside", "outside")
            assert [message.thread_id for message in shown] == ["t-1", ""]
            assert len(await chat.sessions()) == 2

    async def test_commands_are_understood_and_the_agent_is_not_asked(self) -> None:
        agent = EchoAgent()
        async with self.chat(agent) as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.say(ada, "/new")
            await chat.until_shown(ada.chat_id, "We start anew.")
            await chat.platform.say(ada, "/help")
            assert "/cancel" in (await chat.texts(ada.chat_id, 2))[1]
            await chat.platform.say(ada, "/nonsense")
            assert "/nonsense" in (await chat.texts(ada.chat_id, 3))[2]
            assert agent.seen == []

    async def test_a_command_for_another_bot_is_none_of_ours(self) -> None:
        self.require_groups()
        async with self.chat(accept_in_group="all") as chat:
            ada = await chat.platform.person("Ada")
            group = await chat.platform.group(ada)
            await chat.platform.say(ada, "/new@another", chat_id=group)
            await chat.platform.say(ada, "after it", chat_id=group)
            await chat.until_shown(group, "after it")

    async def test_what_runs_can_be_cancelled(self) -> None:
        agent = GatedAgent()
        async with self.chat(agent) as chat:
            ada = await chat.platform.person("Ada")
            await chat.platform.say(ada, "a long answer")
            await agent.started.wait()
            await chat.platform.say(ada, "/cancel")
            await chat.until_shown(ada.chat_id, "I have stopped.")
            await agent.cancelled.wait()
            agent.release.set()
            assert await chat.say_last_and_list(ada) == ["I have stopped.", "the last word"]

    async def test_a_code_for_linking_is_shown_in_the_direct_chat_alone(self) -> None:
        self.require_groups()
        agent, linker = EchoAgent(), OneTimeCodeIdentityLinker()
        async with self.chat(agent, require_link=True, host={"linker": linker}) as chat:
            ada = await chat.platform.person("Ada")
            group = await chat.platform.group(ada)
            await chat.platform.say(ada, f"{chat.platform.mention} hello", chat_id=group)
            (here,), (challenge,) = await chat.texts(group, 1), await chat.texts(ada.chat_id, 1)
            codes = [word for word in challenge.split() if "-" in word and word.isupper() and word.rstrip(".,") == word]
            assert codes
            assert not any(code in here for code in codes)
            assert agent.seen == []

    async def test_a_stranger_is_refused_with_the_reason_in_the_direct_chat_alone(self) -> None:
        self.require_groups()
        agent = EchoAgent()
        async with self.chat(agent, allowlist=NativeIdAllowlist(["somebody else"])) as chat:
            eve = await chat.platform.person("Eve")
            group = await chat.platform.group(eve)
            await chat.platform.say(eve, f"{chat.platform.mention} let me in", chat_id=group)
            (here,), (reason,) = await chat.texts(group, 1), await chat.texts(eve.chat_id, 1)
            assert here
            assert reason
            await chat.platform.say(eve, "and here?")
            assert (await chat.texts(eve.chat_id, 2))[1] == reason
            assert agent.seen == []
