"""The account panel in a real browser: linking by code and by signing in, refusing, and unlinking."""

import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Page
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from frontdesk import AgentFrameworkHost, OneTimeCodeIdentityLinker
from frontdesk.channels.web import WebChatChannel
from frontdesk.linkers.oauth import OAuthIdentityLinker, Oidc
from frontdesk_testing import EchoAgent, serving
from frontdesk_testing.messages import MessageChannel
from tests.browser import Tab, chromium, need_chromium
from tests.channels.web.browsing import ANSWER, violations_on_both
from tests.channels.web.listening import get_focused
from tests.channels.web.test_account import tell
from tests.channels.web.test_browser import axe, open_page, say, violations, wait_for_text
from tests.contracts.message_platform import SECRET, drive_platform
from tests.oidc import CLIENT_ID, CLIENT_SECRET, free_port, oidc_provider, serve_app

__all__ = ["axe"]

CHROMIUM = need_chromium("the account panel")
PANEL, CARD = "dialog.account", "dialog.account .card"
DESKTOP: Any = {"width": 1100, "height": 720}


@pytest.fixture
async def new_tab() -> AsyncIterator[Any]:
    async with chromium(CHROMIUM) as tab:
        yield tab


@pytest.fixture
async def url() -> AsyncIterator[str]:
    host = AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel()], linker=OneTimeCodeIdentityLinker())
    async with serving(host) as client:
        yield client.base_url


async def panel(tab: Tab) -> None:
    await tab.page.click("header button[aria-haspopup=dialog]")
    await tab.page.wait_for_selector(f"{PANEL} dl")


async def reopen(tab: Tab) -> None:
    await press(tab, "Close")
    await panel(tab)


async def press(tab: Tab, name: str) -> None:
    await tab.page.locator(PANEL).get_by_role("button", name=name, disabled=False).click()


async def enter(tab: Tab, code: str) -> None:
    await press(tab, "Enter a code")
    # The keyboard is where the code belongs.
    await tab.page.keyboard.type(code)
    await tab.page.keyboard.press("Enter")
    await tab.page.wait_for_selector(f"{CARD}:has-text('Is this account yours?')")


async def test_a_code_is_refused_and_another_links_two_devices(new_tab: Any, url: str, axe: str) -> None:
    desk, phone = await open_page(await new_tab(), url), await open_page(await new_tab(), url)
    await desk.page.set_viewport_size(DESKTOP)
    await say(desk, "said at the desk")
    await wait_for_text(desk, "said at the desk", ".message.assistant.done")
    for tab in (desk, phone):
        await panel(tab)
    await press(desk, "Show a code")
    code = await desk.page.inner_text(f"{CARD} output")
    # The button that was pressed is gone, and the focus stays in the panel.
    assert await get_focused(desk) == "dialog.account"
    assert await violations(desk, axe) == []
    await enter(phone, code)
    await press(phone, "No, leave them apart")
    await phone.page.wait_for_selector(f"{PANEL} .note:has-text('Nothing was linked.')")
    await press(phone, "Enter a code")
    await phone.page.keyboard.type(code)
    await phone.page.keyboard.press("Enter")
    await phone.page.wait_for_selector(f"{PANEL} [role=alert]:has-text('This code is invalid.')")
    await press(phone, "Cancel")
    await reopen(desk)
    await press(desk, "Show a code")
    await enter(phone, await desk.page.inner_text(f"{CARD} output"))
    assert await phone.fits()
    assert await violations(phone, axe) == []
    await press(phone, "Yes, link them")
    await phone.page.wait_for_selector(f"{CARD}:has-text('Now confirm in the other account')")
    # The desk is asked without doing anything.
    await desk.page.wait_for_selector(f"{CARD}:has-text('Is this account yours?')")
    await press(desk, "Yes, link them")
    await desk.page.wait_for_selector(f"{PANEL} .note:has-text('Linked.')")
    await phone.page.wait_for_selector(f"{PANEL} .note:has-text('Linked.')")
    await wait_for_text(phone, "said at the desk")
    for tab in (desk, phone):
        await tab.page.keyboard.press("Escape")
        await tab.page.wait_for_selector(PANEL, state="hidden")
    await say(phone, "said on the phone")
    await wait_for_text(desk, "said on the phone")
    await panel(phone)
    await press(phone, "Unlink this page")
    assert await violations(phone, axe) == []
    await press(phone, "Unlink this page")
    await phone.page.wait_for_selector(f"{PANEL} .note:has-text('Unlinked.')")
    await phone.page.wait_for_selector("text=said at the desk", state="detached")
    # The browser reports the answer to the code that was refused.
    assert [*desk.complaints, *(said for said in phone.complaints if "403" not in said)] == []


@contextlib.asynccontextmanager
async def serve_sign_in(*embed_origins: str) -> AsyncIterator[str]:
    """A host whose visitors sign in at a provider of another site."""
    async with oidc_provider("localhost") as provider:
        listener = free_port()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        provider.client.redirect_uris = {f"{url}/link/callback"}
        linker = OAuthIdentityLinker(
            Oidc(provider.issuer, title="Example"),
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            public_url=url,
        )
        host = AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel(embed_origins=embed_origins)], linker=linker)
        async with serve_app(host.app, listener, lifespan="on"):
            yield url


async def agree(page: Page, answer: str) -> None:
    """From the page that says what will happen to the one that asks, and its answer."""
    await page.click("text=Continue to Example")
    await page.fill("input[name=person]", "ada")
    await page.click("text=Agree")
    await page.click(f"text={answer}")


