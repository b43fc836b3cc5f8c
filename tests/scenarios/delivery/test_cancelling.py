"""`/cancel` stops what a person has running, wherever they asked for it."""

from types import SimpleNamespace
from typing import Any

from frontdesk import Caller, ChannelIdentity, ChannelRequest
from frontdesk.chat.session_commands import session_commands
from tests.scenarios.delivery.chats import Chats, Holding, SpokenChat, open_chats


async def cancel(chat: SpokenChat, who: str = "ann", **fields: Any) -> list[str]:
    """Say `/cancel` for somebody, and return what they are told."""
    told: list[str] = []

    async def reply(text: str) -> None:
        told.append(text)

    command = next(one for one in session_commands(chat.context) if one.name == "cancel")
    caller = Caller(identity=ChannelIdentity(channel=chat.name, native_id=who))
    request = ChannelRequest(channel=chat.name, operation="command", input="", **fields)
    call: Any = SimpleNamespace(caller=caller, request=request, reply=reply, event=None)
    await command.handler(call)  # pyright: ignore[reportGeneralTypeIssues]
    return told


async def statuses(chats: Chats) -> list[Any]:
    queued = {one.run_id for one in await chats.host.deliveries.list(channel="a")}
    caller = Caller(identity=ChannelIdentity(channel="a", native_id="ann"))
    return [(await chats.a.context.runs.get(caller, one)).status for one in queued if one is not None]


async def test_a_run_that_was_asked_for_on_one_chat_could_not_be_stopped_on_another() -> None:
    agent = Holding()
    async with open_chats(agent) as chats:
        await chats.a.say("count")
        await agent.begins("count")
        assert await cancel(chats.b, "bob") == ["There is nothing to stop."]
        assert await cancel(chats.b) == ["I have stopped what you asked on a."]
        assert await statuses(chats) == ["cancelled"]
        assert await cancel(chats.a) == ["There is nothing to stop."]


async def test_both_places_are_named_and_nothing_that_was_said_there() -> None:
    agent = Holding()
    async with open_chats(agent) as chats:
        chats.b.run_hook = chats.a.run_hook
        for chat, text in ((chats.a, "count the secrets"), (chats.b, "count the rooms")):
            await chat.say(text)
            await agent.begins(text)
        assert await cancel(chats.b) == ["I have stopped what you asked here and on a."]


async def test_in_a_group_only_what_was_asked_there_is_stopped() -> None:
    agent = Holding()
    async with open_chats(agent) as chats:
        await chats.a.say("count")
        await agent.begins("count")
        in_group = {"group": True, "conversation_id": "all of us"}
        assert await cancel(chats.a, **in_group) == ["There is nothing to stop."]
        assert await cancel(chats.a) == ["I have stopped."]
