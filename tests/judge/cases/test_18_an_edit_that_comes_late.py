"""A platform takes long for an edit that shows more of an answer; its host is killed, and the answer ends elsewhere."""

import asyncio

from tests.judge.app import LIVE_TIMEOUT
from tests.judge.site import site

PATIENCE = 60.0
PIECES = 60
WHOLE = "".join(f"p{number} " for number in range(PIECES)) + '{"heard": ["w"]}'
WINDOW = 10 * LIVE_TIMEOUT
"""How long the answer may be overwritten: a host that has taken a message over repeats its last edit."""


async def test_an_edit_arrives_after_the_answer_has_ended() -> None:
    async with site("sqlite", chats=("live",)) as place:
        host, platform = place.hosts[0], place.platforms["live"]
        person = await platform.user("ann")
        # The platform makes it after the edit that ends the answer.
        await platform.fail("reorder", method="edit", times=1, seconds=PATIENCE, behind=WHOLE)
        await platform.say(person, f"w say:{PIECES} hold:gate")
        struck = asyncio.create_task(place.noted("held", "w"))

        async def slow() -> bool:
            return sum((await platform.state()).struck) > 0

        await platform.until(slow, within=PATIENCE)
        await host.kill()
        struck.cancel()
        place.open("gate")
        await host.start()

        async def whole() -> bool:
            return any('"heard"' in one.text for one in await platform.answers(person.chat_id))

        await platform.until(whole, within=PATIENCE)

        def edits() -> list[str]:
            return [entry.text for entry in platform.log_on_disk() if entry.method == "edit"]

        await place.until(lambda: WHOLE in edits() and edits().index(WHOLE) < len(edits()) - 1, within=PATIENCE)
        await platform.until(whole, within=WINDOW)
