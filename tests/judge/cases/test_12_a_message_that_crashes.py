"""A message that crashes its process, and those that others have sent at the same time."""

import pytest

from frontdesk_testing.messages import Person
from tests.judge.site import Site, site
from tests.judge.steps import parse_heard

OTHERS = 12
KILLS = 4
ALL = 3.0
"""How long it is waited until all of them are in the midst of it."""
PATIENCE = 200.0
"""For how long the crashes may take: each costs a start, and what was in flight may be answered one after the other."""


async def _answers(place: Site, people: list[Person]) -> list[list[str]]:
    return [[one.text for one in await place.platforms["chat"].answers(person.chat_id)] for person in people]


async def _judge(place: Site, people: list[Person]) -> None:
    """Every message but the crashing one is answered once, with what the agent says."""
    for number, texts in enumerate(await _answers(place, people)):
        answers = [parse_heard(text) for text in texts]
        assert answers == [[f"w{number}"]], f"w{number} was acknowledged, and the chat says {texts}"


async def _say(place: Site, people: list[Person]) -> None:
    platform = place.platforms["chat"]
    # Those who wrote first are in the midst of it when their process ends, however often it is started again.
    events = [await platform.say(person, f"w{number} say:300") for number, person in enumerate(people)]
    for event in events:
        await platform.wait_for_acknowledged(event)


@pytest.mark.timeout(400)
async def test_a_message_crashes_its_process_while_others_are_answered() -> None:
    async with site("sqlite", chats=("chat",)) as place:
        platform = place.platforms["chat"]
        people = [await platform.user(f"person{number}") for number in range(OTHERS)]
        culprit = await platform.user("culprit")
        await _say(place, people)
        await platform.say(culprit, "boom crash:always")

        async def settled() -> bool:
            return all(await _answers(place, [culprit, *people]))

        async with place.supervise():
            await platform.until(settled, within=PATIENCE)
        await _judge(place, people)


@pytest.mark.timeout(400)
async def test_a_host_is_killed_again_and_again_while_messages_are_answered() -> None:
    async with site("sqlite", chats=("chat",)) as place:
        host, platform = place.hosts[0], place.platforms["chat"]
        people = [await platform.user(f"person{number}") for number in range(OTHERS)]
        await _say(place, people)
        for _ in range(KILLS):
            heard = len(place.effects("heard")) + OTHERS
            await place.until(lambda heard=heard: len(place.effects("heard")) >= heard, within=ALL)
            await host.kill()
            await host.start()

        async def settled() -> bool:
            return all(await _answers(place, people))

        await platform.until(settled, within=PATIENCE)
        texts = await _answers(place, people)
        refused = [each for each in texts if not any("heard" in text for text in each)]
        # One may have been alone in its process each time that this was killed.
        assert len(refused) <= 1, f"{len(refused)} messages of {OTHERS} were acknowledged and refused: {refused[0]}"
