"""Details of the page in a real browser: keys, the version that is opened, notices, contrast and the account panel."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontdesk_testing import EchoAgent, GatedAgent
from tests.browser import Tab, chromium, need_chromium
from tests.channels.web.browsing import ANSWER, DESKTOP, PHONE, STOP, open_page, say, wait_for_text
from tests.channels.web.test_branches import build_remembering_agent
from tests.channels.web.visiting import web_host

CHROMIUM = need_chromium("details of the web chat")


@pytest.fixture
async def new_tab() -> AsyncIterator[Any]:
    async with chromium(CHROMIUM) as tab:
        yield tab


async def test_the_key_of_the_list_swallowed_the_next_esc_on_a_desktop(new_tab: Any) -> None:
    async with web_host(GatedAgent()) as url:
        tab = await new_tab()
        await tab.page.set_viewport_size(DESKTOP)
        await open_page(tab, url)
        await say(tab, "one two")
        await wait_for_text(tab, "one", f"{ANSWER}.live")
        await tab.page.keyboard.press("Control+k")
        await tab.page.wait_for_function("() => document.activeElement.ariaCurrent === 'page'")
        await tab.page.keyboard.press("Escape")
        await tab.page.wait_for_selector(f"{ANSWER}.stopped")


async def test_a_drawer_that_a_wider_window_has_no_more_does_not_take_esc(new_tab: Any) -> None:
    async with web_host(GatedAgent()) as url:
        tab = await open_page(await new_tab(), url)
        await say(tab, "one two")
        await wait_for_text(tab, "one", f"{ANSWER}.live")
        await tab.page.keyboard.press("Control+k")
        await tab.page.wait_for_selector(".side.open")
        await tab.page.set_viewport_size(DESKTOP)
        await tab.page.wait_for_selector(".side:not(.open)")
        await tab.page.set_viewport_size(PHONE)
        await tab.page.keyboard.press("Control+k")
        await tab.page.wait_for_function("() => document.activeElement.ariaCurrent === 'page'")
        await tab.page.keyboard.press("Escape")
        await tab.page.wait_for_selector(".side:not(.open)", state="attached")
        await tab.page.wait_for_function("() => document.activeElement.matches('button.icon.menu')")
        await tab.page.keyboard.press("Escape")
        await tab.page.wait_for_selector(f"{ANSWER}.stopped")
        await tab.page.wait_for_selector(STOP, state="detached")


async def test_an_edited_message_was_shown_as_it_was_when_the_page_was_opened_anew(new_tab: Any) -> None:
    agent, _ = build_remembering_agent()
    async with web_host(agent) as url:
        tab = await open_page(await new_tab(), url)
        await say(tab, "one")
        await wait_for_text(tab, "answer 0", f"{ANSWER}.done")
        await tab.page.get_by_role("button", name="Edit").click()
        await tab.page.fill("#edit", "two")
        await tab.page.press("#edit", "Enter")
        await wait_for_text(tab, "answer 1", f"{ANSWER}.done")

        async def anew(said: list[str], version: str) -> Tab:
            opened_anew = await open_page(Tab(await tab.page.context.new_page()), url)
            await wait_for_text(opened_anew, version, ".versions")
            assert await opened_anew.page.locator(".message.user .bubble").all_inner_texts() == said
            return opened_anew

        other = await anew(["two"], "Version 2 of 2")
        # The other version has an address of its own, and is the one that is opened once it was used last.
        await other.page.get_by_role("button", name="Version before").click()
        await wait_for_text(other, "answer 0", f"{ANSWER}.done")
        await other.page.reload()
        await wait_for_text(other, "answer 0", f"{ANSWER}.done")
        await anew(["two"], "Version 2 of 2")
        await say(other, "three")
        await wait_for_text(other, "answer 2", f"{ANSWER}.done")
        await anew(["one", "three"], "Version 1 of 2")


async def test_the_commands_of_help_were_one_line(new_tab: Any) -> None:
    async with web_host(EchoAgent()) as url:
        tab = await open_page(await new_tab(), url)
        await say(tab, "/help")
        notice = tab.page.locator(".message.notice .text")
        lines = (await notice.inner_text()).splitlines()
        assert len(lines) > 2
        assert all(line.startswith("/") for line in lines)
        assert (
            await notice.locator("p").evaluate("one => one.clientHeight / parseFloat(getComputedStyle(one).lineHeight)")
            >= len(lines) - 0.1
        )


async def test_a_bubble_had_no_outline_in_forced_colors(new_tab: Any) -> None:
    async with web_host(EchoAgent()) as url:
        tab = await new_tab()
        await tab.page.emulate_media(forced_colors="active")
        await open_page(tab, url)
        await say(tab, "hello")
        await wait_for_text(tab, "hello", f"{ANSWER}.done")
        border = "one => [getComputedStyle(one).borderTopStyle, getComputedStyle(one).borderTopWidth]"
        assert await tab.page.locator(".bubble").evaluate(border) == ["solid", "1px"]


async def test_the_account_panel_was_a_dead_end_without_a_linker(new_tab: Any) -> None:
    async with web_host(EchoAgent()) as url:
        tab = await open_page(await new_tab(), url)
        assert await tab.page.locator("header button").count() == 2
        assert await tab.page.locator("header button[aria-haspopup=dialog]").count() == 0
