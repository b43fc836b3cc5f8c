"""Messages that were written while the host could not be reached: sent later by themselves, once, and in order."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from frontdesk_testing import EchoAgent
from tests.browser import chromium, need_chromium
from tests.channels.web.browsing import ANSWER, STOP, axe_source, open_page, say, violations_on_both, wait_for_text
from tests.channels.web.killing import mortal_host
from tests.channels.web.visiting import web_host

CHROMIUM = need_chromium("unsent messages of the web chat")
MESSAGES = "**/api/conversations/*/messages"


@pytest.fixture
async def new_tab() -> AsyncIterator[Any]:
    async with chromium(CHROMIUM) as tab:
        yield tab


class Network:
    """Lets the messages of a page through, or loses them; it has the bodies of those that were sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.lost = asyncio.Event()
        self.is_down = False
        self.loses_answers = False

    async def __call__(self, route: Any) -> None:
        if route.request.method != "POST":
            return await route.continue_()
        body = route.request.post_data_json
        self.sent.append((body["client_id"], body["text"]))
        if self.is_down or self.loses_answers:
            if self.loses_answers:
                await route.fetch()
            self.lost.set()
            return await route.abort()
        return await route.continue_()

    async def back(self, tab: Any) -> None:
        """The browser says that its network is back."""
        self.is_down = self.loses_answers = False
        await tab.page.evaluate("dispatchEvent(new Event('online'))")


async def test_messages_that_were_written_offline_waited_for_a_click(new_tab: Any, tmp_path: Path) -> None:
    texts = ["are you there", "it is me", "third"]
    async with mortal_host(tmp_path) as host:
        host.let_speak()
        tab = await open_page(await new_tab(), host.url)
        await host.kill()
        await tab.page.wait_for_selector(".offline")
        for text in texts:
            await say(tab, text)
            await wait_for_text(tab, text, ".failed")
        assert await violations_on_both(tab, axe_source()) == []
        assert "Not sent yet." in await tab.text()
        await host.start()
        for text in texts:
            await wait_for_text(tab, text, f"{ANSWER}.done")
        await tab.page.wait_for_selector(".failed", state="detached")
        await tab.page.wait_for_selector(STOP, state="detached")
        assert await tab.page.locator(".message.user .bubble").all_inner_texts() == texts
        await tab.page.reload()
        await wait_for_text(tab, "third", f"{ANSWER}.done")
        assert await tab.page.locator(".message").count() == 6


async def test_a_message_whose_receipt_was_lost_is_sent_again_and_said_once(new_tab: Any) -> None:
    agent, network = EchoAgent(), Network()
    async with web_host(agent) as url:
        tab = await new_tab()
        await tab.page.route(MESSAGES, network)
        await open_page(tab, url)
        network.loses_answers = True
        await say(tab, "one")
        await network.lost.wait()
        await network.back(tab)
        await say(tab, "two")
        await wait_for_text(tab, "two", f"{ANSWER}.done")
        await tab.page.wait_for_selector(".failed", state="detached")
        assert await tab.page.locator(".message.user .bubble").all_inner_texts() == ["one", "two"]
        assert len(agent.seen) == 2
        # The page sees the message by its feed, or sends it again under its id.
        assert len({client_id for client_id, text in network.sent if text == "one"}) == 1


async def test_the_page_sends_again_where_nothing_tells_it_that_the_network_is_back(new_tab: Any) -> None:
    network = Network()
    async with web_host(EchoAgent()) as url:
        tab = await new_tab()
        await tab.page.route(MESSAGES, network)
        await open_page(tab, url)
        network.is_down = True
        await say(tab, "one")
        await wait_for_text(tab, "one", ".failed")
        await say(tab, "two")
        await wait_for_text(tab, "two", ".failed")
        network.is_down = False
        await wait_for_text(tab, "two", f"{ANSWER}.done")
        assert await tab.page.locator(".message.user .bubble").all_inner_texts() == ["one", "two"]
        assert len({client_id for client_id, _ in network.sent}) == 2


async def test_a_message_is_sent_into_its_own_conversation_and_after_a_reload(new_tab: Any) -> None:
    network = Network()
    async with web_host(EchoAgent()) as url:
        tab = await new_tab()
        await tab.page.route(MESSAGES, network)
        await open_page(tab, url)
        await tab.page.click("button.menu")
        await tab.page.click("button.new")
        await tab.page.wait_for_url(re.compile("#cnv_"))
        own = tab.page.url
        network.is_down = True
        await say(tab, "for this one")
        await wait_for_text(tab, "for this one", ".failed")
        await tab.page.goto(f"{url}/chat#main")
        await say(tab, "for the main one")
        await wait_for_text(tab, "for the main one", ".failed")
        assert await tab.page.locator(".failed").count() == 1
        await tab.page.reload()
        await wait_for_text(tab, "for the main one", ".failed")
        await network.back(tab)
        await wait_for_text(tab, "for the main one", f"{ANSWER}.done")
        assert await tab.page.locator(".message").count() == 2
        await tab.page.goto(own)
        await wait_for_text(tab, "for this one", f"{ANSWER}.done")
        assert await tab.page.locator(".message").count() == 2
        assert await tab.page.evaluate("sessionStorage.length") == 0


async def test_a_message_that_the_host_refuses_does_not_hold_up_the_next_one(new_tab: Any) -> None:
    async with web_host(EchoAgent()) as url:
        tab = await new_tab()

        async def refuse(route: Any) -> None:
            if route.request.method == "POST" and route.request.post_data_json["text"] == "one":
                error = {"error": {"code": "too_many_requests", "message": "Too many"}}
                return await route.fulfill(status=429, json=error)
            return await route.continue_()

        await tab.page.route(MESSAGES, refuse)
        await open_page(tab, url)
        await say(tab, "one")
        await wait_for_text(tab, "That was too fast.", ".failed")
        await say(tab, "two")
        await wait_for_text(tab, "two", f"{ANSWER}.done")
        await tab.page.unroute(MESSAGES)
        await tab.page.click(".problem button")
        await wait_for_text(tab, "one", f"{ANSWER}.done")
        await tab.page.wait_for_selector(".failed", state="detached")
