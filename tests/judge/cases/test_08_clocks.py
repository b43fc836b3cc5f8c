"""Point 8: the clock of the machine jumps ahead and is set back, while answers wait for their platform."""

from frontdesk_testing.messages import MessagePlatform, Person
from tests.judge.site import site

DAY = 86_400.0
PATIENCE = 25.0


async def _wait_for_faults(platform: MessagePlatform, times: int) -> None:
    """Wait until the platform has failed so many times more."""
    before = sum((await platform.state()).struck)

    async def more() -> bool:
        return sum((await platform.state()).struck) >= before + times

    await platform.until(more)


async def _wait_for_answers(platform: MessagePlatform, *people: Person) -> None:
    for person in people:
        await platform.until(lambda person=person: platform.answers(person.chat_id), within=PATIENCE)


async def test_a_retry_was_scheduled_while_the_clock_was_ahead() -> None:
    async with site("sqlite", chats=("chat",)) as place:
        platform = place.platforms["chat"]
        ann = await platform.user("ann")
        await platform.fail("unavailable", method="send")
        place.set_clock(DAY)
        await platform.say(ann, "word")
        await _wait_for_faults(platform, 2)
        place.set_clock(0)
        await platform.recover()
        await _wait_for_answers(platform, ann)


async def test_a_retry_that_was_scheduled_ahead_does_not_wait_over_a_restart() -> None:
    async with site("sqlite", chats=("chat",)) as place:
        platform, host = place.platforms["chat"], place.hosts[0]
        ann = await platform.user("ann")
        await platform.fail("unavailable", method="send")
        place.set_clock(DAY)
        await platform.say(ann, "word")
        await _wait_for_faults(platform, 2)
        await host.kill()
        place.set_clock(0)
        await platform.recover()
        await host.start()
        await _wait_for_answers(platform, ann)


async def test_a_jump_ahead_and_back_does_not_make_what_waits_too_old() -> None:
    async with site("sqlite", chats=("chat",)) as place:
        platform = place.platforms["chat"]
        ann, bob = await platform.user("ann"), await platform.user("bob")
        await platform.fail("unavailable", method="send")
        await platform.say(ann, "word")
        await _wait_for_faults(platform, 2)
        place.set_clock(2 * DAY)
        await platform.say(bob, "other")
        await _wait_for_faults(platform, 4)
        place.set_clock(0)
        await platform.recover()
        await _wait_for_answers(platform, ann, bob)
