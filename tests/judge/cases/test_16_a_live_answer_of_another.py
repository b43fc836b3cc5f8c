"""A host stands still when it is about to show an answer on the page, and the answer is stopped in the meantime."""

import asyncio
import signal

import pytest

from tests.databases import PostgresServer
from tests.judge.page import Page
from tests.judge.proxy import Rule
from tests.judge.site import Site, site

PATIENCE = 90.0
WINDOW = 10.0
"""For how long something may be shown as being written that nobody writes any more: much longer than a lease."""


@pytest.mark.parametrize("touching", ["INTO live"])
async def test_an_answer_is_stopped_while_its_host_stands_still(
    postgres_of_this_process: PostgresServer, touching: str
) -> None:
    async with site("postgres", hosts=2, web=True, server=postgres_of_this_process) as place:
        page = Page()
        await page.load(place.hosts[0])
        assert (await page.say(place.hosts[0], "w wait:gate say:5", "m1")).ok
        assert await place.noted("held", "w")
        here = place.process_of("held", "w")
        assert here is not None
        assert here.proxy is not None
        there = next(host for host in place.hosts if host is not here)
        rule = here.proxy.add(Rule("hold_reply", touching=touching))
        place.open("gate")
        await rule.seen.wait()
        here.send(signal.SIGSTOP)
        rule.release.set()
        assert (await page.stop(there, "s1")).ok
        # The next message is taken up when the one before it has come to its end.
        assert (await page.say(there, "next", "m2")).ok
        async with asyncio.timeout(PATIENCE):
            while not any('"next"' in one.get("text", "") for one in page.messages.values()):
                await page.poll(there)
        here.send(signal.SIGCONT)
        assert await _settles(place, page), [one for one in await page.look(there) if one.get("state") == "live"]


async def _settles(place: Site, page: Page) -> bool:
    """Tell whether nothing is shown as being written, at the end of a while in which that may change."""
    live = True
    for _ in range(int(WINDOW / 0.5)):
        await asyncio.sleep(0.5)
        live = any(one.get("state") == "live" for one in await page.look(place.hosts[0]))
    return not live
