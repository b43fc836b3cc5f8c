"""Commands of scenarios 4 and 5 of the design, on the message channel of the testing kit.

The scenarios themselves are in `test_telegram.py`.
"""

import asyncio
from typing import Any

from frontdesk import ChannelCommand
from frontdesk_testing import EchoAgent
from tests.scenarios.messages.chat import open_chat
from tests.testing.messages.starting import new_platform


async def start(context: Any) -> None:
    await context.reply("I am the concierge.")


COMMANDS = [ChannelCommand("start", "Introduce the bot", start)]


async def test_an_earlier_conversation_could_not_be_gone_back_to() -> None:
    agent = EchoAgent()
    async with open_chat(agent, commands=COMMANDS) as chat:
        ann = await chat.platform.user("Ann")
        said: list[str] = []
        for number, text in enumerate(["/sessions", "one", "/new", "two", "/sessions"], 1):
            await chat.platform.say(ann, text)
            said = await chat.wait_for_answers(ann.chat_id, number)
        assert said[0] == "There is no conversation yet."
        newest, oldest = said[-1].splitlines()
        assert newest.endswith("2 messages, this one")
        assert oldest.endswith("2 messages")
        bob = await chat.platform.user("Bob")
        code = oldest.partition(" ")[0]
        await chat.platform.say(bob, f"/resume {code}")
        assert (await chat.wait_for_answers(bob.chat_id))[0].startswith("I don't know that conversation.")
        for number, text in enumerate([f"/resume {code}", "three", "/resume nothing", "/resume"], 6):
            await chat.platform.say(ann, text)
            said = await chat.wait_for_answers(ann.chat_id, number)
        assert said[5] == "We go on where we were, after 2 messages."
        assert said[7].startswith("I don't know that conversation.")
        assert said[8].startswith("Say which one")
    heard = [[one.text for one in seen if one.role == "user"] for seen in agent.seen]
    assert heard == [["one"], ["two"], ["one", "three"]]


async def test_what_runs_in_the_background_could_not_be_stopped_from_a_chat() -> None:
    began, ends = asyncio.Event(), asyncio.Event()

    async def slow(text: str) -> str:
        began.set()
        await ends.wait()
        return "too late"

    def later(request: Any, **_: Any) -> Any:
        return request.replace(background=True)

    async with open_chat(slow, run_hook=later) as chat:
        ann, bob = await chat.platform.user("Ann"), await chat.platform.user("Bob")
        await chat.platform.say(ann, "take your time")
        await began.wait()
        await chat.platform.say(bob, "/cancel")
        assert await chat.wait_for_answers(bob.chat_id) == ["There is nothing to stop."]
        await chat.platform.say(ann, "/cancel")

        async def stopped() -> bool:
            return "I have stopped." in [one.text for one in await chat.platform.answers(ann.chat_id)]

        await chat.platform.until(stopped)


async def test_the_menu_of_the_platform_is_left_alone_if_that_is_wanted() -> None:
    async with new_platform() as platform:
        async with open_chat(EchoAgent(), platform=platform, commands=COMMANDS) as chat:
            before = (await chat.platform.state()).commands
        more = [*COMMANDS, ChannelCommand("stop", "Never shown", start)]
        settings: Any = {"commands": more, "register_native_commands": False}
        async with open_chat(EchoAgent(), platform=platform, **settings) as chat:
            ann = await chat.platform.user("Ann")
            await chat.platform.say(ann, "/stop")
            assert await chat.wait_for_answers(ann.chat_id) == ["I am the concierge."]
            assert (await chat.platform.state()).commands == before
