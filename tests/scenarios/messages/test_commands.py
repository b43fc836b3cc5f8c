"""Commands: the usual ones, the operator's own, and those that nobody knows."""

from typing import Any

import pytest

from frontdesk import ChannelCommand
from frontdesk_testing import EchoAgent
from tests.scenarios.messages.chat import open_chat


async def test_the_menu_shows_what_may_be_shown() -> None:
    async def nothing(_: Any) -> None:
        return

    own = [
        ChannelCommand(name="rooms", description="Free rooms", handler=nothing),
        ChannelCommand(name="debug", description="Inner life", handler=nothing, expose_in_ui=False),
    ]
    async with open_chat(EchoAgent(), commands=own) as chat:
        shown = {one["name"]: one["description"] for one in (await chat.platform.state()).commands}
        assert shown["rooms"] == "Free rooms"
        assert {"new", "help"} < shown.keys()
        assert "debug" not in shown
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "/help")
        (text,) = await chat.wait_for_answers(ada.chat_id)
        assert "/rooms - Free rooms" in text
        assert "debug" not in text


async def test_new_starts_anew_and_keeps_the_old() -> None:
    agent = EchoAgent()
    async with open_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        for number, text in enumerate(["before", "/new", "after"], 1):
            await chat.platform.say(ada, text)
            await chat.wait_for_answers(ada.chat_id, number)
    assert [[one.text for one in seen] for seen in agent.seen] == [["before"], ["after"]]


async def test_new_in_a_group_leaves_the_direct_chat_alone() -> None:
    agent = EchoAgent()
    async with open_chat(agent) as chat:
        ada = await chat.platform.user("Ada")
        group = await chat.platform.group("Friends", ada)
        await chat.platform.say(ada, "alone")
        await chat.wait_for_answers(ada.chat_id)
        for number, text in enumerate(["@desk before", "/new@desk", "@desk after"], 1):
            await chat.platform.say(ada, text, chat_id=group.chat_id)
            await chat.wait_for_answers(group.chat_id, number)
        await chat.platform.say(ada, "still alone")
        await chat.wait_for_answers(ada.chat_id, 2)
    heard = [[one.text for one in seen if one.role == "user"] for seen in agent.seen]
    assert heard == [["alone"], ["before"], ["after"], ["alone", "still alone"]]


async def test_new_is_for_newcomers_too() -> None:
    async with open_chat(EchoAgent()) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "/new")
        assert await chat.wait_for_answers(ada.chat_id) == ["We start anew."]


async def test_a_command_sees_what_was_said_and_can_run_the_target() -> None:
    seen: list[Any] = []

    async def ask(call: Any) -> None:
        seen.append((call.name, call.args, call.caller.identity.native_id, call.raw_event["message"]["text"]))
        await call.reply("one moment")
        hosted = await call.run(call.request.replace(operation="message", input=call.args.upper()))
        await call.reply(hosted.result.text)

    own = [ChannelCommand(name="shout", description="Louder", handler=ask)]
    agent = EchoAgent()
    async with open_chat(agent, commands=own) as chat:
        ada = await chat.platform.user("Ada", user_id="u-1")
        await chat.platform.say(ada, "/SHOUT  hello\nyou")
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["one moment", "HELLO\nYOU"]
        await chat.platform.say(ada, "and now")
        await chat.wait_for_answers(ada.chat_id, 3)
    assert seen == [("shout", "hello\nyou", "u-1", "/SHOUT  hello\nyou")]
    # It was a turn of the person's own session.
    assert [one.text for one in agent.seen[-1]] == ["HELLO\nYOU", "HELLO\nYOU", "and now"]


@pytest.mark.parametrize(
    ("text", "group", "answered"), [("/what", False, True), ("/what@desk", True, True), ("/what", True, False)]
)
async def test_a_command_that_nobody_knows(text: str, group: bool, answered: bool) -> None:
    agent = EchoAgent()
    async with open_chat(agent, accept_in_group="all") as chat:
        ada = await chat.platform.user("Ada")
        chat_id = (await chat.platform.group("Friends", ada)).chat_id if group else ada.chat_id
        await chat.platform.say(ada, text, chat_id=chat_id)
        await chat.platform.say(ada, "done", chat_id=chat_id)
        heard = await chat.wait_for_answers(chat_id, 2 if answered else 1)
    # In a group it may be meant for another bot.
    assert heard == (["I don't know /what. /help tells what I understand.", "done"] if answered else ["done"])
    assert len(agent.seen) == 1


async def test_a_command_that_fails_tells_no_reason_and_holds_up_nothing() -> None:
    async def broken(_: Any) -> None:
        raise RuntimeError("the secret reason")

    own = [ChannelCommand(name="break", description="Breaks", handler=broken)]
    async with open_chat(EchoAgent(), commands=own) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "/break")
        await chat.platform.say(ada, "still there?")
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["The command failed.", "still there?"]


async def test_what_a_command_says_does_not_overtake_an_answer_that_waits() -> None:
    async with open_chat(EchoAgent()) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.fail("flood", method="send", times=1, retry_after=0.3)
        await chat.platform.say(ada, "first")

        async def has_an_answer() -> bool:
            return bool(await chat.host.deliveries.list())

        # Before that, the command would cancel the turn.
        await chat.platform.until(has_an_answer)
        for text in ("/new", "third"):
            await chat.platform.say(ada, text)
        assert await chat.wait_for_answers(ada.chat_id, 3) == ["first", "We start anew.", "third"]
