"""Where a person is: it is noted when a message of theirs is accepted, and by nothing else."""

import time
from typing import Any

import pytest

from frontdesk import Caller, ChannelCommand, ChannelIdentity, ChannelRequest, InMemoryStateStore, ResponseTarget
from frontdesk.access.allowlists import NativeIdAllowlist
from frontdesk.delivery.proactive import WORK_GOES_ON
from frontdesk_testing import EchoAgent, FakeClock
from tests.scenarios.delivery.chats import OWNER, Chats, Holding, open_chats
from tests.scenarios.desk import until
from tests.test_pipeline import caller, open_context, request

ON_A = ChannelIdentity(channel="a", native_id="ann")
AT_THE_DOOR = Caller(identity=ChannelIdentity(channel="probe", native_id="ann"))


async def ask_at_the_door(chats: Chats, **fields: Any) -> Any:
    asked = ChannelRequest(channel="probe", input="knock", **fields)
    return await chats.door.context.run(asked, AT_THE_DOOR)


async def test_a_run_that_ended_moved_its_person_back() -> None:
    agent, clock = Holding(), FakeClock(time.time())
    async with open_chats(agent, ResponseTarget.originating, clock=clock) as chats:
        await chats.a.say("count the rooms")
        await agent.begins("count the rooms")
        clock.advance(1)
        await ask_at_the_door(chats)
        assert await chats.find_last_channel() == "probe"
        clock.advance(1)
        agent.release("count the rooms")
        await chats.a.hears(WORK_GOES_ON, "count the rooms")
        assert await chats.find_last_channel() == "probe"


async def test_a_person_was_not_seen_before_their_turn_began() -> None:
    agent, clock = Holding(), FakeClock(time.time())
    async with open_chats(agent, clock=clock) as chats:
        await chats.b.say("count slowly")
        await agent.begins("count slowly")
        clock.advance(1)
        # It has to wait for the other turn, but the person is here by now.
        await chats.a.say("hello")
        await until(lambda: _is_seen_on(chats, "a"))
        agent.release("count slowly")
        await chats.a.hears("hello")


async def _is_seen_on(chats: Chats, channel: str) -> bool:
    return await chats.find_last_channel() == channel


async def test_an_event_that_is_answered_late_counts_from_when_it_was_accepted() -> None:
    agent, clock = Holding(), FakeClock(time.time())
    async with open_chats(agent, clock=clock) as chats:
        await chats.b.say("count slowly")
        await agent.begins("count slowly")
        await chats.b.say("hello")
        accepted = clock.now()
        clock.advance(100)
        agent.release("count slowly")
        await chats.b.hears("count slowly", "hello")
        seen = await chats.store.identities.last_seen(OWNER)
        assert seen is not None
        assert seen.at == accepted


@pytest.mark.parametrize("background", [False, True])
async def test_a_door_that_can_not_push_counts(background: bool) -> None:
    async with open_chats(EchoAgent()) as chats:
        await ask_at_the_door(chats, background=background)
        assert await chats.find_last_channel() == "probe"


async def test_a_turn_of_which_nothing_is_kept_leaves_no_trace_here_either() -> None:
    async with open_chats(EchoAgent()) as chats:
        await ask_at_the_door(chats, store=False)
        assert await chats.find_last_channel() is None


async def test_the_runs_of_the_operator_are_no_sign_of_a_person() -> None:
    async with open_chats(EchoAgent()) as chats:
        asked = ChannelRequest(channel="a", input="remind", response_target=ResponseTarget.none)
        await chats.host.run_in_background(asked, identity=ON_A)
        await chats.host.deliver(ON_A, "Good morning.")
        await chats.a.hears("Good morning.")
        assert await chats.find_last_channel() is None


async def test_a_run_of_the_operator_s_finds_the_person_where_they_are() -> None:
    async with open_chats(EchoAgent()) as chats:
        await chats.a.say("hello")
        await chats.a.hears("hello")
        asked = ChannelRequest(channel="a", input="remind", response_target=ResponseTarget.active)
        await chats.host.run_in_background(asked, identity=ON_A)
        await chats.a.hears("hello", "remind")


async def test_a_command_counts() -> None:
    async def nothing(context: Any) -> None:
        return None

    commands = [ChannelCommand("wave", "Wave", nothing)]
    async with open_chats(EchoAgent(), commands=commands) as chats:
        await chats.b.say("hello")
        await chats.b.hears("hello")
        await chats.a.say("wave", operation="command")
        await until(lambda: _is_seen_on(chats, "a"))


async def test_a_stranger_is_not_seen() -> None:
    only_bea = NativeIdAllowlist(["bea"])
    async with open_chats(EchoAgent(), default_allowlist=only_bea) as chats:
        await chats.a.say("hello")
        await chats.a.say("wave", operation="command")
        await until(lambda: len(chats.a.texts()) == 2)
        assert await chats.find_last_channel() is None


async def test_where_nobody_can_be_spoken_to_first_nothing_is_noted() -> None:
    store = InMemoryStateStore()
    async with open_context(store=store) as (context, _):
        await context.run(request("hi"), caller())
        assert len(store.identities.seen) == 0


async def test_who_was_seen_too_long_ago_is_answered_where_they_asked() -> None:
    agent, clock = Holding(), FakeClock(time.time())
    async with open_chats(agent, clock=clock, active_window_seconds=60) as chats:
        await chats.a.say("count")
        await agent.begins("count")
        clock.advance(10)
        await chats.b.say("hello")
        await chats.b.hears("hello")
        clock.advance(61)
        agent.release("count")
        await chats.a.hears(WORK_GOES_ON, "count")
        hosting = (await chats.read_tracked())[-1].additional_properties["hosting"]
        assert hosting["fallback"] is True
        (skipped,) = hosting["skipped_targets"]
        assert (skipped["channel"], skipped["native_id"]) == ("b", "ann")
