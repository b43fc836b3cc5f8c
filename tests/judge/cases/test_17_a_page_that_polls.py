"""A page without WebSockets polls while an answer is being written, and nothing of it changes for a while."""

import asyncio
from contextlib import suppress

from tests.judge.page import Page, answers_in
from tests.judge.site import site

SECONDS = 3.0
MOST = 30
"""How many polls a page may make in that time to hear nothing: ten a second, as if each waited for a live update."""


async def test_a_page_polls_while_an_answer_does_not_go_on() -> None:
    async with site("sqlite", web=True) as place:
        host, page = place.hosts[0], Page()
        await page.load(host)
        assert (await page.say(host, "w say:20 hold:gate", "m1")).ok
        assert await place.noted("held", "w")
        async with asyncio.timeout(30):
            while not any("p19" in one.get("text", "") for one in page.messages.values()):
                await page.poll(host)
        page.idle = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(SECONDS):
                while True:
                    await page.poll(host)
        idle, page.idle = page.idle, 0
        place.open("gate")
        async with asyncio.timeout(30):
            while not any('"heard"' in one.get("text", "") for one in answers_in(list(page.messages.values()))):
                await page.poll(host)
        assert idle <= MOST, f"{idle} polls in {SECONDS:g} s were answered with what the page showed already"
