"""Commands that are for some places or languages only, and what a command may know and keep."""

from typing import Any

from frontdesk import ChannelCommand
from frontdesk.interfaces.context import CommandLocale
from frontdesk_testing import EchoAgent
from tests.scenarios.messages.chat import open_chat


async def _greet(call: Any) -> None:
    await call.reply(f"{call.name} of {call.caller.identity.attributes['name']}")


async def test_a_command_is_refused_where_it_is_not_offered() -> None:
    own = [
        ChannelCommand("secret", "For one", _greet, scopes=("direct",)),
        ChannelCommand("party", "For many", _greet, scopes=("group",)),
        ChannelCommand("close", "For some", _greet, scopes=("admins",)),
    ]
    async with open_chat(EchoAgent(), commands=own, accept_in_group="all") as chat:
        ada, ben = await chat.platform.user("Ada"), await chat.platform.user("Ben")
        group = (await chat.platform.group("Friends", ada, ben, admins=[ada])).chat_id
        asked = [
            (ada, ada.chat_id, "/secret", "secret of Ada"),
            (ada, ada.chat_id, "/party", "/party is for groups."),
            (ada, ada.chat_id, "/close", "/close is for groups."),
            (ada, group, "/secret", "Please use /secret in our direct chat."),
            (ben, group, "/party", "party of Ben"),
            (ben, group, "/close", "In a group, /close is for its administrators."),
            (ada, group, "/close", "close of Ada"),
        ]
        heard: dict[str, int] = {}
        for who, place, text, said in asked:
            await chat.platform.say(who, text, chat_id=place)
            heard[place] = heard.get(place, 0) + 1
            assert (await chat.wait_for_answers(place, heard[place]))[-1] == said


async def test_menus_and_help_show_what_is_offered_in_the_language_of_the_person() -> None:
    own = [
        ChannelCommand("secret", "For one", _greet, scopes=("direct",)),
        ChannelCommand("close", "For some", _greet, scopes=("admins",)),
        ChannelCommand("bill", "The bill", _greet, locales={"de": CommandLocale(name="rechnung", description="Bitte")}),
    ]
    async with open_chat(EchoAgent(), commands=own, accept_in_group="all") as chat:
        eva, ben = await chat.platform.user("Eva", locale="de-AT"), await chat.platform.user("Ben")
        group = (await chat.platform.group("Friends", eva, ben, admins=[eva])).chat_id

        async def all_published() -> bool:
            return "close" in await chat.platform.menu("admins", "de")

        await chat.platform.until(all_published)
        direct, admins = await chat.platform.menu("direct", "de"), await chat.platform.menu("admins")
        assert ("secret" in direct, direct["rechnung"], "close" in direct) == (True, "Bitte", False)
        assert ("secret" in admins, admins["bill"], "close" in admins) == (False, "The bill", True)
        await chat.platform.say(eva, "/help")
        (text,) = await chat.wait_for_answers(eva.chat_id)
        assert [word in text for word in ("/rechnung - Bitte", "/secret", "/close")] == [True, True, False]
        await chat.platform.say(ben, "/help", chat_id=group)
        (text,) = await chat.wait_for_answers(group)
        assert [word in text for word in ("/bill - The bill", "/secret", "/close")] == [True, False, False]
        # Every name works, whatever language a person has.
        await chat.platform.say(ben, "/rechnung")
        await chat.platform.say(eva, "/bill")
        assert await chat.wait_for_answers(ben.chat_id) == ["rechnung of Ben"]
        assert (await chat.wait_for_answers(eva.chat_id, 2))[-1] == "bill of Eva"


async def test_a_command_of_control_is_one_by_each_of_its_names() -> None:
    """A control command that waited for its turn because it was called in another language."""
    kinds: list[str] = []

    async def note(call: Any) -> None:
        kinds.append(call.event.kind)
        await call.reply("noted")

    stop = ChannelCommand("halt", "Stop", note, control=True, locales={"de": CommandLocale(name="genug")})
    async with open_chat(EchoAgent(), commands=[stop]) as chat:
        ada = await chat.platform.user("Ada")
        for number, text in enumerate(("/halt", "/genug"), 1):
            await chat.platform.say(ada, text)
            await chat.wait_for_answers(ada.chat_id, number)
    assert kinds == ["control", "control"]


async def test_a_command_knows_the_session_that_the_host_tracks() -> None:
    agent = EchoAgent()

    async def again(call: Any) -> None:
        if call.session is None:
            return await call.reply("no session")
        request = call.request.replace(operation="message", input="again", session=call.session)
        hosted = await call.run(request)
        await call.reply("the same" if hosted.run.session_id == call.session.session_id else "another")

    async with open_chat(agent, commands=[ChannelCommand("again", "Again", again)], accept_in_group="all") as chat:
        ada = await chat.platform.user("Ada")
        group = (await chat.platform.group("Friends", ada)).chat_id
        for number, text in enumerate(("/again", "hello", "/again"), 1):
            await chat.platform.say(ada, text)
            await chat.wait_for_answers(ada.chat_id, number)
        assert await chat.wait_for_answers(ada.chat_id, 3) == ["no session", "hello", "the same"]
        # The session of a direct chat is not that of a group.
        await chat.platform.say(ada, "/again", chat_id=group)
        assert await chat.wait_for_answers(group) == ["no session"]
    assert [message.text for message in agent.seen[-1]] == ["hello", "hello", "again"]


async def test_what_a_command_keeps_is_for_one_person_in_one_place() -> None:
    async def count(call: Any) -> None:
        number = (await call.state.get("count") or 0) + 1
        await call.state.set("count", number)
        await call.reply(str(number))

    async def reset(call: Any) -> None:
        await call.state.delete("count")
        await call.reply("reset")

    own = [ChannelCommand("count", "Count", count), ChannelCommand("reset", "Reset", reset)]
    async with open_chat(EchoAgent(), commands=own, accept_in_group="all") as chat:
        ada, ben = await chat.platform.user("Ada"), await chat.platform.user("Ben")
        group = (await chat.platform.group("Friends", ada, ben)).chat_id
        asked = [
            *[(ada, ada.chat_id, "/count", str(number)) for number in (1, 2, 3)],
            (ada, group, "/count", "1"),
            (ben, group, "/count", "1"),
            (ada, group, "/count", "2"),
            (ada, ada.chat_id, "/reset", "reset"),
            (ada, ada.chat_id, "/count", "1"),
        ]
        heard: dict[str, int] = {}
        for who, place, text, said in asked:
            await chat.platform.say(who, text, chat_id=place)
            heard[place] = heard.get(place, 0) + 1
            assert (await chat.wait_for_answers(place, heard[place]))[-1] == said
