"""A conversation in a real browser: tools, sources, forms, branches and the list, with axe on each state."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.browser import chromium, need_chromium
from tests.channels.web.browsing import ANSWER, axe_source, opened, say, shown, violations_on_both
from tests.channels.web.test_forms import Booking
from tests.channels.web.test_notes import SECRET, Looking
from tests.channels.web.visiting import web_host

pytestmark = pytest.mark.xdist_group("browser")
CHROMIUM = need_chromium("the web chat")


@pytest.fixture(scope="module")
def axe() -> str:
    return axe_source()


@pytest.fixture
async def new_tab() -> AsyncIterator[Any]:
    async with chromium(CHROMIUM) as tab:
        yield tab


async def test_a_tool_is_a_line_that_opens_and_sources_are_numbered_links(new_tab: Any, axe: str) -> None:
    looking = Looking()
    async with web_host(looking.agent, tools="full") as url:
        tab = await opened(await new_tab(), url)
        await say(tab, "look")
        await tab.page.wait_for_selector(".tool.running")
        running = await violations_on_both(tab, axe)
        looking.release.set()
        await shown(tab, "here it is", f"{ANSWER}.done")
        await tab.page.reload()
        line = tab.page.locator(".tool.done summary")
        await line.wait_for()
        assert (await line.inner_text()).startswith("look done · 0.")
        await line.click()
        assert SECRET in await tab.page.locator(".tool dd").inner_text()
        assert await tab.page.locator(".tool pre").inner_text() == f"found {SECRET}"
        link = tab.page.locator(".sources li a")
        assert (await link.inner_text(), await link.get_attribute("href")) == ("The guide", "https://guide.example/")
        assert {"running": running, "open": await violations_on_both(tab, axe)} == {"running": [], "open": []}
        assert tab.complaints == []


async def test_a_form_says_what_is_missing_and_is_answered(new_tab: Any, axe: str) -> None:
    desk = Booking()
    async with web_host(desk) as url:
        tab = await opened(await new_tab(), url)
        await say(tab, "a room please")
        await tab.page.wait_for_selector("form.card")
        found = {"form": await violations_on_both(tab, axe)}
        await tab.page.click("form.card button[type=submit]")
        await shown(tab, "Fill this in.", "form.card .problem")
        assert await tab.page.locator("form.card .problem").count() == 2
        assert await tab.page.evaluate("document.activeElement.name") == "form-2.name"
        found["problems"] = await violations_on_both(tab, axe)
        await tab.page.get_by_label("Your name").fill("Ada")
        await tab.page.get_by_label("Room").select_option("garden")
        await tab.page.get_by_label("Nights").fill("31")
        await tab.page.press("form.card [name='form-2.nights']", "Enter")
        await shown(tab, "Enter 30 or less.", "form.card .problem")
        assert await tab.page.locator("form.card .problem").count() == 1
        await tab.page.get_by_label("Nights").fill("3")
        await tab.page.get_by_label("Breakfast").check()
        await tab.page.click("form.card button[type=submit]")
        await shown(tab, "Ada has the garden for 3", f"{ANSWER}.done")
        await tab.page.wait_for_selector("form.card", state="detached")
        assert found == {state: [] for state in found}
        assert [stay.breakfast for stay in desk.booked] == [True]
        assert tab.complaints == []
