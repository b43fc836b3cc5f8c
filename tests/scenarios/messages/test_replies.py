"""Replies: they are sent when the event is done, to the conversation, the direct chat, or one person's eyes."""

from typing import Any

import pytest

from frontdesk import ChannelCommand, Delivery, InMemoryStateStore, Reply, ReplyButton
from frontdesk.errors import PushError
from frontdesk.serialization.codec import decode, encode
from frontdesk_testing import EchoAgent
from frontdesk_testing.messages import MessagePlatform
from frontdesk_testing.store_samples import inbox_item
from tests.scenarios.desk import until
from tests.scenarios.messages.chat import MessagesHost, open_chat


def build_commands(*replies: Reply | str) -> list[ChannelCommand]:
    async def say(call: Any) -> None:
        for reply in replies:
            await call.reply(reply)

    return [ChannelCommand("say", "Say something", say)]


async def group_of_ada(platform: MessagePlatform) -> tuple[Any, str]:
    ada = await platform.user("Ada")
    return ada, (await platform.group("Friends", ada)).chat_id


def test_a_reply_has_a_json_form() -> None:
    reply = Reply("one", blocks=("two",), buttons=(ReplyButton("Yes", "y"),), to="only_me", replaces="m1")
    assert decode(encode(reply)) == reply
    assert reply.full_text == "one\n\ntwo"


async def test_a_reply_with_paragraphs_and_buttons() -> None:
    reply = Reply("one", blocks=("two",), buttons=(ReplyButton("Yes", "y"), ReplyButton("No", "n")))
    async with open_chat(EchoAgent(), commands=build_commands(reply)) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "/say")
        said = await chat.last(ada.chat_id, 1)
    assert said.text == "one\n\ntwo"
    assert [(button.text, button.data) for button in said.buttons] == [("Yes", "y"), ("No", "n")]


# Only who has pressed a button can be shown something alone.
@pytest.mark.parametrize("to", ["direct", "only_me"])
async def test_what_is_for_one_person_is_not_said_in_the_group(to: Any) -> None:
    async with open_chat(EchoAgent(), commands=build_commands("for all", Reply("for you", to=to))) as chat:
        ada, group = await group_of_ada(chat.platform)
        await chat.platform.say(ada, "/say@desk", chat_id=group)
        assert await chat.wait_for_answers(ada.chat_id) == ["for you"]
        assert await chat.wait_for_answers(group) == ["for all"]


async def test_in_a_direct_chat_all_replies_are_said_there_in_order() -> None:
    replies = ["one", Reply("two", to="direct"), Reply("three", to="only_me")]
    async with open_chat(EchoAgent(), commands=build_commands(*replies)) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "/say")
        assert await chat.wait_for_answers(ada.chat_id, 3) == ["one", "two", "three"]


async def test_a_reply_takes_the_place_of_a_message() -> None:
    async def change(call: Any) -> None:
        await call.reply(Reply("two", replaces=call.args))

    commands = [*build_commands("one"), ChannelCommand("change", "Change a message", change)]
    async with open_chat(EchoAgent(), commands=commands) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "/say")
        first = await chat.last(ada.chat_id, 1)
        await chat.platform.say(ada, f"/change {first.message_id}")

        async def changed() -> bool:
            return [said.text for said in await chat.platform.answers(ada.chat_id)] == ["two"]

        await chat.platform.until(changed)


async def test_a_command_that_failed_half_way_has_said_nothing_until_it_is_run_again() -> None:
    tries: list[int] = []

    async def stumble(call: Any) -> None:
        tries.append(len(tries) + 1)
        await call.reply(f"try {tries[-1]}")
        if tries == [1]:
            raise PushError("The platform is away.", retry_after=0.01)
        await call.reply("done")

    async with open_chat(EchoAgent(), commands=[ChannelCommand("stumble", "Fail once", stumble)]) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "/stumble")
        await chat.platform.say(ada, "after")
        assert await chat.wait_for_answers(ada.chat_id, 3) == ["try 2", "done", "after"]


async def test_what_a_command_has_said_before_it_failed_comes_with_the_refusal() -> None:
    async def fail(call: Any) -> None:
        await call.reply("I will try.")
        raise RuntimeError("the secret reason")

    async with open_chat(EchoAgent(), commands=[ChannelCommand("fail", "Fail", fail)]) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "/fail")
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["I will try.", "The command failed."]


async def test_the_replies_of_a_command_that_cancels_turns_are_written_with_it() -> None:
    async def stop(call: Any) -> None:
        await call.reply("before")
        await context[0].events.cancel_turns(call.event, reply=lambda _: Reply("stopped"))
        await call.reply("behind")

    context: list[Any] = []
    async with open_chat(EchoAgent(), commands=[ChannelCommand("stop", "Stop", stop, control=True)]) as chat:
        context.append(chat.channel._replies._context)  # pyright: ignore[reportOptionalMemberAccess]
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "/stop")
        assert await chat.wait_for_answers(ada.chat_id, 3) == ["before", "stopped", "behind"]


async def test_a_reply_to_an_event_that_is_done_is_sent_once() -> None:
    async with open_chat(EchoAgent()) as chat:
        ada = await chat.platform.user("Ada", user_id="u-ada")
        item = inbox_item("evt_old")
        request = item.request.replace(channel="messages", conversation_id=ada.chat_id)
        identity = item.caller.identity.replace(channel="messages", native_id=ada.user_id)
        item = item.replace(channel="messages", request=request, caller=item.caller.replace(identity=identity))
        context: Any = chat.channel._replies._context  # pyright: ignore[reportOptionalMemberAccess]
        for text, number in (("first", 0), ("again", 0), ("second", 1)):
            await context.events.reply(item, text, number=number)
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["first", "second"]


async def _dead(chat: MessagesHost) -> list[Delivery]:
    found: list[Delivery] = []

    async def died() -> bool:
        found[:] = await chat.host.deliveries.list(status="dead")
        return bool(found)

    await until(died)
    return found


async def test_a_refusal_that_comes_too_late_for_its_button_is_a_dead_letter_and_holds_up_nothing() -> None:
    async with open_chat(EchoAgent(), store=InMemoryStateStore()) as chat:
        await chat.platform.set(click_seconds=0.0)
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "hello")
        said = await chat.last(ada.chat_id, 1)
        click = await chat.platform.click(ada, said, "approve:nothing")
        await chat.platform.say(ada, "after")
        assert await chat.wait_for_answers(ada.chat_id, 2) == ["hello", "after"]
        (dead,) = await _dead(chat)
        assert (dead.error, dead.attempts) == ("click_too_old", 1)
        assert click.click is not None
        assert (await chat.platform.state()).clicks[click.click.callback_id] == ""