async def sign_in(tab: Tab, answer: str) -> None:
    await panel(tab)
    await press(tab, "Sign in")
    await agree(tab.page, answer)
    await tab.page.wait_for_url("**/chat")
    await tab.page.wait_for_selector("textarea")


async def test_who_signs_in_comes_back_to_the_page_and_is_named(new_tab: Any) -> None:
    async with serve_sign_in() as url:
        desk, phone = await open_page(await new_tab(), url), await open_page(await new_tab(), url)
        await sign_in(desk, "No, leave them apart")
        await panel(desk)
        assert "No other account yet." in await desk.page.inner_text(PANEL)
        await desk.page.keyboard.press("Escape")
        for tab in (desk, phone):
            await sign_in(tab, "Yes, link them")
        await say(phone, "the same person")
        await wait_for_text(desk, "the same person")
        await panel(desk)
        assert "Ada" in await desk.page.inner_text(f"{PANEL} strong")
        for tab in (desk, phone):
            # A host that stops waits a while for those who still listen.
            await tab.page.close()


async def test_in_a_frame_the_sign_in_has_a_tab_of_its_own(new_tab: Any) -> None:
    frames: list[str] = []

    async def shop(_: Any) -> HTMLResponse:
        return HTMLResponse(f'<!doctype html><iframe src="{frames[0]}"></iframe>')

    async with serve_app(Starlette(routes=[Route("/", shop)])) as here:
        site = here.replace("127.0.0.1", "localhost")
        async with serve_sign_in(site) as url:
            frames.append(f"{url}/chat/frame")
            tab = await new_tab()
            await tab.page.goto(site)
            frame = tab.page.frame_locator("iframe")
            await frame.locator("header button[aria-haspopup=dialog]").click()
            await frame.get_by_role("button", name="Sign in").click()
            async with tab.page.context.expect_page() as outside:
                await frame.get_by_role("link", name="Sign in").click()
            page = await outside.value
            await agree(page, "Yes, link them")
            await page.wait_for_selector("text=You can close this page.")
            await frame.locator(f"{PANEL} .note", has_text="Linked.").wait_for()
            assert await frame.locator(f"{PANEL} strong").inner_text() == "Ada"
            await tab.page.close()


async def test_the_panel_can_be_read_from_right_to_left_in_german_and_without_motion(new_tab: Any, axe: str) -> None:
    host = AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel()], linker=OneTimeCodeIdentityLinker())
    async with serving(host) as client:
        tab = await new_tab()
        await tab.page.emulate_media(reduced_motion="reduce", color_scheme="dark")
        await tab.page.set_extra_http_headers({"accept-language": "fr-FR,de-AT;q=0.9,en;q=0.8"})
        await open_page(tab, client.base_url)
        await tab.page.evaluate("document.documentElement.dir = 'rtl'")
        await panel(tab)
        await press(tab, "Code anzeigen")
        await tab.page.wait_for_selector(f"{CARD} output")
        assert await tab.fits()
        assert await violations(tab, axe) == []
        box = await tab.page.locator(PANEL).bounding_box()
        code = await tab.page.locator(f"{CARD} output").bounding_box()
        assert box
        assert code
        assert box["x"] <= code["x"]
        assert code["x"] + code["width"] <= box["x"] + box["width"]
        moving = "[...document.querySelectorAll('*')].flatMap(one => one.getAnimations()).length"
        assert await tab.page.evaluate(moving) == 0
        await tab.page.close()


LINK = """async ([path, body]) => {
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return (await fetch(`/chat/api/account/${path}`, options)).json();
}"""


async def test_an_open_page_shows_what_was_said_in_a_chat_that_is_linked(new_tab: Any, axe: str) -> None:
    async with drive_platform() as platform:
        chat = MessageChannel(platform_url=platform.url, token=platform.token, secret=SECRET)
        host = AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel(), chat], linker=OneTimeCodeIdentityLinker())
        async with serving(host) as client:
            await platform.listen(f"{client.base_url}{chat.path}{chat.webhook_path}")
            ada = await platform.person("Ada")
            for text in ("first there", "second **there**"):
                await tell(platform, ada, text, text)
            tab = await open_page(await new_tab(), client.base_url)
            await say(tab, "hello here")
            await wait_for_text(tab, "hello here", f"{ANSWER}.done")
            code = re.search(r"[A-Z0-9]{4}-[A-Z0-9]{4}-[A-Z0-9]{2}", await tell(platform, ada, "/link", "Your code is"))
            asked = await tab.page.evaluate(LINK, ["code", {"code": code.group() if code else ""}])
            challenge = asked["question"]["challenge_id"]
            await tab.page.evaluate(LINK, ["answer", {"challenge_id": challenge, "confirm": True}])
            await tell(platform, ada, "/link confirm", "share one conversation")
            await wait_for_text(tab, "second there", ANSWER)
            texts = await tab.page.locator(".message").all_inner_texts()
            said = [[line for line in text.splitlines() if line] for text in texts]
            there = ["first there", "first there", "second **there**", "second there"]
            assert [lines[1:] for lines in said[:4]] == [["Asked on messages", text] for text in there]
            assert [lines[1] for lines in said[4:6]] == ["hello here"] * 2
            assert await tab.page.locator(".message.user .versions").count() == 1
            assert await violations_on_both(tab, axe) == []
            await tab.page.close()
