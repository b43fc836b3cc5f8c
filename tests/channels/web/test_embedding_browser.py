"""The bubble on another site, in a real browser: two origins, the site's own policy, the keyboard and a phone."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import FrameLocator
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from frontdesk import AgentFrameworkHost
from frontdesk.channels.web import WebChatChannel
from frontdesk_testing import EchoAgent
from tests.browser import Tab, chromium, need_chromium
from tests.channels.web.test_browser import axe, violations
from tests.oidc import free_port, serve_app

__all__ = ["axe"]

CHROMIUM = need_chromium("the page in other sites")
DESKTOP: Any = {"width": 1100, "height": 720}
BEHIND = "document.querySelector('main').inert"
FOCUSED = "document.activeElement.shadowRoot.activeElement.className"
BUBBLE, PANEL = "button.bubble", "section#panel"


@pytest.fixture
async def new_tab() -> AsyncIterator[Any]:
    async with chromium(CHROMIUM) as tab:
        yield tab


@contextlib.asynccontextmanager
async def site(host: str) -> AsyncIterator[str]:
    """A shop with a strict policy, by another name of the machine: for the browser that is another site."""
    policy = (
        f"default-src 'none'; script-src {host}; frame-src {host}; style-src 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    body = (
        '<!doctype html><html lang="en"><title>Shop</title><main><h1>Shop</h1><a href="/">Home</a></main>'
        f'<script src="{host}/chat/embed.js" defer></script></html>'
    )

    async def page(_: Any) -> HTMLResponse:
        return HTMLResponse(body, headers={"content-security-policy": policy})

    async with serve_app(Starlette(routes=[Route("/", page)])) as url:
        yield url.replace("127.0.0.1", "localhost")


@contextlib.asynccontextmanager
async def two_sites() -> AsyncIterator[tuple[str, str, str]]:
    """A host, a site that may embed its page, and one that may not."""
    listener = free_port()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with site(url) as shop, site(url) as thief:
        host = AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel(title="Desk", embed_origins=[shop])])
        async with serve_app(host.app, listener, lifespan="on"):
            yield url, shop, thief


async def find_broken_rules(tab: Tab, axe: str) -> list[str]:
    """The rules of WCAG that axe finds broken. Habits of whole pages are not asked for: the shop is behind the chat."""
    await tab.page.evaluate(axe)
    rules = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']"
    found = await tab.page.evaluate(f"axe.run(document, {{runOnly: {rules}}})")
    assert len(found["passes"]) > 5
    return [rule["id"] for rule in found["violations"]]


def get_frame(tab: Tab) -> FrameLocator:
    return tab.page.frame_locator("iframe")


async def say(tab: Tab, text: str) -> None:
    await get_frame(tab).locator("textarea").fill(text)
    await get_frame(tab).locator("textarea").press("Enter")
    await get_frame(tab).locator(".message.assistant.done", has_text=text).wait_for()


async def test_a_bubble_opens_the_chat_and_closes_by_the_keyboard(new_tab: Any, axe: str) -> None:
    async with two_sites() as (url, shop, _):
        tab = await new_tab()
        await tab.page.set_viewport_size(DESKTOP)
        requests: list[str] = []
        tab.page.on("request", lambda request: requests.append(request.url))
        await tab.page.goto(shop)
        await tab.page.locator(BUBBLE).wait_for()
        assert await violations(tab, axe) == []
        # Nothing but the script is loaded before somebody wants to talk.
        assert [request for request in requests if request.startswith(url)] == [f"{url}/chat/embed.js"]
        await tab.page.focus(BUBBLE)
        await tab.page.keyboard.press("Enter")
        await say(tab, "hello from the shop")
        assert await tab.page.get_attribute(BUBBLE, "aria-expanded") == "true"
        await tab.page.reload()
        await tab.page.click(BUBBLE)
        # The visitor is known again: the cookie is kept for this site.
        await get_frame(tab).locator(".message.assistant", has_text="hello from the shop").wait_for()
        [cookie] = [one for one in await tab.page.context.cookies() if "embedded" in one["name"]]
        assert (cookie["sameSite"], cookie["secure"], cookie["httpOnly"]) == ("None", True, True)
        await get_frame(tab).locator("textarea").press("Escape")
        await tab.page.locator(PANEL).wait_for(state="hidden")
        assert await tab.page.evaluate(FOCUSED) == "bubble"
        await tab.page.goto(f"{url}/chat")
        await tab.page.wait_for_selector("textarea")
        assert await tab.page.locator(".message").count() == 0, "the page itself has another visitor"
        assert tab.complaints == []
        await tab.page.close()


async def test_on_a_phone_it_fills_the_screen_and_has_a_button_to_close(new_tab: Any, axe: str) -> None:
    async with two_sites() as (_, shop, _):
        tab = await new_tab()
        await tab.page.goto(shop)
        await tab.page.click(BUBBLE)
        await get_frame(tab).locator("textarea").wait_for()
        box = await tab.page.locator(PANEL).bounding_box()
        assert box == {"x": 0, "y": 0, **(tab.page.viewport_size or {})}
        assert await find_broken_rules(tab, axe) == []
        assert await tab.page.evaluate(BEHIND)
        await tab.page.click("section .bar button")
        await tab.page.locator(PANEL).wait_for(state="hidden")
        assert not await tab.page.evaluate(BEHIND)
        assert await tab.page.evaluate(FOCUSED) == "bubble"
        assert await tab.fits()
        assert tab.complaints == []
        await tab.page.close()


async def test_a_site_that_was_not_named_can_t_show_the_page(new_tab: Any) -> None:
    async with two_sites() as (_, _, thief):
        tab = await new_tab()
        await tab.page.goto(thief)
        async with tab.page.expect_console_message(lambda said: "frame-ancestors" in said.text):
            await tab.page.click(BUBBLE)
        assert await get_frame(tab).locator("textarea").count() == 0
        await tab.page.close()


async def test_where_no_cookie_is_kept_the_chat_can_be_opened_in_a_tab(new_tab: Any) -> None:
    async with two_sites() as (url, shop, _):
        tab = await new_tab()
        # As a browser that keeps nothing for frames of other sites.
        await tab.page.route("**/chat/frame", _without_cookie)
        await tab.page.add_init_script(
            "if (top !== self) for (const name of ['localStorage', 'sessionStorage'])"
            " Object.defineProperty(window, name, { get() { throw new DOMException('refused', 'SecurityError') } })"
        )
        await tab.page.goto(shop)
        await tab.page.click(BUBBLE)
        link = get_frame(tab).locator("a.button")
        await link.wait_for()
        assert await link.get_attribute("target") == "_blank"
        async with tab.page.context.expect_page() as outside:
            await link.click()
        page = await outside.value
        assert page.url == f"{url}/chat"
        await page.wait_for_selector("textarea")
        await page.close()
        await tab.page.close()


async def _without_cookie(route: Any) -> None:
    response = await route.fetch()
    headers = {name: value for name, value in response.headers.items() if name != "set-cookie"}
    await route.fulfill(response=response, headers=headers)
